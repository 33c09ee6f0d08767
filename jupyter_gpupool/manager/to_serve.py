"""What a manager process is started with: plain values, and what they are for.

Made by `app` from its settings and read by `head_start` and `serving`; loads nothing heavy.
"""

from dataclasses import dataclass
from pathlib import Path

from .settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The manager's certificate and key, as PEM files."""

    certfile: Path
    keyfile: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """What an embedded manager does beside managing.

    Attributes:
        runtime_file: Where clients look for the pool.
        agent_state: State folder of the agent it keeps.
        simulated: How many simulated devices the agent has; None lets it look for real ones.
        stop_all_on_exit: End all claims before ending.
        ends_with: The process whose end ends it too; None is nobody's.
    """

    runtime_file: Path
    agent_state: Path
    simulated: int | None = None
    stop_all_on_exit: bool = False
    ends_with: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Everything a manager process is started with.

    Attributes:
        database_url: None is a SQLite file in the state folder.
        idle_exit_after_s: End when nobody asked for so long and no claim lives; None never does.
    """

    ip: str
    port: int
    state: Path
    settings: Settings
    database_url: str | None = None
    tls: Tls | None = None
    embedded: Embedded | None = None
    idle_exit_after_s: float | None = None
