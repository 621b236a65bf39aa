"""What the induced people say of themselves: the error after deployment, counted."""

from __future__ import annotations

import numpy as np

from countermove.certificates import Certificate
from countermove.certificates.intervals import lower_share, upper_share
from countermove.transfer.claims import Theorem, both_forms
from countermove.transfer.setting import Setting

REFERENCE = "Clopper and Pearson (1934)"


def direct_bounds(setting: Setting) -> list[Certificate]:
    """Bound the error after deployment from above and below by counting mistakes.

    It needs what the theorems need least of all, a sample of the induced people, and is
    the yardstick they are read against.
    """
    induced = setting.own.induced
    wrong, alpha = int(np.sum(induced.wrong())), setting.failure_probability
    return [
        *both_forms(
            Theorem("direct_upper", REFERENCE, "upper", "error_after"),
            setting,
            induced.error,
            lambda: float(upper_share(wrong, induced.n, alpha)),
        ),
        *both_forms(
            Theorem("direct_lower", REFERENCE, "lower", "error_after"),
            setting,
            induced.error,
            lambda: float(lower_share(wrong, induced.n, alpha)),
        ),
    ]
