"""So many times within so many seconds: keeps one noisy process from costing all. Pure.

Called by `child_connection` for lines and by `child_socket` for what it logs.
"""


class Allowance:
    """Counts within windows that follow each other; times are monotonic seconds passed in."""

    def __init__(self, *, most: int, within_s: float) -> None:
        self._most = most
        self._within_s = within_s
        self._until_s = 0.0
        self._left = 0

    def take(self, now_s: float) -> bool:
        """Use it once; False if nothing is left of it."""
        if now_s >= self._until_s:
            self._until_s, self._left = now_s + self._within_s, self._most
        if self._left == 0:
            return False
        self._left -= 1
        return True

    def pause_s(self, now_s: float) -> float:
        """How long until there is more."""
        return max(0.0, self._until_s - now_s)
