"""People who act together: on a learning platform, or for somebody's recourse."""
