"""The experiments of the look-ahead paper."""
