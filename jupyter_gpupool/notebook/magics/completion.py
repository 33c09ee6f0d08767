"""What may come next in a `%gpupool` line. Called by `extension` when somebody presses Tab."""

import re
import shlex
from typing import TYPE_CHECKING

from click.shell_completion import ShellComplete, split_arg_string
from IPython.core.completer import SimpleCompletion

from .cell_command import cell_command
from .commands import commands

if TYPE_CHECKING:
    import click
    from IPython.core.completer import SimpleMatcherResult

_LINE = re.compile(r"(?:[^%]*=)?\s*(?P<magic>%{1,2})gpupool\s+(?P<said>.*)", re.DOTALL)
_WORD = re.compile(r"\S*$")


def completions(text: str) -> "SimpleMatcherResult":
    """Completions of a line up to the cursor; nothing for a line that is no magic of ours."""
    match = _LINE.fullmatch(text)
    if match is None:
        return {"completions": [], "suppress": False}
    begun = _begun(match["said"])
    command = cell_command if match["magic"] == "%%" else commands
    found = _completed(command, split_arg_string(match["said"][: -len(begun) or None]), begun)
    return {
        "completions": [SimpleCompletion(shlex.quote(word), type="gpupool") for word in found],
        "matched_fragment": begun,
        # Nobody else knows what belongs here; Jedi would offer Python.
        "suppress": True,
    }


def _begun(said: str) -> str:
    match = _WORD.search(said)
    return match[0] if match else ""


def _completed(command: "click.Command", words: list[str], begun: str) -> list[str]:
    completer = ShellComplete(command, {}, "%gpupool", "")
    # With nothing to offer, IPython would go on and ask Jedi: then it is options, or what is there.
    found = completer.get_completions(words, begun) or completer.get_completions(
        words, begun or "--"
    )
    return [str(item.value) for item in found] or [begun]
