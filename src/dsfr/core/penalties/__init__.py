"""Penalties on unlabelled rows: interpolation consistency and graph Laplacian."""
