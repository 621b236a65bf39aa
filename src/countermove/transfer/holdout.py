"""The error after deployment, counted on held-out people (Clopper and Pearson)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.certificates import Assumption, Certificate
from countermove.certificates.betting import clustered_interval, together
from countermove.certificates.intervals import upper_share
from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.errors import NotEnoughRowsError
from countermove.response import Response
from countermove.response.response_set import members_of
from countermove.scores import Score
from countermove.transfer.bounds import Setting, Theorem, both_forms
from countermove.transfer.estimates import share_range

REFERENCE = "Clopper and Pearson (1934)"
BETTING = "betting on clusters as units (Waudby-Smith and Ramdas 2024)"


def direct_bounds(setting: Setting) -> list[Certificate]:
    """Bound the error after deployment from above and below by counting mistakes."""
    induced = setting.own.induced
    alpha = setting.failure_probability
    reference = REFERENCE if induced.clusters is None else BETTING
    return [
        *both_forms(
            Theorem("direct_upper", reference, "upper", "error_after"),
            setting,
            induced.error(),
            lambda: share_range(induced, induced.wrong(), 2.0 * alpha).high,
        ),
        *both_forms(
            Theorem("direct_lower", reference, "lower", "error_after"),
            setting,
            induced.error(),
            lambda: share_range(induced, induced.wrong(), 2.0 * alpha).low,
        ),
    ]


def certify_error(
    score: Score, test: pd.DataFrame, schema: Schema, response: Response, failure_probability: float
) -> Certificate:
    """Bound the error of a rule on standardised test rows whose people answer it."""
    people = rows_of(test, schema)
    response = response.with_windows(people.X, people.windows)
    # Every member of a robust response gets an equal part of the failure probability, so the
    # largest bound holds for whichever of them is true.
    members = members_of(response)
    bounds = [
        error_after_response_bound(
            member.decisions_after(score, people.X) == (people.y > 0),
            response.name,
            failure_probability / len(members),
            people.clusters,
        )
        for member in members
    ]
    worst = max(bounds, key=lambda bound: bound.value or 0.0)
    return replace(worst, level=1.0 - failure_probability)


def error_after_response_bound(
    right: NDArray[np.bool_],
    response: str,
    failure_probability: float = 0.05,
    clusters: NDArray[Any] | None = None,
) -> Certificate:
    r"""Bound the share of people judged wrongly once they have moved (Clopper-Pearson).

    With m errors among n independent people the true error is at most the
    :math:`1-\alpha` quantile of :math:`\mathrm{Beta}(m+1, n-m)`, except with
    probability :math:`\alpha`.

    Parameters
    ----------
    right
        Whether each held-out person is judged rightly after response, shape (n,).
    response
        Name of the response assumed.
    failure_probability
        :math:`\alpha`.
    clusters
        Whose rows belong together, shape (n,): these are then bet on as units.
    """
    n, wrong = len(right), int(np.count_nonzero(~right))
    if n == 0:
        raise NotEnoughRowsError("a bound on the error needs at least one held-out row, got none")
    drawn = Assumption("the held-out rows are independent draws of the people to be judged")
    value, reference = float(upper_share(wrong, n, failure_probability)), REFERENCE
    if clusters is not None:
        value = clustered_interval(~right, clusters, 2.0 * failure_probability)[1]
        drawn, reference = together(clusters), BETTING
    return Certificate(
        name="error_after_response",
        value=value,
        direction="upper",
        kind="certificate",
        level=1.0 - failure_probability,
        n=n,
        assumptions=(
            drawn,
            Assumption(f"people answer the rule as the response {response!r} says"),
            Assumption("moving does not change a person's label"),
        ),
        reference=reference,
    )
