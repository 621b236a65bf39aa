r"""Does training pay? The trained rule beside simple ones, judged on rows it has not seen.

Where everybody reaches equally far, the response only moves the intercept and the direction
cannot matter; elsewhere it may. So a trained direction is compared in repeated cross-validation
with the best simple rule, each rule with its best threshold after response, and the rule that
loses least in expectation is kept.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from countermove._types import Floats, Index
from countermove.errors import DataError
from countermove.learning._populations import JudgedMembers
from countermove.learning.objectives import right_chances
from countermove.learning.simple_rules import Rules, linear_rules
from countermove.response.base import NoResponse, Response
from countermove.response.compilation import at_once
from countermove.response.population import Population
from countermove.response.response_set import rational_people
from countermove.scores import LinearScore, Score
from countermove.scores.base import values
from countermove.scores.trees import TreeScore
from countermove.training._labels import counted, is_weighted, mean_over

if TYPE_CHECKING:
    from countermove.learning._recipe import TrainingRecipe

ALIKE = 1e-9
"""Reaches that differ by less than this share are equal up to the solvers' rounding."""
PRIOR_GAIN, PRIOR_SPREAD = -0.005, 0.01
"""What training gains over the best simple rule before it is measured: mean and deviation."""
STAYING = 0.1
"""Chance, in the expected gain of a trained rule, that nobody moves at all."""
PROOF = 2.0
"""Standard errors by which a direction must lead where the response does not speak for it."""
INTERVAL = 0.95
"""Level of the interval beside a gain."""
FOLDS, REPEATS, ENOUGH = 3, 2, 10_000
"""Folds, how often they are drawn, and the rows from which on once is enough."""
MOST_ROWS = 60_000
"""Rows that are cross-validated on, the first of them by their hashes."""
NO_RECOURSE = ("majority", "immutables")
"""Simple rules that nobody can move under: reported, and deployed only if that is allowed."""


@dataclass(frozen=True)
class RuleRecord:
    """What cross-validation says of one rule."""

    value: float  # of the stated objective: accuracy after response, less what is penalised
    gain: float  # over the best simple rule, on the same rows
    standard_error: float  # of the gain, corrected for folds that share training rows
    deployable: bool

    def points(self) -> str:
        """Return the gain in points with its interval."""
        half = float(norm.isf(0.5 * (1.0 - INTERVAL))) * self.standard_error
        low, high = 100.0 * (self.gain - half), 100.0 * (self.gain + half)
        return (
            f"{100.0 * self.gain:+.2f} points ({100 * INTERVAL:.0f} % interval {low:+.2f} to "
            f"{high:+.2f})"
        )


@dataclass(frozen=True)
class Choice:
    """Which rule was kept, and on what evidence.

    Attributes
    ----------
    kept
        Name of the rule that is published: ``"trained"``, ``"annealed"`` (the trained direction
        turned by an annealed 0-1 loss), or a simple rule: ``"logistic"``, ``"class_means"``,
        ``"reach_penalty"``, for a score that is not linear ``"blind"`` (the same kind of score,
        trained as if nobody moved), and where no recourse is allowed ``"immutables"`` or
        ``"majority"``.
    best_simple
        The simple rule with the highest cross-validated objective among those that may be kept.
    rules
        The record of every rule; not of an annealed one that leads by too little even on the rows
        it was fitted to.
    alike
        Everybody reaches equally far, so that no direction can win by the response.
    scores
        Every rule as fitted to all rows, with its best threshold.
    direction, regret
        Of the rule of least regret, where that is kept: the direction whose threshold it moves,
        and by member of the plausible set what knowing people would add.
    """

    kept: str
    best_simple: str
    rules: Mapping[str, RuleRecord]
    alike: bool
    scores: Mapping[str, Score]
    direction: str = ""
    regret: Mapping[str, float] = field(default_factory=dict)

    @property
    def trained(self) -> bool:
        """Whether a trained direction was kept."""
        return self.kept in ("trained", "annealed")

    def sentence(self) -> str:
        """Return which rule is published and what was seen, in one sentence."""
        best = self.best_simple.replace("_", " ")
        if self.regret:
            worst = max(self.regret, key=lambda name: self.regret[name])
            return (
                f"The rule of least regret is published ({self.direction.replace('_', ' ')}): on "
                f"training rows knowing people would add at most {100.0 * self.regret[worst]:.2f} "
                f"points ({worst})."
            )
        if self.trained:
            return (
                f"The {self.kept} rule is published: its gain in cross-validation over the best "
                f"simple rule ({best}) is {self.rules[self.kept].points()}."
            )
        rivals = [self.rules[name] for name in ("trained", "annealed") if name in self.rules]
        why = "everybody reaches equally far, so the direction cannot matter"
        if rivals:
            lead = max(rivals, key=lambda rule: rule.gain)
            why = f"the trained rule's gain over it in cross-validation is {lead.points()}"
        return f"The best simple rule ({best}) is published: {why}."

    def to_json(self) -> dict[str, Any]:
        """Return it JSON-ready; linear rules with their weights."""
        rules = {
            name: {
                "value": record.value,
                "gain": record.gain,
                "standard_error": record.standard_error,
                "deployable": record.deployable,
            }
            | _weights(self.scores.get(name))
            for name, record in self.rules.items()
        }
        return {
            "kept": self.kept,
            "best_simple": self.best_simple,
            "alike": self.alike,
            "rules": rules,
            "sentence": self.sentence(),
            "direction": self.direction,
            "regret": dict(self.regret),
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any], kept: Score) -> Choice:
        """Return what `to_json` described; of scores that are not linear, the ``kept`` one."""
        rules = {
            name: RuleRecord(*(one[part.name] for part in fields(RuleRecord)))
            for name, one in said["rules"].items()
        }
        scores = linear_rules(said) | {said["kept"]: kept}
        least = said["direction"], said["regret"]
        return cls(said["kept"], said["best_simple"], rules, said["alike"], scores, *least)


def _weights(score: Score | None) -> dict[str, Any]:
    if not isinstance(score, LinearScore):
        return {}
    return {"weight": score.weight.tolist(), "intercept": score.bias.item()}


def enough_to_compare(y: Floats, clusters: NDArray[Any] | None = None) -> bool:
    """Return whether every fold has two people of each class to learn from and one to judge by."""
    if clusters is None:
        return bool(min(counted(y[y > 0]), counted(y[y <= 0])) >= FOLDS)
    # Where no rows are set aside, a recipe lists everybody twice.
    known = clusters[: len(y)]
    return all(
        counted(out[sign * out > 0.0]) >= 1.0 and counted(kept[sign * kept > 0.0]) >= 2.0
        for _, _, kept, out in cluster_folds(y, REPEATS, known)
        for sign in (-1.0, 1.0)
    )


def checked_clusters(clusters: Any, n: int) -> NDArray[Any]:
    """Return the clusters of all rows; refuse another number of them."""
    found = np.asarray(clusters)
    if found.shape != (n,):
        raise DataError(
            f"clusters have shape {found.shape}; expected one per row, those of validation "
            f"included, ({n},)"
        )
    return found


def choose(
    recipe: TrainingRecipe,
    trained: Rules,
    given: Score | None,
    X: Floats,
    y: Floats,
    n_train: int,
    floor: Rules,
) -> Choice:
    """Compare the trained rules, from ``given``, with the simple ones and those of ``floor``.

    The first ``n_train`` rows are those that directions are fitted to.
    """
    simple = recipe.simple_rules(X, y, n_train) | floor
    scores = simple | trained
    people = recipe.judged_by.of_rows(range(len(y)))
    # Those of the floor come first: they bend, which is quickly seen.
    alike = all(all_reach_alike(rule, people.members, X) for rule in (floor | scores).values())
    # A score that is not linear may be better without any response.
    linear = all(isinstance(rule, LinearScore) for rule in trained.values())
    rivals = () if alike and linear else tuple(trained)
    rivals = tuple(name for name in rivals if _may_win(recipe, name, scores, X, y))
    held = _cross_validated(recipe, (*simple, *rivals), given, X, y)
    barred = () if recipe.allow_no_recourse else NO_RECOURSE
    # A blind network depends on its start, blind trees on their rows alone.
    seeded = "blind" in simple and not isinstance(simple["blind"], TreeScore)
    best = _best_simple(held, [name for name in simple if name not in barred], alike, seeded)
    rules = {name: record_of(held[name], held[best], name not in barred) for name in held}
    expected = {
        name: expected_gain(rules[name], scores[name], scores[best], X, y)
        for name in rivals
        # Where all reach alike no direction is owed to the response, and one must prove itself.
        if not alike or rules[name].gain > PROOF * rules[name].standard_error
    }
    leading = max(expected, key=lambda name: expected[name], default=best)
    kept = leading if expected.get(leading, 0.0) > 0.0 else best
    return Choice(kept, best, rules, alike, scores)


def _may_win(recipe: TrainingRecipe, name: str, scores: Rules, X: Floats, y: Floats) -> bool:
    """Say whether cross-validating a rule may pay: of the annealed one, by the rows it has seen.

    It was turned to get those right: what it does not gain there it does not gain on others.
    """
    if name != "annealed":
        return True
    people = recipe.judged_by.of_rows(range(len(y)))
    ours, theirs = (
        Held(recipe.objective_per_person(scores[one], people, X, y)[None], FOLDS, np.abs(y)[None])
        for one in (name, "logistic")
    )
    lead = record_of(ours, theirs, deployable=True)
    return lead.gain > 0.0


def expected_gain(record: RuleRecord, rule: Score, simple: Score, X: Floats, y: Floats) -> float:
    """Return the gain to expect of a trained rule: what was measured, shrunk, if people move."""
    # The posterior mean of a normal gain, measured with a normal error.
    measured = PRIOR_SPREAD**2 / (PRIOR_SPREAD**2 + record.standard_error**2)
    moving = measured * record.gain + (1.0 - measured) * PRIOR_GAIN
    # A rule bent to one response may be right for few where people stand: that needs no fold.
    right, simply = ((values(score, X) >= 0.0) == (y > 0.0) for score in (rule, simple))
    staying = mean_over(right.astype(np.float64) - simply, y)
    if not isinstance(rule, LinearScore):
        # A score that bends fits the rows it has seen: they can only speak against it.
        staying = min(staying, 0.0)
    return (1.0 - STAYING) * moving + STAYING * staying


def _best_simple(held: Mapping[str, Held], names: Sequence[str], alike: bool, seeded: bool) -> str:
    """Return the rule with the best objective; logistic regression unless another stands out."""
    # Where all reach alike a charge for reach has nothing to gain.
    rivals = [name for name in names if not (alike and name == "reach_penalty")]
    best = max(rivals, key=lambda name: held[name].mean)
    lead = record_of(held[best], held["logistic"], deployable=True)
    # There no direction is owed to the response, and another one must prove itself; so must a blind
    # score whose seed matters.
    needed = PROOF if alike or (best == "blind" and seeded) else 1.0
    return best if lead.gain > needed * lead.standard_error else "logistic"


@dataclass(frozen=True)
class Held:
    """One rule on the rows of all folds, one after the other, repeat by repeat."""

    rows: Floats  # (repeats, n) objective per person, each judged by a rule that did not see them
    folds: int
    size: Floats  # how much each of the rows counts, of the same shape
    clusters: NDArray[np.intp] | None = None  # (n,), where rows belong together

    @property
    def mean(self) -> float:
        """The mean over all rows."""
        return mean_over(self.rows, self.size)

    @property
    def counted(self) -> float:
        """How many people one repeat judges."""
        return counted(self.size) / len(self.rows)


def record_of(ours: Held, best: Held, deployable: bool) -> RuleRecord:
    """Return how a rule did against the best simple one, on the same held-out rows."""
    # Nadeau and Bengio: folds share their training rows, so the variance of the mean of J folds is
    # taken as (1/J + n_test/n_train) times that of one fold's mean; the latter from the rows.
    difference = ours.rows - best.rows
    repeats, gain = len(difference), mean_over(difference, ours.size)
    of_one = 0.0
    if difference.shape[1] > 1:
        spread = (difference - gain) ** 2 * ours.size
        freedom = max(counted(ours.size) - 1.0, 0.5 * counted(ours.size))
        of_one = float(spread.sum() / freedom) / (ours.counted / ours.folds)
        if ours.clusters is not None:
            variance = _variance((difference - gain) * ours.size, ours.clusters)
            of_one = ours.folds * variance / ours.counted**2
    share = 1.0 / (repeats * ours.folds) + 1.0 / (ours.folds - 1)
    return RuleRecord(ours.mean, gain, float(np.sqrt(of_one * share)), deployable)


def _variance(deviations: Floats, clusters: NDArray[np.intp]) -> float:
    """Return the variance of a repeat's sum by those of its clusters, averaged over repeats."""
    sums = np.stack([np.bincount(clusters, one) for one in deviations])
    groups = sums.shape[1]
    return float((sums**2).sum(axis=1).mean() * groups / max(groups - 1, 1))


def _cross_validated(
    recipe: TrainingRecipe, names: Sequence[str], given: Score | None, X: Floats, y: Floats
) -> dict[str, Held]:
    """Return every rule's objective on rows it was not fitted to."""
    seen = recipe.rounded(X)
    chosen = first_by_hash(seen, y, MOST_ROWS)
    # Epochs take so much longer than Newton's steps that their folds are not repeated.
    once = len(chosen) >= ENOUGH or not recipe.repeats_folds(given, X.shape[1])
    repeats = 1 if once else REPEATS
    # Whoever counts more than once may be held out in several folds, as equal rows may.
    found = {name: np.zeros((repeats, FOLDS, len(chosen))) for name in names}
    size = np.zeros((repeats, FOLDS, len(chosen)))

    # Epochs are not what kernels do: there folds would only wait for each other.
    rows = len(chosen) if recipe.repeats_folds(given, X.shape[1]) else 0

    def judge(dealt: tuple[int, int, Floats, Floats]) -> None:
        repeat, fold, kept, out = dealt
        learn, held = np.flatnonzero(kept), np.flatnonzero(out)
        # Responses keep what they made of people: every fold that is judged at once has its own.
        own = copy.deepcopy(recipe) if rows else recipe
        inner = own.of_rows(chosen[learn])
        rules = _fitted(inner, names, given, X[chosen[learn]], kept[learn])
        judges = own.judged_by.of_rows(chosen[held])
        size[repeat, fold] = np.abs(out)
        for name, rule in rules.items():
            at = own.objective_per_person(rule, judges, X[chosen[held]], out[held])
            found[name][repeat, fold, held] = at

    folds = _folds(seen[chosen], y[chosen], repeats)
    codes = None
    if recipe.clusters is not None:
        clusters = recipe.clusters[chosen]
        codes = np.unique(clusters.astype(str), return_inverse=True)[1]
        folds = cluster_folds(y[chosen], repeats, clusters)
    at_once(rows, judge, folds)
    if not is_weighted(y):  # everybody is held out once
        found = {name: values.sum(axis=1) for name, values in found.items()}
        size = np.ones((repeats, len(chosen)))
    elif codes is not None:
        codes = np.tile(codes, FOLDS)
    flat = (repeats, -1)
    return {
        name: Held(values.reshape(flat), FOLDS, size.reshape(flat), codes)
        for name, values in found.items()
    }


def _fitted(
    recipe: TrainingRecipe, names: Sequence[str], given: Score | None, X: Floats, y: Floats
) -> Rules:
    rules = recipe.simple_rules(X, y)
    if any(name not in rules for name in names):
        turned = "annealed" in names
        rules |= recipe.trained_rules(X, y, rules["logistic"], given, turned)
    # What could not be turned on some rows stays the trained rule there.
    return {name: rules[name if name in rules else "trained"] for name in names}


def first_by_hash(X: Floats, y: Floats, most: int) -> Index:
    """Return the positions of at most ``most`` rows, by what they hold and not by order."""
    if len(y) <= most:
        return np.arange(len(y))
    order = np.argsort(row_hashes(X, y, "rows"), kind="stable")
    return np.sort(order[:most])


def _folds(X: Floats, y: Floats, repeats: int) -> Iterator[tuple[int, int, Floats, Floats]]:
    """Yield repeat, fold, and the labels to learn from and to judge by, 0 for nobody.

    Classes are in equal shares. A person of weight 3 is dealt out as three equal rows are.
    """
    for repeat in range(repeats):
        hashes = row_hashes(X, y, f"repeat {repeat}")
        held = np.zeros((FOLDS, len(y)))
        for sign in (-1.0, 1.0):
            members = np.flatnonzero(sign * y > 0.0)
            order = members[np.argsort(hashes[members], kind="stable")]
            ends = np.cumsum(np.abs(y[order]))
            for fold in range(FOLDS):
                dealt = _dealt(ends, fold)
                held[fold, order] = sign * np.diff(dealt, prepend=0.0)
        for fold in range(FOLDS):
            yield repeat, fold, y - held[fold], held[fold]


def cluster_folds(
    y: Floats, repeats: int, clusters: NDArray[Any]
) -> Iterator[tuple[int, int, Floats, Floats]]:
    """Yield the same as `_folds`, with all rows of a cluster in one fold.

    Clusters are dealt out in turn, those with mostly favourable labels before the others.
    """
    names, codes = np.unique(clusters.astype(str), return_inverse=True)
    mostly = np.bincount(codes, y) > 0.0
    for repeat in range(repeats):
        hashes = text_hashes(names, f"repeat {repeat}")
        fold_of = np.empty(len(names), dtype=np.intp)
        fold_of[np.lexsort((hashes, ~mostly))] = np.arange(len(names)) % FOLDS
        for fold in range(FOLDS):
            held = np.where(fold_of[codes] == fold, y, 0.0)
            yield repeat, fold, y - held, held


def text_hashes(names: NDArray[Any], stage: str) -> NDArray[np.uint64]:
    """Return a pseudo-random number per name."""
    import pandas as pd

    return pd.util.hash_array(names.astype(object), hash_key=f"{stage:<16}"[:16], categorize=False)


def _dealt(at: Floats, fold: int) -> Floats:
    """Return how much of a pack of size ``at`` goes to a fold, card by card in turn."""
    rounds = np.floor(at / FOLDS)
    dealt: Floats = rounds + np.clip(at - FOLDS * rounds - fold, 0.0, 1.0)
    return dealt


def row_hashes(X: Floats, y: Floats, stage: str) -> NDArray[np.uint64]:
    """Return a pseudo-random number per row that depends on its values alone, not on the seed."""
    import pandas as pd

    frame = pd.DataFrame(np.column_stack([X, np.sign(y)]))
    key = f"{stage:<16}"[:16]
    columns = [pd.util.hash_array(frame[name].to_numpy(), hash_key=key) for name in frame]
    mixed = np.zeros(len(y), dtype=np.uint64)
    salt = np.uint64(pd.util.hash_array(np.array([stage], dtype=object))[0])
    for column in columns:
        mixed = (mixed ^ column ^ salt) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def all_reach_alike(score: Score, members: tuple[Response, ...], X: Floats) -> bool:
    """Say whether one kind of people responds, and each can raise the score equally far."""
    # Then whoever scores alike ends alike: the decision after response is a threshold on s(x), and
    # the best rule is the best rule for people who do not move, its intercept lowered. True without
    # bounds on values, whatever is immutable and whatever the cost of the move.
    if len(members) != 1 or isinstance(members[0], Population):
        return False
    if isinstance(members[0], NoResponse):
        return True
    rational = rational_people(members[0], score, X)
    if rational is None:
        # A score that bends is reached differently from everywhere.
        return False
    rule, rows = rational.score, torch.from_numpy(rational.rows)
    with torch.no_grad():
        reach = rational.response.scores_after(rule, rows) - rule(rows)
        size = 1.0 + rule(rows).abs().max()
    return float(reach.max() - reach.min()) <= ALIKE * float(size + reach.abs().max())


def correctness(score: Score, people: JudgedMembers, X: Floats, y: Floats) -> Floats:
    """Return, per person, whether the worst member is decided correctly (or the weighted mean)."""
    favourable = y > 0
    right = np.stack([right_chances(m, score, X, favourable) for m in people.members])
    if people.weights is not None:
        mixed: Floats = np.asarray(people.weights) @ right
        return mixed
    worst: Floats = right[np.argmin([mean_over(one, y) for one in right])]
    return worst
