"""Distributed semi-supervised fuzzy regression."""

__version__ = "0.1.0"
