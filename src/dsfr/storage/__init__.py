"""Bundles of arrays as bytes, and atomic writes of files."""
