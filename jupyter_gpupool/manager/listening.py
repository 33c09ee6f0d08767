"""The socket a manager listens on; loads nothing heavy.

Called by `http_server` and, before that is loaded, by `head_start`.
"""

import socket

_BACKLOG = 1024


def listen(ip: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes any free one.

    Raises:
        OSError: If the port is in use or not allowed.
    """
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((ip, port))
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening
