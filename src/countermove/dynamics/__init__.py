"""What happens retraining after retraining: people who look ahead, alone or together."""
