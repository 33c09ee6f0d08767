"""The live card of a claim: shown under a cell, with text and HTML where nothing can be live."""

from .showing import show

__all__ = ["show"]
