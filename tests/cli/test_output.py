"""Tables for people."""

from io import StringIO

from rich.console import Console

from jupyter_gpupool.cli.output import table


def test_what_a_row_is_called_by_is_in_one_piece() -> None:
    """On a narrow terminal it is the rest that is folded: an id in two lines cannot be copied."""
    made = table("CLAIM", "REASON")
    made.add_row("c-570237e8ea73571c", "number 1 in line: waiting for 2 of 4 devices")
    written = StringIO()
    Console(file=written, width=40, force_terminal=False).print(made)
    assert "c-570237e8ea73571c" in written.getvalue()
