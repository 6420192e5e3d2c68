"""Short rules that reproduce the predictions of another model: splits, lines, and their rounding."""
