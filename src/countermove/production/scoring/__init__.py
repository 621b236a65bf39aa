"""Batches of applicants: a decision for everybody, advice for the refused."""

from countermove.production.scoring.batch import Scored, score_batch
from countermove.production.scoring.settings import ScoringSettings

__all__ = ["Scored", "ScoringSettings", "score_batch"]
