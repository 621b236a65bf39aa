"""What may be asked of a refused person, how sure the promise is, and what it may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters

if TYPE_CHECKING:
    from countermove.recourse.pare_joint import Terms

SearchName = Literal["linear_program", "gradient", "integer_program", "exhaustive"]
Probability = Annotated[float, Field(gt=0, lt=1)]


class RecourseParameters(Parameters):
    """Parameters of the choice of the threshold.

    ``threshold`` is the probability asked for unless the promise needs a lower one;
    ``largest_action`` bounds every feature's move, in standardised units, on top of what
    the schema says (the PARE experiments use 0.75; None adds no bound); ``method`` is how
    recourse is searched for.

    ``miss_rate`` and ``failure_probability`` are the promise's, made to each group of the
    sensitive column ``groups`` if one is named, and with ``after_response`` to people who
    have answered the rule.

    Among the thresholds of ``grid`` (rising or falling; None: from the validation rows)
    that keep the promise, the best ``measure`` on the validation rows wins, ``loss`` being
    what ``utility`` takes off for a wrong approval. If the promise would cost more than
    ``largest_loss`` of the measure, less is promised and the certificate says how much;
    None keeps the promise whatever it costs.

    ``margin`` is how far beyond the threshold, in probability, advice goes where it can
    (at most half way to certainty), so that it still works when carried out roughly.
    """

    threshold: Probability = 0.5
    largest_action: Annotated[float, Field(gt=0)] | None = None
    method: SearchName = "linear_program"
    miss_rate: Probability = 0.05
    failure_probability: Probability = 0.05
    groups: str | None = None
    after_response: bool = True
    measure: Literal["accuracy", "f1", "utility"] = "accuracy"
    loss: Annotated[float, Field(ge=0)] = 1.0
    largest_loss: Probability | None = 0.02
    grid: Annotated[tuple[Probability, ...], Field(min_length=1)] | None = None
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def build(self) -> Terms:
        """Return the terms of the promise."""
        from countermove.recourse.pare_joint import Terms

        return Terms(**self.model_dump())
