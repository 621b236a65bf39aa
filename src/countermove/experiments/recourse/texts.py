"""Recourse on texts, measured: splits × weights, as Table 5 of the recourse paper.

Sentences to learn from, to choose epoch and threshold by, and to test on are
disjoint; vectors are made once for all cells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import expit

from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.experiments._drawing import OTHER, RIGHT
from countermove.experiments.protocol import Experiment, Measured, Row, Sources, over_splits
from countermove.experiments.recourse._figures import AXES, DASHES
from countermove.randomness import generator
from countermove.recourse.performance import best_f1
from countermove.recourse.recommend import NOT_NEEDED, PROVEN_NONE
from countermove.recourse.text import (
    Antonyms,
    Encoder,
    Options,
    TextAdvice,
    VectorStore,
    WordNet,
    advise,
    audit_text,
    options_of,
    train_text_score,
)
from countermove.scores import Score
from countermove.scores.base import values
from countermove.training import Trainer

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

logger = logging.getLogger(__name__)

HIGHEST_F1 = "highest_f1"

LINES = (("f1", "F1", OTHER), ("recourse_all", "approved or recourse", RIGHT))

Pool = tuple[Options, VectorStore]
"""All sentences with their replacements, and the vectors of advised ones."""


@dataclass(frozen=True, kw_only=True)
class TextExperiment(Experiment[Sources]):
    """Splits × weights of the recourse term, each with every threshold."""

    alone: ClassVar[bool] = True  # vectors are made once for all cells

    dataset: str
    train: int
    selection: int
    test: int
    encoder: Callable[[], Encoder]
    wordnet: str | None = None  # its folder; None: where it usually is
    candidates: int = 10  # replacements per sentence that training looks at
    splits: Sequence[int] = (0, 21, 42)
    weights: Sequence[float] = (0.0, 0.25, 0.8)
    thresholds: Sequence[float | str] = (HIGHEST_F1,)  # or probabilities
    training: Mapping[str, Any] = field(default_factory=dict)  # hidden, dropout; of `Trainer`
    text: str = "text"
    label: str = "label"
    favourable: str = "fresh"

    def given(self, source: Sources, seed: int) -> Pool:
        """Return the sentences, as many as the parts ask for, whatever the splits."""
        if source.texts is None or source.vectors is None:
            raise ParameterError("an experiment on texts needs texts and a store of vectors")
        names = {"text": self.text, "label": self.label, "favourable": self.favourable}
        texts, wanted = source.texts(self.dataset, **names), self.train + self.selection + self.test
        antonyms, encoder = Antonyms(WordNet.load(self.wordnet)), self.encoder()
        if wanted > len(texts):
            raise NotEnoughRowsError(
                f"the parts ask for {wanted:,} texts of {len(texts):,}; make them smaller"
            )
        options = options_of(texts.drawn(wanted), antonyms, source.vectors(encoder))
        # Advised sentences are encoded again from their words, once for all cells.
        return options, VectorStore(encoder)

    def places(self, given: Pool) -> list[tuple[int, float]]:
        """Return splits and weights; the splits are the seeds."""
        return list(product(self.splits, self.weights))

    def measured_at(
        self, place: tuple[int, float], seed: int, given: Pool
    ) -> tuple[list[Row], list[pd.DataFrame]]:
        """Return one row per threshold; beside: the advice, of the first split alone."""
        (split, weight), (options, encoder) = place, given
        parts = _parts(self, options, split)
        score, best = _trained(self, parts, weight, split)
        where = {"dataset": self.dataset, "split": split, "recourse_weight": weight}
        cells, advised = [], []
        for rule in self.thresholds:
            threshold = best if isinstance(rule, str) else rule
            name = rule if isinstance(rule, str) else f"fixed_{rule:g}"
            cell, advice = _cell(self, parts["test"], score, threshold, encoder)
            cells.append(where | {"rule": name} | cell)
            if split == self.splits[0]:
                advised.append(advice.frame().assign(recourse_weight=weight, rule=name))
        logger.info("split %d, weight %g: measured", split, weight)
        return cells, advised

    def beside(self, parts: Sequence[list[pd.DataFrame]]) -> pd.DataFrame:
        """Return the advice."""
        return pd.concat([frame for part in parts for frame in part], ignore_index=True)

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over splits."""
        return over_splits(cells, ["dataset", "rule", "recourse_weight"], sort=True)

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw F1 and recourse over sentences against the weight, one dash per threshold."""
        from plotly.graph_objects import Figure, Scatter

        figure = Figure()
        for (rule, part), dash in zip(means.groupby("rule"), DASHES * len(means), strict=False):
            for measure, label, colour in LINES:
                figure.add_trace(
                    Scatter(
                        x=part["recourse_weight"].tolist(),
                        y=part[measure].tolist(),
                        name=f"{label}, {rule}",
                        line={"color": colour, "dash": dash},
                    )
                )
        return figure.update_xaxes(title=AXES["recourse_weight"])


def _parts(experiment: TextExperiment, pool: Options, split: int) -> dict[str, Options]:
    order = generator(split, "text parts").permutation(len(pool))
    ends = np.cumsum([experiment.train, experiment.selection])
    names = ("train", "selection", "test")
    return {name: pool.some(rows) for name, rows in zip(names, np.split(order, ends), strict=True)}


def _trained(
    experiment: TextExperiment, parts: Mapping[str, Options], weight: float, seed: int
) -> tuple[Score, float]:
    """Return the score, and the threshold of the highest F1 on selection sentences."""
    settings = {"hidden": (), "dropout": 0.3, **experiment.training, "seed": seed}
    score, _ = train_text_score(
        parts["train"],
        parts["selection"],
        recourse_weight=weight,
        candidates=experiment.candidates,
        hidden=settings.pop("hidden"),
        dropout=settings.pop("dropout"),
        trainer=Trainer(**settings),
    )
    held = parts["selection"]
    scores = values(score, held.vectors.astype(np.float64))
    return score, float(expit(best_f1(scores, held.texts.favourable)[0]))


def _cell(
    experiment: TextExperiment, test: Options, score: Score, threshold: float, encoder: Encoder
) -> tuple[dict[str, Any], TextAdvice]:
    """Return what one rule is worth on test sentences, and its advice over every replacement."""
    first = advise(score, test, encoder, threshold, experiment.candidates)
    every = advise(score, test, encoder, threshold)
    short, full = (audit_text(score, advice, threshold) for advice in (first, every))
    refused = every.status != NOT_NEEDED
    proven = (every.status[refused] == PROVEN_NONE).mean() if refused.any() else np.nan
    return {
        "threshold": threshold,
        **full.performance.to_json(),
        "refused": int(refused.sum()),
        # Over ``candidates`` replacements, as published, and over all of them.
        "recourse_neg": short.recourse_neg.value,
        "recourse_all": short.recourse_all.value,
        "recourse_neg_every": full.recourse_neg.value,
        "recourse_all_every": full.recourse_all.value,
        "proven_none": float(proven),
    }, every
