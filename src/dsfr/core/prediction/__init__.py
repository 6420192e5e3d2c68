"""The learnt function, averages of several, and their errors."""
