"""What goes on in a claim's scheduler: said once a second, so that nothing busy is taken for idle.

Standard library only: `runtime` reads it inside any Python environment. A scheduler that says
nothing is unknown, which is never idle.
"""

from dataclasses import dataclass

EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One look into a scheduler.

    Attributes:
        processing: Tasks that run or wait on workers, those that seceded among them.
        runnable: Tasks that wait for workers and could run on some.
        stuck: Tasks that wait for a worker such as the claim does not have, and never will.
        begun: Tasks sent to workers so far; grows even if each is over between two looks.
        transfers: Results on their way between workers.
        runs: Functions of `client.run` and calls of actors' methods under way.
        runs_begun: These, so far.
        actors: Actors that live on workers.
        clients: Clients that are connected, the workers' own left out.
        quiet_s: Seconds since a client last asked for anything by itself; what it says without
            its user, such as heartbeats, does not count. None if none ever did.
    """

    processing: int = 0
    runnable: int = 0
    stuck: int = 0
    begun: int = 0
    transfers: int = 0
    runs: int = 0
    runs_begun: int = 0
    actors: int = 0
    clients: int = 0
    quiet_s: float | None = None
