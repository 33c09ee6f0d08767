"""The demo's one error of its own."""


class Wrong(Exception):
    """Dask and NumPy or pandas disagree."""
