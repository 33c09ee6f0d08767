"""Tables and migrations: rows in, pool types out."""
