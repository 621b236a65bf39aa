"""Kedro datasets: how tables, schemas, models and figures lie on disk."""
