"""Which of the stored revisions of the policy a manager starts with.

Called when the books are filled. A revision was right when it was applied; a later version of the
manager may still refuse it. That must not keep the pool from starting: the newest revision that is
understood holds, else the default, and whoever can mend it is told until it is mended.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from jupyter_gpupool.pool.errors import PoolError

from .in_force import PolicyInForce, Refused
from .policy import in_force
from .records import PolicyRevision

_LOG = logging.getLogger(__name__)


def policy_at_start(revisions: Iterable[PolicyRevision]) -> PolicyInForce:
    """The first revision that this version understands; the default if there is none.

    Args:
        revisions: Newest first.
    """
    refused: Refused | None = None
    for each in revisions:
        found = _understood(each)
        if isinstance(found, PolicyInForce):
            return replace(found, refused=refused)
        # The newest is the one that an admin wanted, whatever is wrong with those before it.
        refused = refused or found
    return PolicyInForce(refused=refused)


def _understood(revision: PolicyRevision) -> PolicyInForce | Refused:
    try:
        return in_force(revision.source, revision.revision)
    except PoolError as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001 - an old document must not keep the pool from starting
        _LOG.exception("Revision %d of the policy could not be read", revision.revision)
        why = f"{type(error).__name__}: {error}"
    return Refused(revision=revision.revision, source=revision.source, why=why)
