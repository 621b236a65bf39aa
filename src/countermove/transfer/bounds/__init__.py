"""Every bound of the transferability paper, each as an estimate and as a certificate."""

from __future__ import annotations

from collections.abc import Callable

from countermove.certificates import Certificate
from countermove.transfer.bounds._any_shift import (
    corollary_3_4,
    theorem_3_1,
    theorem_3_1_linear,
    theorem_3_2,
    theorem_3_3,
)
from countermove.transfer.bounds._covariate_shift import proposition_4_7, theorem_4_2, theorem_4_6
from countermove.transfer.bounds._setting import (
    QUANTITIES as QUANTITIES,
)
from countermove.transfer.bounds._setting import (
    Chosen as Chosen,
)
from countermove.transfer.bounds._setting import (
    Setting,
)
from countermove.transfer.bounds._setting import (
    StrategicSetup as StrategicSetup,
)
from countermove.transfer.bounds._setting import (
    choose as choose,
)
from countermove.transfer.bounds._target_shift import proposition_5_3, theorem_5_1, theorem_5_2

__all__ = ["BOUNDS", "all_bounds"]

BOUNDS: tuple[Callable[[Setting], list[Certificate]], ...] = (
    theorem_3_1,
    theorem_3_1_linear,
    theorem_3_2,
    theorem_3_3,
    corollary_3_4,
    theorem_4_2,
    theorem_4_6,
    proposition_4_7,
    theorem_5_1,
    theorem_5_2,
    proposition_5_3,
)


def all_bounds(setting: Setting) -> list[Certificate]:
    """Return every bound in both forms; those whose assumptions fail say so."""
    return [certificate for bound in BOUNDS for certificate in bound(setting)]
