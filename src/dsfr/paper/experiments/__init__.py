"""Experiments: run the TOML specs in parallel, resume after an interruption, store tidy results."""
