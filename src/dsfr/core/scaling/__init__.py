"""Scaling of features and targets; quantiles from counts."""
