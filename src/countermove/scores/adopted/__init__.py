"""Rules that people already have: models of other libraries, adopted as scores."""

from countermove.scores.adopted._adopt import adopt
from countermove.scores.adopted._model import AdoptedModel
from countermove.scores.adopted._published import adopt_file
from countermove.scores.adopted._sklearn import boosted_ensemble

__all__ = ["AdoptedModel", "adopt", "adopt_file", "boosted_ensemble"]
