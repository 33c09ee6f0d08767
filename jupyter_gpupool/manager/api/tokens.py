"""Tokens: make, list, revoke."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.auth.caller import may_see
from jupyter_gpupool.manager.auth.tokens import TokenAuthenticator
from jupyter_gpupool.manager.service.tokens import (
    MakeToken,
    RevokeToken,
    make_token,
    revoke_token,
)
from jupyter_gpupool.pool.errors import NotFound
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import NewTokenView, TokenBody, TokenView

from . import answers
from .parts import ONCE_HEADER, Parts, TheParts, UserAsks, UserCaller
from .problems import CREATED, NO_CONTENT, responses
from .views import token_view

router = APIRouter(prefix="/tokens", tags=["tokens"])


@router.post(
    "",
    status_code=CREATED,
    response_model=NewTokenView,
    responses=responses(),
    openapi_extra=ONCE_HEADER,
)
async def create_token(body: TokenBody, asked: UserAsks) -> Response:
    """A new token. Its secret is shown in this answer, and in its repetition, alone."""
    command = MakeToken(
        caller=asked.caller,
        user=UserName(body.user) if body.user else asked.caller.user,
        role=body.role,
        label=body.label,
        lifetime=None if body.expires_in_s is None else timedelta(seconds=body.expires_in_s),
        os_user=body.os_user,
        key=asked.once,
    )
    make = partial(make_token, command=command, seal=asked.parts.seal)
    made = await asked.service.execute(make)
    view = token_view(made.record, {})
    return answers.one(NewTokenView(secret=made.secret, **view.model_dump()), CREATED)


@router.get("", response_model=list[TokenView], responses=responses())
async def list_tokens(caller: UserCaller, parts: TheParts) -> Response:
    """An admin sees all tokens, a user their own."""
    tokens = [t for t in parts.service.books.tokens.values() if may_see(caller, t.user)]
    return answers.many([token_view(token, _last_used(parts)) for token in tokens])


@router.delete("/{token_id}", status_code=NO_CONTENT, responses=responses(NotFound))
async def delete_token(token_id: str, caller: UserCaller, parts: TheParts) -> Response:
    """Revoke a token, at once; what was opened with it is closed."""
    command = RevokeToken(caller=caller, token_id=token_id)
    for void in await parts.service.execute(partial(revoke_token, command=command)):
        parts.sessions.revoked(void)
    return Response(status_code=NO_CONTENT)


def _last_used(parts: Parts) -> Mapping[str, datetime]:
    authenticator = parts.authenticator
    return authenticator.last_used if isinstance(authenticator, TokenAuthenticator) else {}
