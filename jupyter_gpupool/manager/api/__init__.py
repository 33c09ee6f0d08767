"""HTTP: one file per resource; no SQL and no decision."""
