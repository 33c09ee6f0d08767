"""The file by which a private pool is found, in every state in which it may be left."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.runtime_file import (
    FileState,
    check_runtime_file,
    judge_runtime_file,
    told_by,
)
from jupyter_gpupool.client.discovery import runtime_file
from jupyter_gpupool.client.this_host import ThisHost, started_at

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write this user's runtime file, as a manager that is this very process would."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    host = ThisHost.read()

    def build(**changes: Any) -> Path:
        told = {
            "url": "http://127.0.0.1:9",
            "token": "gpt_secret",
            "manager_pid": os.getpid(),
            "manager_started": started_at(os.getpid()),
            "host": host.mark,
            "boot_id": host.boot_id,
            "uid": host.uid,
            "started": datetime.now(UTC).isoformat(),
        }
        path = runtime_file()
        path.write_text(json.dumps(told | changes))
        path.chmod(0o600)
        return path

    return build


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, FileState.RUNNING),
        ({"manager_started": 1}, FileState.GONE),
        ({"boot_id": "another"}, FileState.OTHER_BOOT),
        ({"host": "another"}, FileState.OTHER_HOST),
        ({"uid": 4711}, FileState.OTHER_USER),
        ({"manager_pid": "none"}, FileState.DAMAGED),
    ],
)
def test_each_way_of_being_stale_is_told_apart(
    write: Write, changes: dict[str, Any], told: FileState
):
    """A pid alone proves nothing."""
    assert told_by(write(**changes)) is told


@pytest.mark.parametrize(
    ("told", "severity"),
    [
        (FileState.NOTHING, Severity.WELL),
        (FileState.RUNNING, Severity.WELL),
        (FileState.GONE, Severity.NOTE),
        (FileState.OTHER_BOOT, Severity.NOTE),
        (FileState.DAMAGED, Severity.WARNING),
    ],
)
def test_a_stale_file_is_a_note_and_a_damaged_one_a_warning(told: FileState, severity: Severity):
    """For the next use replaces both."""
    assert judge_runtime_file(told, Path("/run/file")).severity is severity


def test_a_file_that_is_cut_off_is_damaged(write: Write, sees):
    """As a full disk leaves it; its content is not shown."""
    path = write()
    path.write_text(path.read_text()[:40])
    (found,) = check_runtime_file(sees())
    assert (found.reference, "gpt_secret" in found.what) == ("runtime-file-damaged", False)


def test_a_file_that_others_can_read_is_a_problem(write: Write, sees):
    """Nothing in it is trusted, so no claim can be made; what helps is told."""
    write().chmod(0o644)
    (found,) = check_runtime_file(sees())
    assert (found.severity, "chmod 600" in found.mend) == (Severity.PROBLEM, True)


def test_no_file_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sees):
    """The first use writes it."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    (found,) = check_runtime_file(sees())
    assert found.severity is Severity.WELL
