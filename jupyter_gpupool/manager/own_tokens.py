"""Tokens the manager makes for itself: the first admin's, the embedded user's and agent's.

Each lies in a 0600 file of the state folder and is used again as long as it is valid.
"""

from functools import partial
from pathlib import Path

from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

from .api.parts import Parts
from .auth.caller import Caller
from .private_files import read_private, write_private
from .service.tokens import MakeToken, RevokeToken, make_token, revoke_token


async def ensure_token(
    parts: Parts,
    path: Path,
    user: UserName,
    role: Role,
    *,
    os_user: str | None = None,
    given: str | None = None,
) -> str:
    """The token in this file, made anew unless it is this user's and still valid.

    Args:
        parts: The manager's.
        path: The file.
        user: Whose token it is.
        role: What it is for.
        os_user: As in `MakeToken`.
        given: A secret that somebody holds already and that is to become valid.

    Raises:
        Unavailable: If the file or the database cannot be written.
    """
    kept = read_private(path)
    caller = await parts.authenticator.authenticate(kept) if kept else None
    if caller is not None and (caller.user, caller.role) == (user, role):
        return kept
    itself = Caller(user=UserName("manager"), role=Role.ADMIN, credential_id="")
    label = f"{path.name} of the manager"
    # One whose file is gone must not keep the agent's host for itself.
    for old in [
        t for t in parts.service.books.tokens.values() if (t.label, t.user) == (label, user)
    ]:
        revoke = RevokeToken(caller=itself, token_id=old.id)
        await parts.service.execute(partial(revoke_token, command=revoke))
    command = MakeToken(
        caller=itself, user=user, role=role, label=label, os_user=os_user, secret=given
    )
    made = await parts.service.execute(partial(make_token, command=command, seal=parts.seal))
    write_private(path, made.secret)
    return made.secret
