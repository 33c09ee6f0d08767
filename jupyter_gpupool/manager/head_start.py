"""What an embedded manager begins before it loads its libraries: its socket and its agent.

Called by `app`. Loading a manager takes seconds and warming an agent's zygote takes seconds: side
by side, the first claim of a pool that did not run comes seconds sooner. The agent's link waits in
the socket's backlog until it is answered.
"""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket

from .auth.new_secret import new_secret
from .listening import listen
from .local_agent import AgentCommand, launch
from .own_agents import is_held
from .private_files import read_private, write_private
from .state_folder import StateFolder
from .to_serve import Embedded, Serving

AGENT_TOKEN = "agent-token"  # noqa: S105 - the name of a file
_PORT = "port"
_ENDS_WITHIN_S = 5.0


@dataclass(slots=True)
class HeadStart:
    """What has been begun, for `serving` to go on with.

    Attributes:
        moved: The manager before listened elsewhere, and an agent of it may still call there.
        agent_token: What the agent will show, to be made valid; None if the last one stays.
    """

    folder: StateFolder
    listening: socket
    moved: bool
    agent_token: str | None = field(repr=False)
    _agent: "subprocess.Popen[bytes] | None" = None

    def take_agent(self) -> "subprocess.Popen[bytes] | None":
        """The agent that was started, if one was; whoever takes it ends it."""
        agent, self._agent = self._agent, None
        return agent

    def abandon(self) -> None:
        """End what nobody has taken: the manager could not start."""
        agent = self.take_agent()
        if agent is not None:
            agent.terminate()
            try:
                agent.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()


def begin(serving: Serving, embedded: Embedded, folder: StateFolder) -> HeadStart:
    """Take a port, and start the agent unless one is there.

    Raises:
        OSError: If there is no port to be had, or the token cannot be written.
    """
    before = _last_port(serving.state)
    listening = _listen(serving.ip, serving.port or before)
    ip, port = listening.getsockname()[:2]
    # Before there is an agent: should this process be killed, the next one listens for it there.
    write_private(serving.state / _PORT, str(port))
    moved, is_there = port != before, is_held(embedded.agent_state)
    if is_there and not moved:
        return HeadStart(folder, listening, moved, None)
    # Always a new one: whether the last was revoked cannot be known before the database is, and an
    # agent that is there has shown its own to whoever has the old port now.
    token = new_secret()
    write_private(serving.state / AGENT_TOKEN, token)
    if is_there:
        return HeadStart(folder, listening, moved, token)
    agent = launch(agent_command(serving, embedded, f"http://{ip}:{port}"), token)
    return HeadStart(folder, listening, moved, token, agent)


def agent_command(serving: Serving, embedded: Embedded, url: str) -> AgentCommand:
    """How the agent of this manager is started."""
    return AgentCommand(
        url=url,
        state=embedded.agent_state,
        simulated=embedded.simulated,
        orphan_after_s=serving.settings.orphan_after_s,
        log=serving.state / "agent.log",
        record=serving.state / "agent-process",
    )


def _last_port(state: Path) -> int:
    last = read_private(state / _PORT)
    return int(last) if last.isdecimal() else 0


def _listen(ip: str, wanted: int) -> socket:
    try:
        return listen(ip, wanted)
    except OSError:
        return listen(ip, 0)
