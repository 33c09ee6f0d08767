"""What passes between a browser and a dashboard, which runs its user's own code."""

import pytest

from jupyter_gpupool.pool.errors import NotFound
from jupyter_gpupool.server import passing

SECRET, SHOWN = "/0123abcd", "/user/a%20b/gpupool/dashboards/c-1/~ticket"


@pytest.mark.parametrize(
    "name",
    ["Cookie", "Authorization", "X-XSRFToken", "Host", "Origin", "Referer", "X-Forwarded-For"],
)
def test_who_is_logged_in_is_not_told_to_the_dashboard(name: str) -> None:
    """Neither by cookie, nor by token, nor by the address of the page."""
    assert name not in passing.asked({name: "secret", "Accept": "*/*"})


@pytest.mark.parametrize("value", ["J\u00fcrgen", "\u65e5\u672c", "\x80"])
def test_a_header_that_is_no_ascii_is_left_out(value: str) -> None:
    """It cannot be sent on, and the page is served without it."""
    assert "User-Agent" not in passing.asked({"User-Agent": value})
    assert passing.answered({"Content-Disposition": value}) == {}


def test_the_jupyter_token_in_a_query_is_held_back() -> None:
    """The rest is the page's own business."""
    assert passing.query("a=1&token=secret&b=&c=%26") == "a=1&b=&c=%26"


@pytest.mark.parametrize(
    "name",
    ["Set-Cookie", "Access-Control-Allow-Origin", "Content-Security-Policy", "Clear-Site-Data"],
)
def test_the_dashboard_sets_nothing_on_jupyters_origin(name: str) -> None:
    """No cookie, and no rule for what its page may do."""
    assert name not in passing.answered({name: "x", "Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (f"{SECRET}/status", f"{SHOWN}/status"),
        (f"{SECRET}/info?a=1#b", f"{SHOWN}/info?a=1#b"),
        (SECRET, SHOWN),
        ("status", f"{SHOWN}/individual/status"),
        ("../status", f"{SHOWN}/status"),
        ("?theme=dark", f"{SHOWN}/individual/plots?theme=dark"),
        ("../../lab", None),
        (f"{SECRET}/../lab", None),
        (f"https://h{SECRET}/%2e%2e/lab", None),
        (f"{SECRET}/..\\lab", None),
        ("\\\\example.org/status", f"{SHOWN}/individual/\\\\example.org/status"),
        ("javascript:alert(1)", None),
        ("/elsewhere", None),
        (f"{SECRET}more/status", None),
        ("https://example.org/status", None),
        ("//example.org/status", None),
    ],
)
def test_a_redirect_leads_within_the_dashboard_or_nowhere(target: str, shown: str | None) -> None:
    """Jupyter's own address shall send nobody to where a dashboard wishes."""
    to = passing.location(target, asked="individual/plots", secret=SECRET, shown=SHOWN)
    assert to == shown


@pytest.mark.parametrize("path", ["..", "../other/status", "a/../../b", "a/..\\b", "./status"])
def test_no_path_leads_out_of_the_dashboard(path: str) -> None:
    """A client that says so is asked for nothing there."""
    with pytest.raises(NotFound):
        passing.path(path)


def test_path_is_written_for_an_address() -> None:
    """Dots within a name lead nowhere."""
    assert passing.path("a b/..c/x.js") == "a%20b/..c/x.js"


def test_a_page_names_its_scripts_where_the_browser_finds_them() -> None:
    """And the scheduler's secret is gone from it."""
    page = passing.page(b'<script src="/0123abcd/static/js/x.js">', secret=SECRET, shown=SHOWN)
    assert page == f'<script src="{SHOWN}/static/js/x.js">'.encode()
