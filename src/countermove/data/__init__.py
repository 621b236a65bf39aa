"""What the columns mean: schemas, sources, cleaning, splits and standardisation."""
