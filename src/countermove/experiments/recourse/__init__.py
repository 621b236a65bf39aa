"""The experiments of the recourse paper."""
