"""The experiments of the paper on recourse together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.experiments.collective.figures import centroids_figure
    from countermove.experiments.collective.people import Preparation
    from countermove.experiments.collective.recourse import Answers, CollectiveExperiment

__all__ = ["Answers", "CollectiveExperiment", "Preparation", "centroids_figure"]

_HOMES = {
    "Answers": "recourse",
    "CollectiveExperiment": "recourse",
    "Preparation": "people",
    "centroids_figure": "figures",
}
__getattr__ = lazy(__name__, _HOMES)
