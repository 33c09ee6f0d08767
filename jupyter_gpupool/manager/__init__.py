"""The service that decides: the only writer of truth."""
