"""Waiting for devices: told why, given up cleanly."""

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim
from jupyter_gpupool.notebook.opening import StillWaiting
from jupyter_gpupool.notebook.waiting import why
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest, ClaimLost
from jupyter_gpupool.protocol.api import ClaimView

pytestmark = pytest.mark.e2e
TOO_MANY = 60
DEVICES = 8


def test_place_and_reason_are_told_once(pool: Pool, capsys: pytest.CaptureFixture[str]) -> None:
    """After two seconds, on stderr."""
    with pytest.raises(StillWaiting):
        claim(TOO_MANY, name="too many", pool=pool, timeout=6)
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert "too many waits: Not possible as the pool is: 60 devices wanted, 8 joined" in told[0]


def test_place_is_told_where_somebody_may_be_ahead(a_view: Callable[..., ClaimView]) -> None:
    """A claim that the pool could never serve is first in no line."""
    wait = {"place": 2, "reason": "All are in use."}
    said = "2nd in line for 1 device: All are in use."
    assert why(a_view(phase="pending", wait=wait)) == f"waits, {said}"
    assert why(a_view(phase="pending", wait={**wait, "never": True})) == "waits: All are in use."


def test_claim_that_came_too_late_is_given_up(pool: Pool) -> None:
    """The error is a TimeoutError, and nothing waits on behind our back."""
    with pytest.raises(TimeoutError, match="did not start within"):
        claim(TOO_MANY, name="late", pool=pool, timeout=0.5)
    assert "late" not in _waiting(pool)


@pytest.mark.parametrize("timeout", [0.2, 3])
def test_claim_that_came_too_late_says_why_it_waited(pool: Pool, timeout: float) -> None:
    """Why it waited, not that it was given up for being late."""
    said = "it waits: Not possible as the pool is: 60 devices wanted, 8 joined"
    with pytest.raises(StillWaiting, match=said) as late:
        claim(TOO_MANY, pool=pool, timeout=timeout, quiet=True)
    assert "Cancelled" not in str(late.value)
    assert late.value.hint == "Ask for what the pool has: jupyter gpupool devices"


def test_claim_that_never_ran_says_what_to_mend(pool: Pool) -> None:
    """Claiming the same again would not help."""
    with pytest.raises(ClaimLost, match="before it ran") as ended:
        claim(1, pool=pool, quiet=True, pre_import="no_such_module", timeout=90)
    assert ended.value.hint == "Mend what it says, then claim again."


def test_unknown_environment_is_refused_with_the_known_ones(pool: Pool) -> None:
    """Nothing is waited for."""
    with pytest.raises(BadRequest, match='named "no-such-environment"') as refused:
        claim(1, pool=pool, environment="no-such-environment")
    assert 'environment="default"' in refused.value.hint


def test_wait_for_devices_in_use_may_be_worth_it(pool: Pool) -> None:
    """Unlike one for more than there are."""
    with claim(DEVICES, pool=pool, quiet=True), pytest.raises(StillWaiting) as late:
        claim(1, pool=pool, timeout=0.5, quiet=True)
    assert late.value.hint == "Ask for fewer devices, or wait longer."


_SCRIPT = """
import jupyter_gpupool as gpupool
gpupool.claim(60, name="interrupted")
"""


def test_ctrl_c_while_waiting_gives_the_claim_up(
    pool: Pool, script_environment: dict[str, str]
) -> None:
    """A real process, a real SIGINT: KeyboardInterrupt, and the claim is gone."""
    script = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT], env=script_environment, stderr=subprocess.PIPE, text=True
    )
    assert script.stderr is not None
    assert "interrupted waits" in script.stderr.readline()
    script.send_signal(signal.SIGINT)
    _, err = script.communicate(timeout=20)
    assert err.strip().endswith("KeyboardInterrupt")
    assert "interrupted" not in _waiting(pool)


_FORGETFUL = """
import jupyter_gpupool as gpupool
from distributed import Client
client = Client(gpupool.claim(1, name="forgotten"))
print(client.submit(sum, [1, 2]).result(), client.cluster.claim_id)
"""


def test_claim_of_a_script_that_ended_is_given_back(
    script_environment: dict[str, str], view_of: Callable[[str], ClaimView]
) -> None:
    """Without a close, and without a complaint of Dask's."""
    done = subprocess.run(
        [sys.executable, "-c", _FORGETFUL],
        env=script_environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    result, claim_id = done.stdout.split()
    assert result == "3"
    assert view_of(claim_id).phase in (Phase.ENDING, Phase.ENDED)
    assert "Traceback" not in done.stderr
    # Its end is our own doing.
    assert "has ended" not in done.stderr


def _waiting(pool: Pool) -> set[str]:
    views = pool.background.run(lambda _say: pool.client.claims())
    return {view.name for view in views if view.phase is Phase.PENDING}
