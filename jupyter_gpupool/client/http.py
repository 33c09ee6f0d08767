"""One persistent HTTP connection to a manager: token, time-outs, repeats, errors.

Called by `pool_client`, which knows the routes. Lives on one event loop. The transport is the one
thing that tests replace.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from jupyter_gpupool.pool.errors import BadRequest, PoolError, Unavailable
from jupyter_gpupool.protocol.api import API, IDEMPOTENCY_KEY
from jupyter_gpupool.protocol.bodies import Body

from .address import PoolAddress
from .background import saying
from .bodies import written
from .errors import Cut, Unanswered, error_from, unreachable, unverified

if TYPE_CHECKING:
    import httpx

PATIENCE_S = 3.0
_ANSWER_WITHIN_S = 30.0
_READ_WITHIN_S = 10.0
"""The same for what changes nothing: it may be asked again at any time."""
_SUMMED_UP = "/usage"
"""Reports, which are made one at a time: what they take is no silence."""
_SILENT_FOR_S = 2.0
_CONNECT_WITHIN_S = 5.0
_KEEP_OPEN_S = 60.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5
_MAY_PASS = (502, 503, 504)
"""A manager that cannot now, or a proxy that does not reach it now."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as the manager gave it, for whoever passes it on.

    Attributes:
        headers: All of them, names in lower case.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Http:
    """Sends requests until one is answered, or patience ends.

    Every POST carries an idempotency key, the same at each repeat, so that repeating is safe.
    """

    def __init__(
        self, address: PoolAddress, *, transport: "httpx.AsyncBaseTransport | None" = None
    ) -> None:
        import httpx  # noqa: PLC0415 - 0.2 s, which `import jupyter_gpupool` must not cost

        self.address = address
        self._failures = httpx.RequestError
        self._never_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
        self._too_slow = httpx.TimeoutException
        self._no_address = httpx.InvalidURL
        self._patience = partial(httpx.Timeout, connect=_CONNECT_WITHIN_S)
        self._client = httpx.AsyncClient(
            base_url=address.base + API,
            headers={"Authorization": f"Bearer {address.token}"},
            limits=httpx.Limits(keepalive_expiry=_KEEP_OPEN_S),
            timeout=self._patience(_ANSWER_WITHIN_S),
            verify=tls_context(address) if address.base.startswith("https") else False,
            # A proxy of the environment cannot reach this machine's own loopback.
            trust_env=not address.is_loopback,
            transport=transport,
        )

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: Body | None = None,
        params: Mapping[str, str | int | bool | Sequence[str] | None] | None = None,
        key: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> bytes:
        """Send one request and return the body of its success.

        Args:
            method: HTTP's.
            path: Below the API's root.
            body: Of a POST.
            params: Query; None values are left out.
            key: Idempotency key of a POST that may be repeated later; None makes one.
            patience_s: For how long a manager that does not answer is tried again. Waiting for an
                answer that is then cut off takes nothing from it, within the time of one answer.

        Raises:
            PoolError: What the manager said, or Unavailable if it said nothing in time; that is
                Unanswered if it may have carried the request out, also where something else on the
                way answered in its place.
        """
        content = None if body is None else written(body)
        request = self._request(method, path, content=content, params=params, key=key)
        response = await self._persist(request, patience_s)
        if response.is_success:
            return response.content
        raise self._error_of(request, response)

    async def relay(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Reply:
        """Send somebody else's request as it is, and return whatever is answered.

        Raises:
            Unavailable: If nothing is; Unanswered if it may have been carried out.
        """
        request = self._request(method, path, content=content, params=params, key=key)
        response = await self._persist(request, PATIENCE_S)
        return Reply(response.status_code, response.content, dict(response.headers))

    async def _persist(self, request: "httpx.Request", patience_s: float) -> "httpx.Response":
        """The answer to a request, which is sent again while there is none, or none that lasts."""
        give_up = time.monotonic() + patience_s
        latest = give_up + _ANSWER_WITHIN_S
        pause_s = _FIRST_PAUSE_S
        unanswered: Unanswered | None = None
        while True:
            asked = time.monotonic()
            answer, again = await self._try(request)
            if not again:
                return _last(answer, None)
            if isinstance(answer, Cut):
                give_up = min(give_up + time.monotonic() - asked, latest)
            # A later try that was never sent does not undo an earlier one that was.
            error = answer if isinstance(answer, PoolError) else self._error_of(request, answer)
            unanswered = error if isinstance(error, Unanswered) else unanswered
            if time.monotonic() + pause_s > give_up:
                return _last(answer, unanswered)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def close(self) -> None:
        """Close the connection; the object is of no use afterwards."""
        await self._client.aclose()

    def _request(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None,
        params: Mapping[str, Any] | None,
        key: str | None,
    ) -> "httpx.Request":
        headers = {IDEMPOTENCY_KEY: key or new_key()} if method == "POST" else {}
        if content is not None:
            headers["Content-Type"] = "application/json"
        query = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            return self._client.build_request(
                method,
                path,
                content=content,
                params=query,
                headers=headers,
                timeout=self._patience(_answer_within_s(method, path)),
            )
        except UnicodeError as error:
            raise BadRequest(
                "What is asked for holds characters that are no text.", hint="Write it anew."
            ) from error
        except self._no_address as error:
            raise BadRequest(
                f"What is asked for cannot be sent ({error}).", hint="Write it anew."
            ) from error

    async def _try(self, request: "httpx.Request") -> "tuple[httpx.Response | PoolError, bool]":
        """One try: the answer, or why there is none; and whether another try may help."""
        try:
            response = await self._sent(request)
        except self._failures as error:
            if (unproven := _certificate_error(error)) is not None:
                return unverified(self.address.base, unproven), False
            why = str(error) or type(error).__name__
            return unreachable(self.address.base, why.rstrip("."), self._kind_of(error)), True
        return response, response.status_code in _MAY_PASS

    async def _sent(self, request: "httpx.Request") -> "httpx.Response":
        """The answer to one try; whoever waits for it is told when it does not come soon."""
        say = saying.get() or _nobody
        silent = f"The pool's manager at {self.address.base} does not answer; still waiting for it."
        word = asyncio.get_running_loop().call_later(_SILENT_FOR_S, say, silent)
        try:
            return await self._client.send(request)
        finally:
            word.cancel()

    def _error_of(self, request: "httpx.Request", response: "httpx.Response") -> PoolError:
        changes = request.method != "GET"
        return error_from(
            response.status_code, response.content, self.address.base, changes=changes
        )

    def _kind_of(self, failure: "httpx.RequestError") -> type[Unavailable]:
        if isinstance(failure, self._never_sent):
            return Unavailable
        return Unanswered if isinstance(failure, self._too_slow) else Cut


def _last(answer: "httpx.Response | PoolError", unanswered: Unanswered | None) -> "httpx.Response":
    """The answer that a request is left with, or its error."""
    if unanswered is not None:
        raise unanswered
    if isinstance(answer, PoolError):
        raise answer
    return answer


def _nobody(_text: str) -> None:
    """Nobody waits for it."""


def _answer_within_s(method: str, path: str) -> float:
    may_be_soon = method == "GET" and path != _SUMMED_UP
    return _READ_WITHIN_S if may_be_soon else _ANSWER_WITHIN_S


def new_key() -> str:
    """A fresh idempotency key."""
    return secrets.token_urlsafe(16)


def tls_context(address: PoolAddress) -> Any:
    """What to trust on the way to this manager, made once for each use."""
    import ssl  # noqa: PLC0415 - not needed for the embedded pool

    try:
        return ssl.create_default_context(cafile=address.ca or None)
    except OSError as error:
        raise Unavailable(
            f"The authority file {address.ca} cannot be used: {error.strerror or error}.",
            hint="Set GPUPOOL_CA to a readable file of certificates in PEM, or unset it.",
        ) from error


def _certificate_error(error: BaseException | None) -> str | None:
    """Why a certificate was not trusted, if that is what lies below an error."""
    import ssl  # noqa: PLC0415 - as above

    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None
