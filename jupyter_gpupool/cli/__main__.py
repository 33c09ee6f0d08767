"""`python -m jupyter_gpupool.cli`: for a Python whose scripts are not on the path."""

from . import main

main()
