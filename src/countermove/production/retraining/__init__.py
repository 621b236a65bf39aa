"""A new batch becomes a challenger, and the challenger champion if it has earned it."""
