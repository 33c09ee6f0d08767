"""The database's history: one file a revision, applied in order at start."""
