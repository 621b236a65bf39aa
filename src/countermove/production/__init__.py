"""What is run again and again: sweeps over grids of settings."""
