"""One pool of all your GPUs, claimed from the notebook."""
