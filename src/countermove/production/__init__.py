"""Production: the registry of versions, gates, drift, retraining and the scoring of batches."""
