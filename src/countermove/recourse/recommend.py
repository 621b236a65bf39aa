"""Recourse for everyone refused: one call, several methods, every answer verified.

A method only proposes. An action reported as FOUND was evaluated on the true model and
checked against the action set; PROVEN_NONE means that an upper bound on the score of
every allowed action lies below the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask
from countermove.errors import DataError, ParameterError
from countermove.execution import phase, search_bar
from countermove.people import ActionSet, Cost, QuadraticCost
from countermove.people.feasible import absent
from countermove.recourse._preferences import (
    AdviceSearch,
    Preference,
    causes_preferred,
    preference_of,
)
from countermove.recourse.lasting import Margin, margin_of
from countermove.recourse.problem import (
    ApprovalThreshold,
    Proposals,
    SearchProblem,
    Settings,
    actions_of_model,
    checked_people,
    method_of,
    probability_slope,
    search_problem,
)
from countermove.scores.base import score_of, values
from countermove.training.units import LONGER, RowUnits, as_rows, standardised_model

if TYPE_CHECKING:
    from countermove.recourse.causal import CausalModel

FOUND = "FOUND"
PROVEN_NONE = "PROVEN_NONE"
NOT_FOUND = "NOT_FOUND"
NOT_NEEDED = "NOT_NEEDED"
BEYOND_REACH = "BEYOND_REACH"
STATUSES = (FOUND, PROVEN_NONE, NOT_FOUND, NOT_NEEDED, BEYOND_REACH)


@dataclass(frozen=True)
class Advice:
    """What each person can do to be approved.

    Parameters
    ----------
    action
        What to change, shape (n, d), in the units of the people given. Zeros where nothing
        is needed; NaN where no action is known, which is not the same.
    status
        ``FOUND`` (verified on the model), ``PROVEN_NONE`` (no allowed action, within the
        ceiling if there is one, reaches the threshold), ``NOT_FOUND`` (the search failed,
        without proof), ``NOT_NEEDED`` (approved as they are) or ``BEYOND_REACH`` (the action
        shown is verified, but costs more than the ceiling), shape (n,).
    probability_before, probability_after
        The model's probability now and after the action, shape (n,); NaN after
        where no action is known.
    cost
        What the action costs per standard deviation, shape (n,); NaN where none is known.
    n_changed
        How many features the action touches (a one-hot group counts once).
    effect
        What changes in all, shape (n, d), when actions have consequences (a
        causal model); None when the action is all that changes.
    alternatives
        Further, different actions (``options`` of `recommend`), in the order found.
    asked
        Rows a black box was asked for in all (``Settings.calls`` bounds those of a search per
        person); 0 where the rule is none.
    proven_cheapest
        Whether no allowed action that reaches what was asked for costs less (to a relative
        1e-6) before rounding, shape (n,); False where it is not proven, and where there is no
        action. Of ``lasting`` advice, what was asked for is the person's own raised threshold.
    cost_bound
        No allowed action that reaches the threshold costs less, proven, shape (n,): the least cost
        where that is proven, the ceiling or infinity where there is none within it or at all,
        0 where nothing is proven.
    least_cost
        The cost of the cheapest action without a margin against a refit, before columns were
        left alone and amounts rounded, shape (n,).
    lasting_extra, causal_extra
        What the margin against a refit (``confidence`` of `recommend`), then leaving columns
        alone that do not cause the outcome (``not_causal``), added to it, shape (n,).
    survival
        The probability that the action still leads to approval once the rule is fitted again
        to as many other rows, shape (n,); NaN where there is no action or no covariance.
    survival_without
        The same of the cheapest action, without a margin.
    lasting
        Whether ``survival`` reaches the ``confidence`` asked for, shape (n,).
    uncertain_weight
        Whether the action would not be approved without the gain of features whose effect
        cannot be distinguished from zero (1.96 standard errors), shape (n,).
    """

    action: Floats
    status: NDArray[np.str_]
    probability_before: Floats
    probability_after: Floats
    cost: Floats
    n_changed: NDArray[np.int64]
    effect: Floats | None = None
    alternatives: tuple[Advice, ...] = ()
    asked: int = 0
    proven_cheapest: Mask = field(default_factory=lambda: np.zeros(0, bool))
    cost_bound: Floats = field(default_factory=lambda: np.zeros(0))
    least_cost: Floats = field(default_factory=lambda: np.zeros(0))
    lasting_extra: Floats = field(default_factory=lambda: np.zeros(0))
    causal_extra: Floats = field(default_factory=lambda: np.zeros(0))
    survival: Floats = field(default_factory=lambda: np.zeros(0))
    survival_without: Floats = field(default_factory=lambda: np.zeros(0))
    lasting: Mask = field(default_factory=lambda: np.zeros(0, bool))
    uncertain_weight: Mask = field(default_factory=lambda: np.zeros(0, bool))

    def __post_init__(self) -> None:
        unsaid: dict[str, Any] = {
            "least_cost": self.cost,
            **dict.fromkeys(("lasting_extra", "causal_extra", "cost_bound"), 0.0),
            **dict.fromkeys(("survival", "survival_without"), np.nan),
            **dict.fromkeys(("proven_cheapest", "lasting", "uncertain_weight"), False),
        }
        for name, value in unsaid.items():
            if getattr(self, name).shape != self.status.shape:
                object.__setattr__(self, name, np.broadcast_to(value, self.status.shape).copy())

    @property
    def unrounded_cost(self) -> Floats:
        """What the action would cost if its amounts were not rounded, shape (n,)."""
        return self.least_cost + self.lasting_extra + self.causal_extra

    def with_alternatives(self, others: tuple[Advice, ...]) -> Advice:
        """Return this advice with further actions beside it."""
        return replace(self, alternatives=others)

    def x_new(self, X: Floats) -> Floats:
        """Return the people after the action and its consequences; NaN where none is known."""
        X = np.asarray(X, np.float64)
        if X.shape != self.action.shape:
            raise DataError(
                f"this advice is for people of shape {self.action.shape}, got {X.shape}"
            )
        moved: Floats = X + (self.action if self.effect is None else self.effect)
        return moved


@dataclass(frozen=True)
class Limits:
    """What advice obeys beside the allowed actions, see `recommend`.

    Parameters
    ----------
    cost, ceiling
        What a move costs, and what nobody is advised to exceed; None: no ceiling.
    max_features
        How many features may change at most; None: any number.
    """

    cost: Cost | None = None
    ceiling: float | None = None
    max_features: int | None = None


@dataclass(frozen=True)
class Reached:
    """The best score a search reaches for each person, whatever the threshold.

    Parameters
    ----------
    action
        The allowed action that reaches it, shape (n, d), in the units of the people given.
    score
        The score after the action, never below the present one where staying is
        allowed, shape (n,).
    """

    action: Floats
    score: Floats


def recommend(
    model: Any,
    X: Any,
    method: str = "auto",
    threshold: float = 0.5,
    actions: ActionSet | None = None,
    cost: Cost | None = None,
    *,
    objective: str = "cheapest",
    max_features: int | None = None,
    options: int = 1,
    margin: float = 0.0,
    ceiling: float | None = None,
    digits: int | None = None,
    confidence: float | None = None,
    causal: CausalModel | None = None,
    not_causal: Sequence[int] = (),
    causal_tolerance: float = 0.05,
    settings: Settings | None = None,
    seed: int = 0,
    verbose: int = 0,
) -> Advice:
    r"""Return what each refused person can do to be approved.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> from countermove import ActionSet, StrategicClassifier, recommend
    >>> rule = StrategicClassifier(response="none").fit(X, y)
    >>> advice = recommend(rule, X, actions=ActionSet(immutable=[0]))
    >>> refused = advice.status == "FOUND"
    >>> set(rule.predict((X + advice.action)[refused]).tolist())
    {2}

    .. math:: \min_{\delta\in\Delta(x)} c(x, x+\delta)
              \quad\text{s.t.}\quad \sigma(s(x+\delta)) \ge threshold

    Parameters
    ----------
    model
        A score, a fitted classifier or a stored model.
    X
        People, shape (n, d), as the model reads them: in the units a classifier was fitted in,
        standardised for scores and stored models.
    method
        ``auto`` (the cheapest action, proven so, where the score is affine in what
        moves; elsewhere as ``gradient``), ``linear_program`` (Eq. 2 step,
        repeated and line-searched), ``gradient`` (projected Adam from several starts, one of them
        from local linear models),
        ``integer_program`` (proven cheapest on affine scores; on others a search by local
        linear models), ``causal`` (actions have the consequences that ``causal``
        says), ``exhaustive`` (all combinations). ``proven_cheapest`` says whose action is
        more than the result of a search.
    threshold
        The probability that is approved, in (0, 1); of a classifier trained with the
        hinge loss, on the scale of its ``predict_proba``.
    actions
        What may change; the model's own actions by default. In standardised units, or in those
        of ``X`` (``units="original"``, `ActionSet.from_schema`).
    cost
        What a move costs, in either units; the squared length in standardised units by default,
        with the price of supplying a missing cell where that is an action (`ActionSet.priced`).
    objective
        ``cheapest``, or ``sparsest``: fewest features, then cheapest.
    max_features
        Change at most so many features (a one-hot group counts once).
    options
        How many different actions to look for; the further ones are the advice's
        ``alternatives``, each without the most expensive features of those before.
    margin
        Go on to the probability ``threshold + margin`` where that is possible, so that an
        action carried out not quite as advised still works; the cheapest action
        ends on the threshold. Who is refused, and what counts as found, does not change.
    ceiling
        What nobody is advised to exceed, in units of the cost: whoever would have to
        pay more is ``BEYOND_REACH``, with the action shown. None: no ceiling.
    digits
        Round amounts to so many significant digits, in original units, where that is still
        approved and allowed; None: as the search found them. ``least_cost`` stays what it was.
    confidence
        The probability, in (0, 1), with which advice should still lead to approval after a refit
        to as many other rows of the same population: the threshold is raised by
        :math:`z\sqrt{h^\top(\Sigma + \Sigma')h}` at the new place, :math:`h = (x_{new}, 1)`,
        where that is possible within the ceiling (``lasting``); others get the plain advice.
        It needs a linear rule that knows its covariance. None: no such margin.
    causal
        The structural causal model of ``method="causal"``.
    not_causal, causal_tolerance
        Columns known not to cause the outcome: an action that leaves them all alone is
        preferred if it costs at most the share ``causal_tolerance`` more than the cheapest;
        ``causal_extra`` says how much it does.
    settings, seed
        How hard to search, and the seed of its starts.
    verbose
        Above 0: a progress bar on a terminal, with the time left; nothing where nobody watches.

    Returns
    -------
    Advice
        ``FOUND`` is verified on the model and on the action set. Everybody whom
        `best_reachable` within the same limits takes over the threshold is found.
    """
    settings = Settings() if settings is None else settings
    plain = method_of(method)
    given, X = model, as_rows(model, X)
    model, units = standardised_model(model)
    score = score_of(model)
    X = checked_people(X, score)
    rows = units.rows(X)
    allowed = actions_of_model(model, units.actions(actions))
    cost = allowed.priced(QuadraticCost()) if cost is None else units.cost(cost)
    cut = ApprovalThreshold(threshold, probability_slope(model))
    beyond = _above(cut, margin).aim - cut.aim
    preference = preference_of(objective, max_features, options, beyond, ceiling)
    preference = causes_preferred(preference, not_causal, causal_tolerance, rows.shape[1])
    if digits is not None and (int(digits) != digits or digits < 1):
        raise ParameterError(f"digits is a whole number of at least 1 or None, got {digits!r}")
    refits = margin_of(model, score, confidence, cut.aim, preference.most_paid)
    before, now = getattr(score, "asked", 0), values(score, rows)
    causes = _causes(method, causal, rows.shape[1], units)
    target = cut.aim + cut.slack
    problem = search_problem(score, rows, allowed, cost, target + beyond, seed=seed, **causes)
    problem = replace(problem, target=target)
    refused = np.flatnonzero(~cut.approved(now))
    part = problem.rows(refused)
    search = AdviceSearch(plain, settings, preference, refits)
    with search_bar(verbose):
        cheapest = search.cheapest(part)
        bound = search.least_costs(part, cheapest)
        lasting = search.lasting(part, cheapest)
        found = search.causal(part, lasting)

        def as_given(way: Proposals) -> Advice:
            way = search.rounded(part, allowed, way, digits)
            judged = _verified(problem, allowed, now, cut, refused, preference, way)
            advised = _as_given(refits.outlook(judged, problem), units)
            free = problem.feasible.may_go_on(np.nan_to_num(judged.action))
            return _confirmed(given, X, cut, advised, units, free)

        prices = [part.price(np.nan_to_num(way.action)) for way in (cheapest, lasting, found)]
        without = refits.survival(part, cheapest.action)
        first = _with_prices(as_given(found), refused, prices, without, bound)
        first = replace(first, asked=getattr(score, "asked", 0) - before)
        if options == 1:
            return first
        none = first.status == PROVEN_NONE
        bounds = np.where(none, first.cost_bound, 0.0)
        others = map(as_given, search.others(part, found, options))
        return first.with_alternatives(tuple(replace(one, cost_bound=bounds) for one in others))


def best_reachable(
    model: Any,
    X: Any,
    method: str = "auto",
    actions: ActionSet | None = None,
    *,
    limits: Limits | None = None,
    causal: CausalModel | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    verbose: int = 0,
) -> Reached:
    r"""Return the best score the search reaches for each person, without knowing a threshold.

    PARE calibrates on it, and `recommend` falls back to the same action, so that
    everyone counted as having recourse gets it.

    Parameters
    ----------
    limits
        What else advice obeys: a ceiling on its cost, and how many features it may change.
    model, X, method, actions, causal, settings, seed, verbose
        As in `recommend`.
    """
    limits = Limits() if limits is None else limits
    plain, X = method_of(method), as_rows(model, X)
    model, units = standardised_model(model)
    score = score_of(model)
    rows = units.rows(checked_people(X, score))
    allowed = actions_of_model(model, units.actions(actions))
    causes = _causes(method, causal, rows.shape[1], units)
    cost = allowed.priced(QuadraticCost()) if limits.cost is None else units.cost(limits.cost)
    preference = preference_of("cheapest", limits.max_features, 1, 0.0, limits.ceiling)
    settings = Settings() if settings is None else settings
    search = AdviceSearch(plain, settings, preference, Margin(None, None, 0.0, np.inf))
    problem = search_problem(score, rows, allowed, cost, np.inf, seed=seed, **causes)
    with search_bar(verbose), phase("highest reachable scores", len(rows)):
        action, _ = search.reach(problem)
    now = values(score, rows)
    after = problem.values(action)
    stays = allowed.contains(rows, np.zeros_like(rows)) & (now > after)
    action[stays] = 0.0
    return Reached(units.action_as_given(action), np.where(stays, now, after))


def _as_given(advice: Advice, units: RowUnits) -> Advice:
    """Return advice on standardised rows in the units of the rows given."""
    effect = None if advice.effect is None else units.action_as_given(advice.effect)
    return replace(advice, action=units.action_as_given(advice.action), effect=effect)


def _confirmed(
    model: Any, X: Floats, cut: ApprovalThreshold, advice: Advice, units: RowUnits, free: Mask
) -> Advice:
    """Judge ``X`` after the advice as given: go further by what rounding took, or take it back."""
    # ``free`` says which amounts may go further, (n, d). Standardised rows were judged as they are.
    if units.standardiser is None and not hasattr(model, "approves"):
        return advice
    score = score_of(model)

    def refused(who: Index, action: Floats) -> Index:
        moved = X[who] + action
        if hasattr(model, "approves"):
            lost: Index = who[~model.approves(moved, cut.threshold)]
            return lost
        return who[values(score, moved) < cut.aim]

    action = advice.action.copy()
    change = action if advice.effect is None else advice.effect.copy()
    advised = np.flatnonzero(np.isin(advice.status, (FOUND, BEYOND_REACH)))
    lost = refused(advised, change[advised])
    for doubling in range(LONGER):
        if not lost.size or advice.effect is not None:
            break
        longer = np.where(free[lost], 1.0 + 2.0**doubling * np.finfo(np.float64).eps, 1.0)
        action[lost] = longer * advice.action[lost]
        lost = refused(lost, action[lost])
    advice = replace(advice, action=action)
    if not lost.size:
        return advice
    said: dict[str, Any] = {"status": NOT_FOUND, "n_changed": 0, "proven_cheapest": False}
    said |= dict.fromkeys(("action", "probability_after"), np.nan)
    taken = {name: getattr(advice, name).copy() for name in (*said, "cost")}
    for name, value in (said | {"cost": np.nan}).items():
        taken[name][lost] = value
    return replace(advice, **taken)


def _with_prices(
    advice: Advice,
    refused: NDArray[np.intp],
    prices: Sequence[Floats],
    without: Floats,
    bound: Floats,
) -> Advice:
    """Return advice that knows the price of each step: cheapest, lasting, causal."""
    least, lasting, causal, survival, bounds = np.zeros((5, len(advice.cost)))
    bounds[refused] = bound
    bounds[(advice.status == PROVEN_NONE) & (bounds == 0.0)] = np.inf  # by the slope alone
    least[refused], lasting[refused] = prices[0], prices[1] - prices[0]
    causal[refused] = prices[2] - prices[1]
    survival[:] = np.nan
    survival[refused] = without
    lost = np.isnan(advice.cost)
    least[lost], lasting[lost], causal[lost], survival[lost] = np.nan, 0.0, 0.0, np.nan
    return replace(
        advice,
        cost_bound=bounds,
        least_cost=least,
        lasting_extra=lasting,
        causal_extra=causal,
        survival_without=survival,
    )


def _verified(
    problem: SearchProblem,
    actions: ActionSet,
    now: Floats,
    cut: ApprovalThreshold,
    refused: NDArray[np.intp],
    preference: Preference,
    found: Proposals,
) -> Advice:
    """Return the advice: the truth about each proposal."""
    from countermove.recourse._linear import highest_score

    X = problem.X
    proposed = np.zeros_like(X)
    proposed[refused] = found.action
    given = ~absent(proposed)
    proposed[~given] = 0.0
    place = problem.place(proposed)
    after = now.copy()
    after[refused] = values(problem.score, place[refused])
    changed = problem.feasible.changed(proposed)
    works = given & cut.approved(after) & actions.contains(X, proposed)
    if problem.consequences is not None and actions.possible is not None:
        works &= actions.possible.allows(X, place - X, actions.unknown(X))
    works &= changed <= (X.shape[1] if preference.max_features is None else preference.max_features)
    none = np.zeros(len(X), bool)
    none[refused] = found.proven_none
    if (~works).any():
        none |= highest_score(problem, preference.max_features) < cut.aim - cut.slack
    needs, proven = np.zeros((2, len(X)), bool)
    needs[refused], proven[refused] = True, found.proven_cheapest
    price = problem.price(proposed)
    shown = np.where(price <= preference.most_paid, FOUND, BEYOND_REACH)
    status = np.where(works, shown, np.where(none, PROVEN_NONE, NOT_FOUND))
    status = np.where(needs, status, NOT_NEEDED)
    lost = needs & ~works
    proposed[lost] = np.nan
    changed[lost] = 0
    effect = None if problem.consequences is None else np.where(lost[:, None], np.nan, place - X)
    return Advice(
        action=proposed,
        status=status,
        probability_before=cut.probability(now),
        probability_after=np.where(lost, np.nan, cut.probability(after)),
        cost=np.where(lost, np.nan, price),
        n_changed=changed,
        proven_cheapest=proven & works,
        effect=effect,
    )


def _causes(
    method: str, causal: CausalModel | None, n_features: int, units: RowUnits
) -> dict[str, Any]:
    if method != "causal":
        if causal is not None:
            raise ParameterError(
                f"a causal model was given, but method={method!r} ignores consequences; use "
                "method='causal'"
            )
        return {}
    if causal is None:
        raise ParameterError(
            "method='causal' needs causal=CausalModel.from_mapping(...): which feature follows "
            "from which"
        )
    causal.check_width(n_features)
    if units.standardiser is not None:
        causal = causal.after_standardising(units.standardiser.mean, units.standardiser.scale)
    return {"consequences": causal.consequences, "effect": causal.effect}


def _above(cut: ApprovalThreshold, margin: float) -> ApprovalThreshold:
    """Return the threshold raised by a margin of probability."""
    if not 0.0 <= margin < 1.0 - cut.threshold:
        raise ParameterError(
            f"a margin lies between 0 and 1 - threshold = {1.0 - cut.threshold:.6g}, got {margin!r}"
        )
    return cut if margin == 0.0 else replace(cut, threshold=cut.threshold + margin)
