"""Fuzzy c-means."""
