"""Rules that people already have: models of other libraries, adopted as scores."""

from countermove.scores.adopted._adopt import adopt
from countermove.scores.adopted._model import AdoptedModel
from countermove.scores.adopted._sklearn import boosted_ensemble
from countermove.scores.adopted.published import adopt_file

__all__ = ["AdoptedModel", "adopt", "adopt_file", "boosted_ensemble"]
