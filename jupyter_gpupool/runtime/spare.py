"""A child forked ahead of any claim: it rehearses, then waits to be told who it is.

Made by `spares` in the zygote. Until its request comes it holds no secret and serves nobody; when
the zygote ends without a word, so does it.
"""

import os
import socket
import sys

from jupyter_gpupool.protocol.launch import MOST_DESCRIPTORS, Fork, decode

from . import child, warming
from .rehearsal import rehearse
from .spares import READY

MOST_BYTES = 256 * 1024


def live(link: socket.socket) -> int:
    """Rehearse, wait, and become what the request says.

    Args:
        link: Says `READY` to the zygote, and brings the request with its descriptors.

    Returns:
        The exit code.
    """
    child.stand_alone()
    child.close_all_but({0, 1, 2, link.fileno()})
    rehearse()
    if (threads := warming.count_threads()) != 1:
        # A thread that is left would keep rights that this process gives up later.
        print(f"A spare has {threads} threads and is of no use.", file=sys.stderr, flush=True)  # noqa: T201 - the log is this process's stderr
        return 1
    warming.name_process("gpupool-spare")
    try:
        link.send(READY)
        line, descriptors, _, _ = socket.recv_fds(link, MOST_BYTES, MOST_DESCRIPTORS)
    except ConnectionError:
        # The zygote ended before it had read what was said.
        return 0
    link.close()
    request = decode(line) if line else None
    if not isinstance(request, Fork):
        return 0
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    given = dict(zip(request.descriptors, descriptors, strict=True))
    child.keep_only(given)
    return child.become(request, given)
