"""The parts of the link that need no connection; the rest is in test_host.py and test_app.py."""

import pytest
from pydantic import ValidationError

from jupyter_gpupool.agent.link import LinkTarget, check_url, clock_problem, link_url
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.link import WantedWorker


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8780", "ws://127.0.0.1:8780/api/v1/agents/link"),
        ("https://pool.org/", "wss://pool.org/api/v1/agents/link"),
        ("https://hub.org/services/gpupool/", "wss://hub.org/services/gpupool/api/v1/agents/link"),
        ("http://[::1]:1", "ws://[::1]:1/api/v1/agents/link"),
    ],
)
def test_manager_address_becomes_a_websockets(url, expected) -> None:
    """A path in front of it is kept."""
    check_url(url)
    assert link_url(url) == expected


@pytest.mark.parametrize("url", ["", "pool.org", "ftp://pool.org", "http://", "ws://pool.org"])
def test_nonsense_is_refused_with_an_example(url) -> None:
    """It says what to write."""
    with pytest.raises(BadRequest, match="--join https://"):
        check_url(url)


def test_token_never_crosses_a_network_in_the_open() -> None:
    """Unless an admin says that nobody else is on it."""
    with pytest.raises(BadRequest, match="unencrypted"):
        check_url("http://pool.org")
    check_url("http://pool.org", allow_plain_http=True)
    check_url("https://pool.org")


@pytest.mark.parametrize("skew_s", [0, 59, -59])
def test_small_skew_is_no_problem(skew_s) -> None:
    """Networks take their time."""
    assert clock_problem(skew_s) == ""


def test_large_skew_says_how_much_and_which_way() -> None:
    """An admin can act on it."""
    assert clock_problem(3600) == "This host's clock is 3600 s ahead of the manager's clock."
    assert "61 s behind" in clock_problem(-61)


def test_token_stays_out_of_repr() -> None:
    """A target that is logged by mistake gives nothing away."""
    assert "hush" not in repr(LinkTarget(url="http://x", token="hush"))


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc", "/etc", "a/b", ".hidden", "a\0b", "x" * 101]
)
def test_id_that_leads_elsewhere_is_no_id(name, wanted_claim) -> None:
    """A root agent makes and removes folders of that name."""
    with pytest.raises(ValidationError):
        wanted_claim(name)
    with pytest.raises(ValidationError):
        WantedWorker(lease_id=name, device="GPU-1")
