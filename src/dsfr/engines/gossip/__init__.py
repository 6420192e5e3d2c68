"""Sums by messages between neighbors alone: no coordinator and no root."""
