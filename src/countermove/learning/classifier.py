"""A scikit-learn classifier that accounts for people's response.

``predict`` and ``score`` judge people where they stand, as scikit-learn expects;
``respond`` and ``score_after_response`` let them respond to the rule first.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from countermove._types import Floats
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.execution import Mapper, few_threads
from countermove.learning._populations import JudgedMembers, population_at
from countermove.learning._recipe import TrainingRecipe, check_summable
from countermove.learning.chosen_costs import (
    AnyCost,
    chosen_cost,
    costs_to_judge_by,
    costs_to_train_at,
)
from countermove.learning.evaluation import judged_accuracy
from countermove.learning.regularisers import Regulariser
from countermove.learning.scoring import own_people_error, searched_assumptions
from countermove.learning.selection import Choice, checked_clusters
from countermove.learning.trees import TreeRecipe, TreeTraining
from countermove.people import ActionSet, Cost
from countermove.people.actions import checked_actions
from countermove.response import RepresentationResponse
from countermove.response.base import Responses
from countermove.response.response_set import discretised
from countermove.response.smooth import check_positive
from countermove.scores import Score
from countermove.scores.base import fit_slope
from countermove.scores.covariance import RuleCovariance
from countermove.scores.index_trees import IndexTreesScore
from countermove.training import History, Loss, Trainer, TrainingRows
from countermove.training._labels import class_factors
from countermove.training.estimator import ParameterBesideMethod, ScoreClassifier, Table
from countermove.training.streamed import PartRows, StreamedRows
from countermove.training.units import names_of

DECIMALS = 6
"""Of standardised rows; what follows them is rounding, which depends on the units given."""


class StrategicClassifier(ScoreClassifier):
    r"""Strategic empirical risk minimisation.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> from countermove import StrategicClassifier
    >>> rule = StrategicClassifier().fit(X, y)
    >>> blind = StrategicClassifier(response="none").fit(X, y)
    >>> blind.score_after_response(X, y, response="best") < rule.score_after_response(X, y)
    True

    .. math:: \min_s \frac1n \sum_i \ell\bigl(y_i, s(x_i^{after})\bigr) + \lambda R(s)

    Newton's method (see ``optimiser``) gives each weight a normal prior of sd 2.5 per standard
    deviation of its column, :math:`\lVert w \rVert^2 / (2 \cdot 2.5^2 n)` in the mean loss. Where
    nobody moves this is scikit-learn's ``LogisticRegression(C=6.25)`` on standardised rows.

    Parameters
    ----------
    score
        A `Score` to start from (copied); None: linear. It reads standardised rows, as the
        ``standardised_score_`` of another fit does. ``"trees"`` or a `TreeTraining`: boosted
        trees of a monotone index of what people can change, for best responders.
    cost, actions
        What a move costs and which are allowed; None: ``QuadraticCost(1.0)``, everything may
        move. A step of 1 is one standard deviation of the rows given to ``fit``, bounds on
        ``x_new`` count from their mean; with ``units="original"`` both are in the units of
        ``X``, as are actions made by ``ActionSet.from_schema``. A `FlexibleCost` is learned
        with the rule, of an `UnknownCost` the worst counts. Bounds of shape (n, d) belong to
        the n rows given to ``fit`` (followed by those of ``validation``, if given).
    response
        ``"best"``, ``"smooth"``, ``"published"``, ``"none"`` (blind training), ``"ascent"`` (for
        scores that are not affine in what moves), a `Response`, or a robust population: a list
        of these or ``{"kind": "robust", "members": [...], "weights": [...], "softness": …}``; or
        people who differ: a `Population` or ``{"kind": "population", "never": …, "log_sd": …}``.
    temperature, eval_temperature
        Of the smoothed step in training, and in early stopping and evaluation
        (None: the same), for responses given by name.
    regulariser
        Any `Regulariser`; it carries its strength.
    loss
        ``"logistic"`` (log-odds) or ``"hinge"``; see `Loss`.
    optimiser
        ``"auto"``: Newton's method to the optimum where the score is linear in its parameters and
        the loss is logistic, else Adam; see `Trainer`. The optimum does not depend on the seed.
    learning_rate, batch_size, max_epochs, patience
        Of Adam; see `Trainer`.
    validation_fraction
        Share of the rows, per class, that stops Adam early; 0 stops by the
        training rows. Newton's method learns from all rows.
    favourable
        Label people want; None: ``classes_[1]``.
    random_state
        Decides the split, the shuffles and a random start.
    start
        Where training starts: ``"blind"`` (trained as if nobody moved, then the best intercept
        after response), ``"means"`` (the line between the class means), ``"random"`` or
        ``"given"`` (``score``). None: random for ``"published"``, means for ``"none"``, else blind.
    calibrate
        Whether the intercept is settled after training by the accuracy after
        response on training and validation rows; None: yes, except for ``"published"``.
    stop_by
        Which epoch is kept, as `Trainer` has it; ``"accuracy"`` gives way to ``"loss"``
        where the intercept is settled afterwards.
    selection
        ``"guarded"``: the trained rule is published if a gain over the best simple rule is to be
        expected after repeated cross-validation (`Choice`); ``"least_regret"``, or a
        `RegretSelection` with payoffs and prices: the rule that loses least by not knowing how
        people respond, where ``response`` is one plausible answer; ``"none"``: the trained rule
        always. Where nobody moves, and where the intercept is not settled, there is nothing to
        choose.
    allow_no_recourse
        Whether a simple rule under which nobody can move may be published.
    standardise
        Whether rows are standardised for training and response by the mean and standard deviation
        of those given to ``fit``, so that units do not matter (a column that does not vary keeps
        its unit). Rows, actions and ``coef_`` stay in the units of ``X``; what people pay is per
        standard deviation. False: ``X`` is standardised already.
    refits
        How often a score without a covariance (a network) is fitted again to rows drawn with
        replacement, so that `recommend` can give advice with a ``confidence``; each costs as much
        as the fit itself. 0: none; else at least 3, and 20 are usual.
    class_weight
        How much people of each label count in the loss and in the accuracy that settles the
        intercept and chooses the rule: None (alike), ``"balanced"`` (both labels in equal parts)
        or a weight per label. Units stay those of everybody.
    verbose
        Above 0: a progress bar on a terminal, with the time left; nothing where nobody watches.

    Attributes
    ----------
    score_ : Score
        The published rule: :math:`s(x) \ge 0` is the favourable decision; it reads ``X`` as given.
    standardised_score_, standardiser_ : Score, Standardiser or None
        The same rule for standardised rows, and their means and standard deviations.
    coef_, intercept_ : arrays of shape (1, d) and (1,)
        Of a linear ``score_``, in the units of ``X``.
    history_ : History
        Epoch by epoch.
    probability_slope_ : float
        Log-odds per unit of score: 1 for the logistic loss; for the hinge loss and trees of an
        index, whose scores are none, fitted to the validation people as the rule judges them.
    choice_ : Choice or None
        Whether ``score_`` is the trained rule or a simple one, and on what evidence; None where
        there was nothing to choose.
    cost_ : Cost, UnknownCost or None
        What a move costs: as given, or as learned where it was flexible.
    covariance_ : RuleCovariance or None
        Of a linear ``standardised_score_``: how far a fit to as many other rows would move it.
    refits_ : BootstrapRefits or None
        Of other scores, where ``refits`` asks for it: fits to rows drawn with replacement.
    classes_ : array
        Both labels, sorted.
    favourable_ : label
        The label people want.
    """

    _of_epochs: ClassVar[tuple[str, ...]] = (*ScoreClassifier._of_epochs, "stop_by")
    _searched: Sequence[str] = ()
    """Assumptions that a search varies, where this is one of its candidates."""

    def __init__(
        self,
        score: Score | TreeTraining | str | None = None,
        cost: AnyCost | None = None,
        actions: ActionSet | None = None,
        response: Any = "best",
        temperature: float = 0.5,
        eval_temperature: float | None = None,
        regulariser: Regulariser | None = None,
        loss: str = "logistic",
        optimiser: str = "auto",
        learning_rate: float = 0.05,
        batch_size: int = 64,
        max_epochs: int = 50,
        patience: int = 7,
        validation_fraction: float = 0.2,
        favourable: Any = None,
        random_state: Any = 0,
        start: str | None = None,
        calibrate: bool | None = None,
        stop_by: str = "accuracy",
        selection: Any = "guarded",
        allow_no_recourse: bool = False,
        standardise: bool = True,
        refits: int = 0,
        class_weight: Any = None,
        verbose: int = 0,
    ) -> None:
        self.score = score
        self.cost = cost
        self.actions = actions
        self.response = response
        self.temperature = temperature
        self.eval_temperature = eval_temperature
        self.regulariser = regulariser
        self.loss = loss
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.favourable = favourable
        self.random_state = random_state
        self.start = start
        self.calibrate = calibrate
        self.stop_by = stop_by
        self.selection = selection
        self.allow_no_recourse = allow_no_recourse
        self.standardise = standardise
        self.refits = refits
        self.class_weight = class_weight
        self.verbose = verbose

    def fit(
        self,
        X: Table,
        y: Table,
        sample_weight: Any = None,
        *,
        validation: tuple[Table, Table] | None = None,
        clusters: NDArray[Any] | None = None,
        checkpoint: Path | None = None,
        progress: bool = False,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X, y
            People, shape (n, d), and two labels.
        sample_weight
            How often each person counts, shape (n,): a weight of 2 is the row twice, 0 is none.
            Exactly so where Newton's method trains; Adam draws other batches, trees other bins.
            Weights that are not all whole numbers count in proportion: their mean is brought to 1.
        validation
            Rows to stop by; by default a share of ``X, y`` is set aside.
        clusters
            Whose rows belong together (a household), those of ``X``, then those of
            ``validation``: folds keep clusters whole, and gains are judged cluster by cluster.
        checkpoint
            File to write after every epoch and to resume from (see `Trainer.fit`).
        progress
            Show a progress bar, as ``verbose`` does.
        """
        rows, signs, counting = self._people(X, y, sample_weight)
        factors = class_factors(signs, self.class_weight, self.classes_, self.favourable_)
        if factors is not None:
            signs = signs * np.where(signs > 0.0, factors[1], factors[0])
        seed, everybody = self._seed(), np.arange(len(rows))
        recipe = self._recipe(seed, sample_weight is not None or factors is not None)
        whole = TrainingRows(*2 * (torch.from_numpy(rows), torch.from_numpy(signs)))
        # Rules are compared on the same rows whatever the seed.
        kept, held = self._held_out(signs, 0 if recipe.guards else seed)
        newton = recipe.uses_newton(self._start(rows.shape[1]), rows.shape[1])
        if newton:
            self._warn_of_epochs()
        if validation is not None:
            valid = self._checked(*validation)
            sample = TrainingRows(whole.X, whole.y, *map(torch.from_numpy, valid))
            order = np.arange(len(rows) + len(valid[1]))
            held = order[len(rows) :]
            counting = np.append(counting, np.arange(len(valid[1])) + _num_samples(X))
        elif newton:
            # Nothing is chosen by rows set aside, so none are.
            sample, order, held = whole, np.tile(everybody, 2), everybody
        else:
            parts = (rows[kept], signs[kept], rows[held], signs[held])
            sample, order = TrainingRows(*map(torch.from_numpy, parts)), np.append(kept, held)
        listed = _num_samples(X) + (0 if validation is None else _num_samples(validation[0]))
        if clusters is not None:
            recipe = replace(recipe, clusters=checked_clusters(clusters, listed))
        recipe = self._of_rows(recipe, counting[order], listed)
        with few_threads(sample.X.numel()):
            self._keep(recipe, sample, counting[held], checkpoint, progress)
            known = self.covariance_ is not None
            self.refits_ = None if known else self._refitted(X, y, sample_weight, validation)
        return self

    def fit_parts(
        self,
        train: PartRows,
        validation: PartRows,
        *,
        held: int = 200_000,
        mapper: Mapper | None = None,
        checkpoint: Path | None = None,
        progress: bool = False,
    ) -> Self:
        r"""Train on standardised rows that stay in parquet parts; labels are -1 and +1.

        Every row is learned from. Starts, early stopping and the intercept look at about
        ``held`` rows of each table, drawn once: the intercept is then off the best one on
        all rows by :math:`O(1/\sqrt{held})` in accuracy.

        Parameters
        ----------
        train, validation
            Rows in parts, standardised as the chain leaves them; ``standardise`` is not read.
        held
            Rows of each that are held in memory.
        mapper
            Who sums over the rows (Newton's method, L-BFGS), part by part: the same sum, to
            rounding, as in one piece. Mini-batches (Adam) are streamed here; where the loss is
            smooth, L-BFGS on all rows polishes what they end at, and ``history_`` says how far.
        checkpoint, progress
            As in `fit`.
        """
        if self.refits:
            raise ParameterError(
                f"refits={self.refits!r} draws rows with replacement, for which they must be in "
                "memory (`fit`); rows in parts are fitted with refits=0"
            )
        if self._trees() is not None:
            raise ParameterError(
                "trees are boosted on rows in memory (`fit`); for rows in parts train a linear or "
                "partly linear score"
            )
        seed = self._seed()
        self.classes_, self.favourable_ = np.array([-1.0, 1.0]), 1.0
        self.n_features_in_, self.standardiser_ = len(train.features), None
        recipe = self._recipe(seed)
        check_summable(recipe, self.optimiser)
        sample = StreamedRows.of(train, validation, seed, held, mapper)
        if train.windows:
            X = np.vstack([sample.X.numpy(), sample.X_validation.numpy()])
            recipe = recipe.with_windows(X, sample.windows)
        if recipe.uses_newton(self._start(self.n_features_in_), self.n_features_in_):
            self._warn_of_epochs()
        order = np.arange(len(sample.y_validation))
        return self._keep(recipe, sample, order, checkpoint, progress)

    def _keep(
        self,
        recipe: TrainingRecipe,
        sample: TrainingRows,
        held: NDArray[np.intp],
        checkpoint: Path | None,
        progress: bool,
    ) -> Self:
        """Fit the recipe and remember what it made."""
        given = self._start(sample.X.shape[1])
        shown = progress or bool(self.verbose)
        fit = recipe.fit(given, sample, checkpoint=checkpoint, progress=shown)
        self._publish(fit.score)
        self.history_: History = fit.history
        self.choice_: Choice | None = self._as_given(fit.choice)
        self.cost_: AnyCost | None = fit.cost or chosen_cost(self.cost)
        valid = sample.X_validation.numpy(), sample.y_validation.numpy()
        self.probability_slope_: float = self._slope(*valid, held)
        self.covariance_: RuleCovariance | None = recipe.covariance(fit.score, sample)
        return self

    def _as_given(self, choice: Choice | None) -> Choice | None:
        """Return the choice with its rules in the units of the rows given."""
        unit = self.standardiser_
        if choice is None or unit is None:
            return choice
        scores = {
            name: score.before_standardising(unit.mean, unit.scale)
            for name, score in choice.scores.items()
        }
        return replace(choice, scores=scores)

    def respond(self, X: Table, response: Any = None) -> Responses[Any]:
        """Return where people move to in response to the rule: rows in the units of ``X``.

        What they pay is per standard deviation, as the cost is.

        Parameters
        ----------
        X
            People, shape (n, d).
        response
            As in the constructor; None: the one trained with, at its evaluation temperature.
        """
        given, people = self._rows(X), self._judging(response).only
        rows, score = self._inside(given), self.standardised_score_
        answer = people.respond(score, rows)
        if isinstance(people, RepresentationResponse):
            return answer
        return replace(answer, x_new=self._units.moved_as_given(given, rows, answer.x_new, score))

    def predict_after_response(self, X: Table, response: Any = None) -> NDArray[Any]:
        """Return the labels decided once people have moved."""
        rows, people = self._inside(self._rows(X)), self._judging(response).only
        return self._named(people.decisions_after(self.standardised_score_, rows))

    def score_after_response(
        self, X: Table, y: Table, response: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the accuracy once people have moved; of a robust response, the worst member's.

        A robust response with weights gives the weighted mean instead. In a search, score with
        `after_response`, whose people are the same for every candidate.

        Parameters
        ----------
        X, y
            People, shape (n, d), and their labels.
        response
            As in the constructor; None: the one trained with, at its evaluation temperature.
        sample_weight
            How much each person counts, shape (n,).
        """
        check_is_fitted(self)
        if response is None and self._searched:
            raise own_people_error(self._searched)
        people = self._judging(response)
        rows, signs = self._checked(X, y)
        judged = people.members, people.weights, sample_weight
        return judged_accuracy(self.standardised_score_, rows, signs, *judged)

    def _accuracy(self, X: Table, y: Table, sample_weight: Any = None) -> float:
        """Return the accuracy, nobody moving: not what candidates are to be compared by."""
        if self._searched:
            warnings.warn(
                f"a search over {', '.join(self._searched)} that scores by the accuracy with "
                "nobody moving picks the rule that expects nobody to move; give it "
                "scoring=after_response('best', cost=..., actions=...)",
                UserWarning,
                stacklevel=2,
            )
        return float(ClassifierMixin.score(self, X, y, sample_weight))

    score = ParameterBesideMethod(_accuracy)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a search that judges candidates by people of their own is refused."""
        self._searched = searched_assumptions(params)
        super().set_params(**params)
        return self

    def of_standardised_rows(self) -> Self:
        """Return the fitted classifier as one that reads standardised rows, actions included."""
        inside = super().of_standardised_rows()
        inside.actions = self._units.actions(self.actions)
        return inside

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect: two classes."""
        tags = super().__sklearn_tags__()
        # A rule that waits for people to move refuses many of them where they stand.
        tags.classifier_tags.poor_score = self.response != "none"
        return tags

    def _recipe(self, seed: int, weighted: bool = False) -> TrainingRecipe:
        trainer = Trainer(
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.patience,
            seed=seed,
            stop_by=self.stop_by,
        )
        if not (isinstance(self.refits, int | np.integer) and self.refits >= 0):
            raise ParameterError(f"refits is a number of fits, 0 or more; got {self.refits!r}")
        check_positive(temperature=self.temperature, eval_temperature=self._judging_temperature())
        cost = chosen_cost(self.cost)
        trained, judging = costs_to_train_at(cost), costs_to_judge_by(cost)
        people = self._population(trained, self.response, self.temperature)
        same = self.eval_temperature is None and trained == judging
        judges = self._population(judging, self.response, self._judging_temperature())
        recipe = TrainingRecipe(
            trained_against=people,
            judged_by=people if same else judges,
            trainer=trainer,
            loss=Loss(self.loss, weighted=weighted),
            regulariser=_checked_regulariser(self.regulariser),
            start=self.start,
            calibrate=self.calibrate,
            cost=cost,
            selection=self.selection,
            allow_no_recourse=self.allow_no_recourse,
            decimals=None if self.standardiser_ is None else DECIMALS,
        )
        trees = self._trees()
        return recipe if trees is None else TreeRecipe.of(recipe, trees)

    def _trees(self) -> TreeTraining | None:
        """Return how trees are boosted, where they are asked for."""
        given = self.__dict__["score"]
        if isinstance(given, str) and given != "trees":
            raise UnknownNameError(f"no score is called {given!r}: {nearest(given, ('trees',))}")
        if isinstance(given, str):
            return TreeTraining()
        return given if isinstance(given, TreeTraining) else None

    def _start(self, n_features: int) -> Score | None:
        return None if self._trees() is not None else super()._start(n_features)

    @staticmethod
    def _of_rows(recipe: TrainingRecipe, order: NDArray[np.intp], listed: int) -> TrainingRecipe:
        """Return the recipe for the rows in ``order``, of ``listed`` people with bounds."""
        for member in (*recipe.trained_against.members, *recipe.judged_by.members):
            member.actions.check_people(listed, "training and validation together")
        return recipe.of_rows(order)

    def _slope(self, X: Floats, y: Floats, order: NDArray[np.intp]) -> float:
        """Return what turns scores into log-odds, judged by the validation rows in ``order``."""
        # An index beyond its threshold is no log-odds either.
        if self.loss == "logistic" and not isinstance(self.standardised_score_, IndexTreesScore):
            return 1.0
        members = self._judging(None).of_rows(order).members
        kinds = [kind for member in members for _, kind in discretised(member)]
        with torch.no_grad():
            rule, people = self.standardised_score_, torch.from_numpy(X)
            after = [kind.scores_after(rule, people).numpy() for kind in kinds]
        return fit_slope(np.concatenate(after), np.tile(y, len(kinds)))

    def _judging(self, response: Any) -> JudgedMembers:
        chosen = self.response if response is None else response
        costs = costs_to_judge_by(self.cost_)
        return self._population(costs, chosen, self._judging_temperature())

    def _population(
        self, costs: Sequence[Cost | None], response: Any, temperature: float
    ) -> JudgedMembers:
        """Return the people meant, as they respond in standardised rows."""
        actions = checked_actions(self.actions, names_of(self))
        people = population_at(costs, response, actions, temperature)
        return replace(people, members=tuple(map(self._units.response, people.members)))

    def _judging_temperature(self) -> float:
        return self.temperature if self.eval_temperature is None else self.eval_temperature


def _checked_regulariser(regulariser: Any) -> Regulariser | None:
    """Return what is added to the loss, where it is something that can be."""
    if regulariser is None or hasattr(regulariser, "strength"):
        checked: Regulariser | None = regulariser
        return checked
    raise ParameterError(
        f"a regulariser is one of L2, ExpectedUtility, SocialBurden and Recourse, for example "
        f"L2(0.1), or None; got {regulariser!r}"
    )
