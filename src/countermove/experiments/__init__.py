"""The experiments of the papers: cells, their means, a figure and a page each."""
