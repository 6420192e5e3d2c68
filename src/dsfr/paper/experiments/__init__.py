"""Experiments: a TOML spec becomes tidy results on disk, resumable and in parallel. Nothing here draws or judges."""
