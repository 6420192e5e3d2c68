"""The engine over a dask cluster."""
