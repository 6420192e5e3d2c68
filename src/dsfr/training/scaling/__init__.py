"""Agreeing on ranges, limits and moments."""
