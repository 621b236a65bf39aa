"""What a person looks at: lines, figures, one page."""
