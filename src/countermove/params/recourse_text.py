"""What an experiment with recourse on texts may say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters, Positive, Probability
from countermove.params.sweep import Count

if TYPE_CHECKING:
    from countermove.experiments.recourse.texts import TextExperiment
    from countermove.recourse.text import Encoder


class MiniLMParameters(Parameters):
    """The sentence encoder of the extra ``countermove[text]``, or of a ``folder``."""

    kind: Literal["minilm"]
    folder: str | None = None

    def build(self) -> Callable[[], Encoder]:
        """Return what loads the encoder."""

        def load() -> Encoder:
            from countermove.recourse.text import MiniLM

            return MiniLM(self.folder)

        return load


class HashedWordsParameters(Parameters):
    """Counts of words, which need no package."""

    kind: Literal["words"]
    n_features: Count = 1024

    def build(self) -> Callable[[], Encoder]:
        """Return what makes the encoder."""

        def make() -> Encoder:
            from countermove.recourse.text import HashedWords

            return HashedWords(self.n_features)

        return make


EncoderParameters = Annotated[MiniLMParameters | HashedWordsParameters, Field(discriminator="kind")]


class TextTrainingParameters(Parameters):
    """Learning rate and epochs; no ``hidden`` layer is a linear score."""

    hidden: tuple[Count, ...] = ()
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.3
    learning_rate: Positive = 0.02
    batch_size: Count = 64
    max_epochs: Count = 40
    patience: Count = 10


class RecourseTextParameters(Parameters):
    """Texts × splits × weights.

    ``dataset`` is a CSV or parquet file in ``data/01_raw`` with the columns ``text`` and
    ``label``; ``favourable`` is the label authors hope for. ``wordnet`` is the folder of
    WordNet's files, None for where packages put them. ``name`` is the folder of the results.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "recourse_text"
    dataset: str = "film-reviews"
    text: str = "text"
    label: str = "label"
    favourable: str = "fresh"
    encoder: EncoderParameters = MiniLMParameters(kind="minilm")
    wordnet: str | None = None
    train: Count = 1_500
    selection: Count = 500
    test: Count = 500
    candidates: Count = 10
    splits: list[Annotated[int, Field(ge=0)]] = Field([0, 21, 42], min_length=1)
    weights: list[Annotated[float, Field(ge=0)]] = Field([0.0, 0.25, 0.8], min_length=1)
    thresholds: list[Literal["highest_f1"] | Probability] = Field(["highest_f1"], min_length=1)
    training: TextTrainingParameters = TextTrainingParameters()

    def build(self) -> TextExperiment:
        """Return the experiment."""
        from countermove.experiments.recourse.texts import TextExperiment

        taken = {"name", "text", "label", "favourable", "encoder", "training"}
        return TextExperiment(
            **self.model_dump(exclude=taken),
            encoder=self.encoder.build(),
            hidden=self.training.hidden,
            dropout=self.training.dropout,
            settings=self.training.model_dump(exclude={"hidden", "dropout"}),
        )
