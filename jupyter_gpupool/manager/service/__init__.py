"""One command, one function: open the unit, load, ask the pure core, save, commit."""
