"""The command line, `jupyter gpupool …`."""
