"""What a notebook user holds: claims as Dask clusters."""
