"""Bundles of arrays as bytes, and files that are written whole or not at all."""
