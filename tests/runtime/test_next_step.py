"""What a scheduler does next about its results: pure."""

import pytest

from jupyter_gpupool.protocol.keeping import KeepPhase, Wish
from jupyter_gpupool.runtime.next_step import Standing, Step, next_step


def _standing(wish, phase, **others):
    usual = {
        "surveyed": False,
        "failed": False,
        "has_holder": False,
        "has_workers": True,
        "held": 0,
        "left_behind": False,
    }
    return Standing(wish=Wish(wish), phase=KeepPhase(phase), **usual | others)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        pytest.param(_standing("awake", "awake"), None, id="all is well"),
        pytest.param(_standing("surveyed", "awake"), Step.SURVEY, id="asked what could be kept"),
        pytest.param(_standing("surveyed", "awake", surveyed=True), None, id="answered once"),
        pytest.param(
            _standing("hibernated", "awake", has_holder=True), Step.SURVEY, id="looks first"
        ),
        pytest.param(
            _standing("hibernated", "awake", surveyed=True), None, id="waits for the holder"
        ),
        pytest.param(
            _standing("hibernated", "awake", surveyed=True, has_holder=True),
            Step.HIBERNATE,
            id="knows all and has a holder",
        ),
        pytest.param(
            _standing("hibernated", "awake", surveyed=True, has_holder=True, failed=True),
            None,
            id="what failed is not tried for ever",
        ),
        pytest.param(
            _standing("hibernated", "refused", surveyed=True, has_holder=True),
            None,
            id="what was refused waits for another wish",
        ),
        pytest.param(
            _standing("hibernated", "hibernated", has_holder=True, held=3), None, id="is done"
        ),
        pytest.param(_standing("hibernated", "lost"), None, id="lost is lost"),
        pytest.param(
            _standing("hibernated", "resuming", has_holder=True, held=3),
            Step.SURVEY,
            id="changed its mind half way back",
        ),
        pytest.param(
            _standing("awake", "hibernated", has_holder=True, held=3), Step.RESUME, id="resumes"
        ),
        pytest.param(
            _standing("awake", "hibernated", has_holder=True, held=3, has_workers=False),
            None,
            id="no worker to resume with yet",
        ),
        pytest.param(_standing("awake", "hibernated"), Step.RESUME, id="had no results at all"),
        pytest.param(
            _standing("awake", "awake", has_holder=True, held=3),
            Step.RESUME,
            id="called off half way there",
        ),
        pytest.param(
            _standing("awake", "resuming", has_holder=True, held=3, failed=True),
            None,
            id="some cannot be brought back",
        ),
        pytest.param(
            _standing("awake", "awake", has_holder=True, held=1, failed=True, left_behind=True),
            None,
            id="what no worker can read stays",
        ),
        pytest.param(
            _standing("surveyed", "awake", has_holder=True, held=1, failed=True, left_behind=True),
            Step.SURVEY,
            id="what was left behind keeps nobody from asking",
        ),
        pytest.param(
            _standing("awake", "awake", has_holder=True, failed=True, left_behind=True),
            Step.RESUME,
            id="nobody wants what was left behind any more",
        ),
    ],
)
def test_next_step(standing, expected):
    """Wish, phase, and who is there decide, and nothing else."""
    assert next_step(standing) is expected
