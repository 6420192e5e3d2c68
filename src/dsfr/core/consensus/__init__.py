"""Consensus iterations: ADMM, Anderson acceleration, preconditioner."""
