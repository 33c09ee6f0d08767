"""What of a browser's request a dashboard may see, and what of its answer the browser gets.

Called by `dashboards`. Lists of what passes, not of what is held back: a dashboard runs its user's
own code, and must see neither Jupyter's cookies and tokens nor set any.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

from jupyter_gpupool.pool.errors import NotFound

_ASKED = (
    "Accept",
    "Accept-Language",
    "If-Modified-Since",
    "If-None-Match",
    "Range",
    "User-Agent",
)
_ANSWERED = (
    "Accept-Ranges",
    "Cache-Control",
    "Content-Disposition",
    "Content-Range",
    "Content-Type",
    "ETag",
    "Expires",
    "Last-Modified",
)
_HELD_BACK = "token"
"""Jupyter's own token may stand in the query of whatever a browser opens."""


def asked(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers for the dashboard. It shall not compress: it is near, and its pages are looked at."""
    return {**_only(headers, _ASKED), "Accept-Encoding": "identity"}


def answered(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers for the browser."""
    return _only(headers, _ANSWERED)


def query(text: str) -> str:
    """A query for the dashboard."""
    pairs = parse_qsl(text, keep_blank_values=True)
    return urlencode([(name, value) for name, value in pairs if name != _HELD_BACK])


def path(text: str) -> str:
    """A path below the one that the dashboard serves at.

    Raises:
        NotFound: If it leads out of there.
    """
    if _climbs(text):
        raise NotFound("The dashboard has no such page.", hint="Open it from its claim.")
    return quote(text, safe="/")


def location(target: str, *, asked: str, secret: str, shown: str) -> str | None:
    """Where a redirect of the dashboard leads the browser, or None if it leads out of it.

    Args:
        target: As the dashboard said it.
        asked: The path that it was asked for.
        secret: The path below which the dashboard serves, known to nobody.
        shown: The path below which the browser sees it.
    """
    parts = urlsplit(urljoin(f"{secret}/{asked}", target))
    is_inside = f"{parts.path}/".startswith(f"{secret}/") and not _climbs(unquote(parts.path))
    below = f"{shown}{parts.path.removeprefix(secret)}"
    return urlunsplit(("", "", below, parts.query, parts.fragment)) if is_inside else None


def page(text: bytes, *, secret: str, shown: str) -> bytes:
    """A page of the dashboard, with its scripts where the browser can find them.

    Bokeh writes their address from the root on, and nothing makes it write a relative one. The
    secret is 32 random digits, so nothing else can be meant.
    """
    return text.replace(secret.encode(), shown.encode())


def _climbs(path: str) -> bool:
    # To a browser, a backslash is a slash.
    return bool({".", ".."} & {*path.replace("\\", "/").split("/")})


def _only(headers: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    # What is no ASCII has no agreed meaning in a header, and cannot be sent on.
    return {name: headers[name] for name in names if headers.get(name, "\x80").isascii()}
