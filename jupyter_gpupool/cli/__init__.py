"""The command line, `jupyter gpupool …`.

Importing it costs what click costs; each command loads what it needs.
"""

import sys


def main() -> None:
    """Run the command line; the entry point of `jupyter gpupool`."""
    from .root import run  # noqa: PLC0415 - the package is importable without click

    sys.exit(run(sys.argv[1:]))
