"""Training without a coordinator."""
