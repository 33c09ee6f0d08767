"""How any Python reaches a pool: HTTP, event stream, discovery, start of the embedded pool."""
