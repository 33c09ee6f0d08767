"""A user's process from the outside: orders in, answers out, each with a deadline.

Called by scenarios through `RunningPool.user()`; the process itself is `client_process.py`.
"""

import contextlib
import json
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .processes import Process, process

_SCRIPT = Path(__file__).with_name("client_process.py")


class UserFailed(Exception):
    """What the user's script ran into.

    Attributes:
        kind: Name of the exception's class.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class User:
    """One running script of a user."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        with log.open("ab") as stderr:
            self._popen = subprocess.Popen(
                [sys.executable, str(_SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                cwd=log.parent,
                start_new_session=True,
            )
        found = process(self._popen.pid)
        assert found is not None, "the script has just been started"
        self.process: Process = found
        self._log = log
        self._heard = b""
        self._unanswered = 0

    @property
    def printed(self) -> str:
        """Everything the script has printed so far."""
        return self._log.read_text(errors="replace")

    def tell(self, order: str, **terms: Any) -> None:
        """Give an order and do not wait."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps({"do": order, **terms}).encode() + b"\n")
        self._popen.stdin.flush()
        self._unanswered += 1

    def answer(self, deadline_s: float = 30) -> Any:
        """What the oldest order without an answer gave.

        Raises:
            UserFailed: If the script raised.
            AssertionError: If it hangs or has died.
        """
        answer = json.loads(self._line(deadline_s))
        self._unanswered -= 1
        if "error" in answer:
            raise UserFailed(answer["error"], answer["message"])
        return answer["value"]

    def ask(self, order: str, deadline_s: float = 30, **terms: Any) -> Any:
        """Give an order and wait for what it gives."""
        self.tell(order, **terms)
        return self.answer(deadline_s)

    def settle(self, deadline_s: float = 30) -> None:
        """Hear out every order that was given, however it went."""
        while self._unanswered:
            with contextlib.suppress(UserFailed):
                self.answer(deadline_s)

    def end(self) -> None:
        """Kill it, whatever it does."""
        self._popen.kill()
        self._popen.wait(10)
        for pipe in (self._popen.stdin, self._popen.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def _line(self, deadline_s: float) -> bytes:
        assert self._popen.stdout is not None
        until = time.monotonic() + deadline_s
        while b"\n" not in self._heard:
            left_s = max(0.0, until - time.monotonic())
            ready = select.select([self._popen.stdout], [], [], left_s)[0]
            assert ready, f"no answer within {deadline_s} s\n{self.printed[-3000:]}"
            chunk = self._popen.stdout.read1(65536)  # type: ignore[attr-defined]
            assert chunk, f"the script has died\n{self.printed[-3000:]}"
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        return line
