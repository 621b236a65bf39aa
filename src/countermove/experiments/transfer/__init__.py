"""The experiments of the transferability paper."""

from __future__ import annotations

from typing import Any, ClassVar

from countermove.experiments.protocol import Experiment, Sources


class TransferExperiment(Experiment[Sources]):
    """An experiment of the transferability paper: how its figures are called and laid out."""

    layout: ClassVar[dict[str, Any]] = {"legend": {"orientation": "h", "y": -0.15}}

    def titled(self, title: str) -> str:
        """Return the name of the results as a title."""
        return title.replace("_", " ").capitalize()
