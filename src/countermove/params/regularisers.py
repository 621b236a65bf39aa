"""What is added to the risk, by ``kind``; every kind but ``none`` carries a strength."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters
from countermove.params.people import Positive

if TYPE_CHECKING:
    from countermove.learning.regularisers import Regulariser
    from countermove.learning.regularisers_social import SocialRegulariser

Strength = Annotated[float, Field(ge=0)]


class NoRegulariserParameters(Parameters):
    """Accuracy is the only aim."""

    kind: Literal["none"] = "none"

    def build(self) -> None:
        """Return None."""


class L2Parameters(Parameters):
    """Half the squared length of the slope."""

    kind: Literal["l2"]
    strength: Strength = 1e-3

    def build(self) -> Regulariser:
        """Return the regulariser."""
        from countermove.learning.regularisers import L2

        return L2(self.strength)


class UtilityParameters(Parameters):
    """People's payoff: the decision as they see it, minus what the move cost."""

    kind: Literal["utility"]
    strength: Strength = 1e-2

    def build(self) -> SocialRegulariser:
        """Return the regulariser."""
        from countermove.learning.regularisers_social import ExpectedUtility

        return ExpectedUtility(self.strength)


class BurdenParameters(Parameters):
    """What the deserving must pay; ``unscaled`` counts the squared distance, not the cost."""

    kind: Literal["burden"]
    strength: Strength = 1e-2
    unscaled: bool = False

    def build(self) -> SocialRegulariser:
        """Return the regulariser."""
        from countermove.learning.regularisers_social import SocialBurden

        return SocialBurden(self.strength, self.unscaled)


class RecourseAimParameters(Parameters):
    """Who is refused and stays refused; ``temperature`` in distance units."""

    kind: Literal["recourse"]
    strength: Strength = 1e-2
    temperature: Positive = 0.5

    def build(self) -> SocialRegulariser:
        """Return the regulariser."""
        from countermove.learning.regularisers_social import Recourse

        return Recourse(self.strength, self.temperature)


SocialParameters = Annotated[
    UtilityParameters | BurdenParameters | RecourseAimParameters, Field(discriminator="kind")
]
RegulariserParameters = Annotated[
    NoRegulariserParameters
    | L2Parameters
    | UtilityParameters
    | BurdenParameters
    | RecourseAimParameters,
    Field(discriminator="kind"),
]
