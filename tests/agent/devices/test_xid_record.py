import json
import logging
from pathlib import Path

import pytest

from jupyter_gpupool.agent.devices.xid_record import XidRecord


def test_a_restart_of_the_host_ends_a_record(tmp_path: Path):
    """GPUs start anew with it."""
    file = tmp_path / "xids"
    XidRecord(file).add("GPU-1", 79)
    kept = json.loads(file.read_text())
    file.write_text(json.dumps(kept | {"boot": "another"}))
    assert XidRecord(file).of("GPU-1") == ()


def test_what_is_forgotten_stays_so(tmp_path: Path):
    """Of one GPU alone."""
    record = XidRecord(tmp_path / "xids")
    record.add("GPU-1", 79)
    record.add("GPU-2", 95)
    record.forget("GPU-1")
    again = XidRecord(tmp_path / "xids")
    assert (again.of("GPU-1"), again.of("GPU-2")) == ((), (95,))


@pytest.mark.parametrize("text", ["", "[]", '{"boot": 1}', "\x00"])
def test_a_damaged_record_is_told_and_left(tmp_path: Path, caplog, text):
    """It keeps no agent from starting."""
    (tmp_path / "xids").write_text(text)
    with caplog.at_level(logging.WARNING):
        record = XidRecord(tmp_path / "xids")
    assert record.of("GPU-1") == ()
    assert len(caplog.records) == (0 if "boot" in text else 1)


def test_a_record_that_cannot_be_written_is_told(tmp_path: Path, caplog):
    """The XID still counts for this agent."""
    record = XidRecord(tmp_path / "missing" / "xids")
    record.add("GPU-1", 79)
    assert record.of("GPU-1") == (79,)
    assert "not kept" in caplog.text
