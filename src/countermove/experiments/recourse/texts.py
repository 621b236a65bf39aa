"""Recourse on texts, measured: splits × weights, as Table 5 of the recourse paper.

Sentences to learn from, to choose epoch and threshold by, and to test on are
disjoint; vectors are made once for all cells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import expit

from countermove.data.texts import Texts
from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.execution import Mapper
from countermove.experiments.protocol import Experiment, Measured, Sources, over_splits
from countermove.experiments.recourse.figures import text_figure
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

Stores = Callable[[Encoder], VectorStore]
"""Gives the vectors kept for an encoder."""


@dataclass(frozen=True, kw_only=True)
class TextExperiment(Experiment[Sources]):
    r"""What varies, and what does not.

    Parameters
    ----------
    dataset
        What the cells are called.
    train, selection, test
        Sentences of each part.
    encoder, wordnet
        Make the encoder; name WordNet's folder (None: where it usually is).
    candidates
        Replacements per sentence that training looks at.
    splits
        Seeds, one split and one start each.
    weights
        :math:`\lambda` of the recourse term; 0 is plain training.
    thresholds
        Ways to set the threshold, each measured: ``"highest_f1"`` on selection sentences, or
        a probability.
    hidden, dropout
        Of the network on the vectors; no hidden layer is a linear score.
    settings
        Arguments of `Trainer`.
    text, label, favourable
        Columns of the file, and the label that authors hope for.
    """

    dataset: str
    train: int
    selection: int
    test: int
    encoder: Callable[[], Encoder]
    wordnet: str | None = None
    candidates: int = 10
    splits: Sequence[int] = (0, 21, 42)
    weights: Sequence[float] = (0.0, 0.25, 0.8)
    thresholds: Sequence[float | str] = (HIGHEST_F1,)
    hidden: tuple[int, ...] = ()
    dropout: float = 0.3
    settings: Mapping[str, Any] = field(default_factory=dict)
    text: str = "text"
    label: str = "label"
    favourable: str = "fresh"

    def cells(self, source: Sources, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Return one row per split, weight and threshold."""
        return self.measure(source, seed, mapper).cells

    def measure(self, source: Sources, seed: int, mapper: Mapper | None = None) -> Measured:
        """Train every score of the sentences; the splits are the seeds. Beside: advice."""
        if source.texts is None or source.vectors is None:
            raise ParameterError("an experiment on texts needs texts and a store of vectors")
        names = {"text": self.text, "label": self.label, "favourable": self.favourable}
        return run_text_experiment(self, source.texts(self.dataset, **names), source.vectors)

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over splits."""
        return over_splits(cells, ["dataset", "rule", "recourse_weight"], sort=True)

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw performance and recourse against the weight of the recourse term."""
        return text_figure(means, title)


def run_text_experiment(experiment: TextExperiment, texts: Texts, stores: Stores) -> Measured:
    """Return one row per split, weight and threshold, and the advice of the first split.

    The sentences used are as many as the parts ask for, drawn the same way whatever the
    splits. Columns of a row: dataset, split, recourse_weight, rule, threshold; those of
    `Performance`; refused; recourse_neg and recourse_all over ``candidates`` replacements
    (as published) and, named ``_every``, over all of them; the share of the refused for whom
    it is proven that no single replacement does.
    """
    antonyms = Antonyms(WordNet.load(experiment.wordnet))
    encoder = experiment.encoder()
    wanted = experiment.train + experiment.selection + experiment.test
    if wanted > len(texts):
        raise NotEnoughRowsError(
            f"the parts ask for {wanted:,} texts of {len(texts):,}; make them smaller"
        )
    pool = options_of(texts.drawn(wanted), antonyms, stores(encoder))
    # Advised sentences are encoded again from their words, once for all cells.
    again = VectorStore(encoder)
    cells, advised = [], []
    for split, weight in product(experiment.splits, experiment.weights):
        parts = _parts(experiment, pool, split)
        score, chosen = _trained(experiment, parts, weight, split)
        at = {"dataset": experiment.dataset, "split": split, "recourse_weight": weight}
        for rule in experiment.thresholds:
            threshold = chosen if isinstance(rule, str) else rule
            name = rule if isinstance(rule, str) else f"fixed_{rule:g}"
            cell, advice = _cell(experiment, parts["test"], score, threshold, again)
            cells.append(at | {"rule": name} | cell)
            if split == experiment.splits[0]:
                advised.append(advice.frame().assign(recourse_weight=weight, rule=name))
        logger.info("split %d, weight %g: measured", split, weight)
    return Measured(pd.DataFrame(cells), pd.concat(advised, ignore_index=True))


def _parts(experiment: TextExperiment, pool: Options, split: int) -> dict[str, Options]:
    order = generator(split, "text parts").permutation(len(pool))
    ends = np.cumsum([experiment.train, experiment.selection])
    names = ("train", "selection", "test")
    return {name: pool.some(rows) for name, rows in zip(names, np.split(order, ends), strict=True)}


def _trained(
    experiment: TextExperiment, parts: Mapping[str, Options], weight: float, seed: int
) -> tuple[Score, float]:
    """Return the score, and the threshold of the highest F1 on selection sentences."""
    score, _ = train_text_score(
        parts["train"],
        parts["selection"],
        recourse_weight=weight,
        candidates=experiment.candidates,
        hidden=experiment.hidden,
        dropout=experiment.dropout,
        trainer=Trainer(**{**experiment.settings, "seed": seed}),
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
        "recourse_neg": short.recourse_neg.value,
        "recourse_all": short.recourse_all.value,
        "recourse_neg_every": full.recourse_neg.value,
        "recourse_all_every": full.recourse_all.value,
        "proven_none": float(proven),
    }, every
