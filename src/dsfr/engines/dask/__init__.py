"""Engine over a dask cluster."""
