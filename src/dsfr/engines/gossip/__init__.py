"""Sums by messages between neighbors alone: no coordinator, no root, no tree."""
