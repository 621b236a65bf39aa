"""Retraining round after round: populations, updates, the loop, and how fast it settles."""
