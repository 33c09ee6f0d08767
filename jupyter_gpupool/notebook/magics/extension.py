"""Makes `%gpupool` known to IPython, at each kernel's start: what costs time comes later.

Called by `load_ipython_extension` of the package.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

NAME = "gpupool"


def load(shell: "InteractiveShell") -> None:
    """Give a shell the magic and its completion."""
    shell.magics_manager.register_function(_magic_of(shell), "line_cell", NAME)
    _offer_completion(shell)


def _magic_of(shell: "InteractiveShell") -> "Callable[[str, str | None], object]":
    def gpupool(line: str, cell: str | None = None) -> object:
        """The pool from a cell. See: %gpupool --help."""
        from .calling import call  # noqa: PLC0415 - costs time that not every kernel needs to pay

        return call(shell, line, cell)

    return gpupool


def _offer_completion(shell: "InteractiveShell") -> None:
    from IPython.core.completer import context_matcher  # noqa: PLC0415 - the shell has loaded it

    # Before all others, for it alone knows these lines.
    @context_matcher(identifier=NAME, priority=1000)  # type: ignore[untyped-decorator]
    def matcher(context: "CompletionContext") -> "SimpleMatcherResult":
        if NAME not in context.text_until_cursor:
            return {"completions": [], "suppress": False}
        from .completion import completions  # noqa: PLC0415 - as above

        return completions(context.text_until_cursor)

    # A second time for a user who loads us by hand as well.
    matchers = shell.Completer.custom_matchers
    others = [one for one in matchers if getattr(one, "matcher_identifier", "") != NAME]
    shell.Completer.custom_matchers = [*others, matcher]
