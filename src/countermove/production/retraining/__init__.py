"""Retraining: new batches make a challenger, which is promoted if it passes every gate."""
