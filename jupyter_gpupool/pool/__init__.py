"""The pool's vocabulary: what things are called, what they are made of, what may happen to them.

Pure: no clock, no randomness, no I/O. Everything else of ours speaks these words.
"""
