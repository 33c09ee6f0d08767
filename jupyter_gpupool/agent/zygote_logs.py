"""Where zygotes write to, and how that stays small: they may be a user's own programs.

Called by `zygotes`, which names a log, and by `housekeeping`, which removes those of old.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

_MOST_UNUSED = 100
_PATTERN = "zygote-*.log"


def zygote_log(folder: Path, environment: str, user: int) -> Path:
    """The log of that user's zygote in that environment."""
    return folder / f"zygote-{environment}-{user}.log"


def zygote_logs(folder: Path) -> tuple[Path, ...]:
    """All that are kept."""
    return tuple(folder.glob(_PATTERN))


def remove_old_zygote_logs(folder: Path, *, keep: Collection[Path], older_than_s: float) -> None:
    """Remove those of zygotes that are gone: the old ones, and all but a hundred of the others.

    Args:
        folder: Where they are.
        keep: Of those that run.
        older_than_s: On the clock of files: what was written to before is old.
    """
    unused = _newest_first(set(zygote_logs(folder)).difference(keep))
    for place, (written_at_s, log) in enumerate(unused):
        if place >= _MOST_UNUSED or written_at_s < older_than_s:
            log.unlink(missing_ok=True)


def _newest_first(logs: Iterable[Path]) -> list[tuple[float, Path]]:
    return sorted(((log.lstat().st_mtime, log) for log in logs), reverse=True)
