"""Duplicate rows: found, agreed on over agents, and left out."""
