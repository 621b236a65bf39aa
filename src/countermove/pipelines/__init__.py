"""The pipelines: thin nodes that meet in the catalog only."""
