"""A scikit-learn classifier trained so that those it refuses have recourse."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.errors import DataError, ParameterError
from countermove.execution import few_threads
from countermove.people import ActionSet
from countermove.randomness import torch_generator
from countermove.recourse.objective import (
    RecourseRisk,
    movable_groups,
    rows_with_bounds,
    usual_actions,
)
from countermove.response import Response
from countermove.response.named import named_response
from countermove.scores import MLPScore, Score
from countermove.training import History, Loss, Trainer, TrainingRows
from countermove.training._labels import class_factors
from countermove.training.estimator import ScoreClassifier, Table

ClassWeight = str | Mapping[Any, float] | None


class RecourseClassifier(ScoreClassifier):
    r"""Learn a rule that decides well and leaves the refused an action to take.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> from countermove import RecourseClassifier, recommend
    >>> rule = RecourseClassifier(max_epochs=2).fit(X, y)
    >>> recommend(rule, X).action.shape
    (100, 4)

    .. math:: \min_s \frac1n \sum_i \ell\bigl(s(x_i), y_i\bigr)
              + \lambda \min_{\delta \in \Delta_i} \ell\bigl(s(x_i + \delta), 1\bigr)

    This raises the share of people with recourse; it promises nothing (that is what
    calibration is for). See `countermove.recourse.objective.RecourseRisk`.

    Parameters
    ----------
    actions
        :math:`\Delta`. A step of 1 is one standard deviation of the rows given to ``fit``,
        bounds on ``x_new`` count from their mean; with ``units="original"``, or made by
        ``ActionSet.from_schema``, they are in the units of ``X``. Bounds of shape (n, d) are
        those of the rows given to ``fit``. None: every feature by at most 0.75.
    recourse_weight
        :math:`\lambda \ge 0`; 0 is plain training.
    hidden, activation, dropout
        Of the network (`MLPScore`), unless ``score`` is given.
    score
        A `Score` to start from (copied) instead of the network; it reads standardised rows.
    response
        People's response inside the loss of the labels: a name (``"best"``, ``"smooth"``,
        ``"none"``) or a `Response`; it needs a ``score`` with a slope. None: nobody moves. Of
        a `Population` the mean loss over its types counts.
    class_weight
        Of the labels' loss, never of the recourse term: None; ``"balanced"``, both
        classes in equal parts with mean weight one; or a weight per label.
    learning_rate, batch_size, max_epochs, patience
        See `Trainer`; all 15 epochs are run. The paper steps by 0.002 and 15 rows, which takes
        more than twice as long (`benchmarks/bench_recourse_training.py` compares the rules).
    validation_fraction
        Share of the rows, per class, that chooses the epoch; 0: the training rows do.
    selection
        What epochs are chosen by: ``"f1"`` (highest over all thresholds, for a threshold
        that is chosen afterwards), ``"promised_f1"`` (highest over the thresholds that 95 % of
        the people choosing reach, for a promise), ``"loss"`` or ``"accuracy"`` (at one half).
    favourable
        Label people want; None: ``classes_[1]``.
    random_state
        Decides the split, the start, the shuffles and dropout.
    optimiser
        ``"auto"``: without a recourse term, scores that are linear in their parameters are
        trained to the optimum by Newton's method, on all rows; else Adam. See `Trainer`.
    standardise
        As in `StrategicClassifier`: rows, ``score_``, ``actions_`` and advice are in the units of
        ``X``, training in standard deviations. False: ``X`` is standardised already.
    refits, verbose
        As in `StrategicClassifier`.

    Attributes
    ----------
    score_ : Score
        The rule at threshold one half, dropout off; it reads ``X`` as given.
    standardised_score_, standardiser_ : Score, Standardiser or None
        The same rule for standardised rows, and their means and standard deviations.
    actions_ : ActionSet
        What was trained for, in the units of ``X``.
    history_ : History
        Epoch by epoch.
    classes_, favourable_
        Both labels, and the one people want.
    train_ids_ : array
        Ids of every row that decided something here, if ids were given to ``fit``.
    """

    _of_epochs: ClassVar[tuple[str, ...]] = (*ScoreClassifier._of_epochs, "selection")

    def __init__(
        self,
        actions: ActionSet | None = None,
        recourse_weight: float = 0.8,
        hidden: Sequence[int] = (100, 100, 100),
        activation: str = "tanh",
        dropout: float = 0.3,
        score: Score | None = None,
        response: Any = None,
        class_weight: ClassWeight = None,
        learning_rate: float = 0.003,
        batch_size: int = 64,
        max_epochs: int = 15,
        patience: int = 15,
        validation_fraction: float = 0.2,
        selection: str = "f1",
        favourable: Any = None,
        random_state: Any = 0,
        optimiser: str = "auto",
        standardise: bool = True,
        refits: int = 0,
        verbose: int = 0,
    ) -> None:
        self.actions = actions
        self.recourse_weight = recourse_weight
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.score = score
        self.response = response
        self.class_weight = class_weight
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.selection = selection
        self.favourable = favourable
        self.random_state = random_state
        self.optimiser = optimiser
        self.standardise = standardise
        self.refits = refits
        self.verbose = verbose

    def fit(
        self,
        X: Table,
        y: Table,
        sample_weight: Any = None,
        *,
        ids: Table | None = None,
        validation: tuple[Table, Table] | None = None,
        checkpoint: Path | None = None,
        progress: bool = False,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X, y
            People, shape (n, d), and two labels.
        sample_weight
            How often each person counts, shape (n,), in both terms; 0 leaves the row out.
            Weights that are not all whole numbers count in proportion: their mean is brought to 1.
        ids
            Row ids, kept as ``train_ids_`` so that calibration can find an overlap.
        validation
            Rows to choose the epoch by; by default a share of ``X, y`` is set aside.
        checkpoint, progress
            See `Trainer.fit`.
        """
        rows, signs, counting = self._people(X, y, sample_weight)
        self._weighted = sample_weight is not None
        n, d = len(np.asarray(y)), rows.shape[1]
        seed = self._seed()
        given = usual_actions(d) if self.actions is None else self.actions
        actions = self._units.actions(given)
        limited = rows_with_bounds(rows, actions if len(rows) == n else actions.of_rows(counting))
        score, trainer = self._begin(d, seed), self._trainer(seed)
        objective = self._objective(d, actions, signs)
        newton = trainer.method_for(score, objective) == "newton"
        if newton:
            self._warn_of_epochs()
        if validation is not None:
            others, other_signs = self._checked(*validation)
            parts = (limited, signs, rows_with_bounds(others, actions), other_signs)
        elif newton:
            # Nothing is chosen by rows set aside, so none are.
            parts = (limited, signs, limited, signs)
        else:
            kept, held = self._held_out(signs, seed)
            parts = (limited[kept], signs[kept], limited[held], signs[held])
            # Bounds of their own follow people into the sample.
            order = torch.from_numpy(counting[np.append(kept, held)])
            objective = self._objective(d, actions, signs[kept]).of_rows(order)
        with few_threads(rows.size):
            self.history_: History = trainer.fit(
                score,
                objective,
                TrainingRows(*map(torch.from_numpy, parts)),
                checkpoint=checkpoint,
                progress=progress or bool(self.verbose),
            )
        self._publish(score)
        self.actions_ = self._units.actions_as_given(given)
        if ids is not None:
            self.train_ids_: NDArray[Any] = _checked_ids(ids, n)
        self.refits_ = self._refitted(X, y, sample_weight, validation)
        return self

    def of_standardised_rows(self) -> Self:
        """Return the fitted classifier as one that reads standardised rows, actions included."""
        inside = super().of_standardised_rows()
        inside.actions_ = self._units.actions(self.actions_)
        return inside

    def _trainer(self, seed: int) -> Trainer:
        return Trainer(
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.patience,
            seed=seed,
        )

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect of decisions at one half."""
        tags = super().__sklearn_tags__()
        # The recourse term approves more than the labels say, and the best F1 is at another cut.
        tags.classifier_tags.poor_score = self.recourse_weight != 0.0 or "f1" in self.selection
        return tags

    def _begin(self, n_features: int, seed: int) -> Score:
        given = self._start(n_features)
        if given is not None:
            return copy.deepcopy(given)
        if self.response is not None:
            raise ParameterError(
                "a response reads the slope of the score, which a network of all features lacks; "
                "give score=LinearScore(d) or PartlyLinearScore(d, movable)"
            )
        draws = torch_generator(seed, "start")
        return MLPScore(n_features, self.hidden, self.activation, self.dropout, draws)

    def _objective(self, n_features: int, actions: ActionSet, signs: Floats) -> RecourseRisk:
        """Return what is minimised; ``actions`` are in standardised units."""
        response = self.response
        if isinstance(response, str):
            response = named_response(response, actions=actions)
        elif isinstance(response, Response):
            response = self._units.response(response)
        elif response is not None:
            raise ParameterError(f"response is None, a name or a Response, got {response!r}")
        return RecourseRisk(
            n_features,
            self.recourse_weight,
            Loss("logistic", self._weights(signs), self._weighted),
            response,
            actions.A,
            movable_groups(actions, n_features),
            self.selection,
        )

    def _weights(self, y: Floats) -> tuple[float, float] | None:
        """Return the weights of the refused and the favoured class."""
        found: tuple[float, float] | None = class_factors(
            y, self.class_weight, self.classes_, self.favourable_
        )
        return found


def _checked_ids(ids: Table, n_rows: int) -> NDArray[Any]:
    given = np.asarray(ids)
    if given.shape != (n_rows,):
        raise DataError(f"{n_rows} people need as many ids, got shape {given.shape}")
    return given.copy()
