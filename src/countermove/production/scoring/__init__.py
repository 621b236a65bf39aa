"""Batches of applicants: a decision for everybody, advice for the refused."""

from countermove.production.scoring.batch import Scored, ScoringSettings, score_batch

__all__ = ["Scored", "ScoringSettings", "score_batch"]
