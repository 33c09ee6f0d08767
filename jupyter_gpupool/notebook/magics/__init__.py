"""`%gpupool` and `%%gpupool`: the pool from a notebook's cells.

This file imports nothing: `on_worker` and what it needs are loaded on workers, without IPython.
"""
