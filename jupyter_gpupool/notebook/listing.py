"""A sequence that shows itself as a table, in a terminal as in a notebook.

Base of what `answers` lists; an ordinary tuple in every other respect.
"""

from abc import abstractmethod
from collections.abc import Sequence
from io import StringIO
from typing import ClassVar, Generic, TypeVar

from . import markup

_T = TypeVar("_T")
_WIDTH = 160


class Listing(tuple[_T, ...], Generic[_T]):
    """Views, one a row.

    Attributes:
        columns: Titles of what `row` returns.
        nothing: What is said when there is none.
    """

    __slots__ = ()
    columns: ClassVar[Sequence[str]]
    nothing: ClassVar[str]

    @abstractmethod
    def row(self, view: _T) -> Sequence[str]:
        """One view's cells."""

    def __repr__(self) -> str:
        return self._text() if self else self.nothing

    def _repr_html_(self) -> str:
        if not self:
            return markup.block(markup.text(self.nothing))
        return markup.table(self.columns, [self.row(view) for view in self])

    def _text(self) -> str:
        # 0.05 s that nobody pays who only iterates.
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(*self.columns, box=None, pad_edge=False)
        for view in self:
            table.add_row(*(Text(cell) for cell in self.row(view)))
        written = StringIO()
        console = Console(
            file=written,
            width=_WIDTH,
            highlight=False,
            # In a kernel it would display the table itself, and write nothing.
            force_jupyter=False,
            # And with FORCE_COLOR set, as kernels have it, write a terminal's colours.
            force_terminal=False,
        )
        console.print(table)
        return "\n".join(line.rstrip() for line in written.getvalue().splitlines())
