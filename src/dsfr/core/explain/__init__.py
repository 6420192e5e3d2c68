"""Rules, predictions and numbers in words."""
