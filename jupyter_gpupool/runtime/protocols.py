"""Refuses a transport that this environment cannot speak, in a sentence instead of a traceback.

Called by `scheduler` and `worker` before they start.
"""

from importlib.util import find_spec

from .problems import CannotStart


def check_protocol(protocol: str) -> None:
    """Accept what can be spoken here.

    Raises:
        CannotStart: For UCX without distributed-ucxx, or a protocol unknown to the pool.
    """
    if protocol == "ucxx":
        if find_spec("distributed_ucxx") is None:
            raise CannotStart(
                'protocol "ucxx" needs the package distributed-ucxx, which this environment does'
                ' not have. Install it, or claim with protocol="tls".'
            )
    elif protocol != "tls":
        raise CannotStart(f'"{protocol}" is no protocol of this pool. Use "tls" or "ucxx".')
