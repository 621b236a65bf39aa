"""The experiments of the paper on recourse together."""
