"""This environment's Jupyter."""

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.jupyter import (
    JupyterFacts,
    judge_jupyter,
    loads_magics,
    look_at_jupyter,
)

BOTH = {"has_server": True, "is_enabled": True, "has_kernel": True, "loads_magics": True}


def judged(**changes: Any) -> dict[str, Severity]:
    found = judge_jupyter(JupyterFacts(**(BOTH | changes)))
    return {each.reference: each.severity for each in found if each.severity is not Severity.WELL}


def test_a_whole_environment_is_well():
    """Server, magics and card."""
    assert judged() == {}


@pytest.mark.parametrize(
    ("changes", "reference", "severity"),
    [
        ({"is_enabled": None}, "server-extension-missing", Severity.WARNING),
        ({"is_enabled": False}, "server-extension-disabled", Severity.WARNING),
        ({"loads_magics": False}, "magics-not-loaded", Severity.WARNING),
        ({"missing_for_card": ("anywidget",)}, "no-live-card", Severity.NOTE),
        ({"has_server": False, "has_kernel": False}, "no-jupyter", Severity.NOTE),
    ],
)
def test_what_is_missing_is_told(changes, reference: str, severity: Severity):
    """Each alone."""
    assert judged(**changes) == {reference: severity}


@pytest.mark.parametrize("name", ["jupyter_gpupool", "jupyter_gpupool.notebook.magics"])
def test_magics_are_found_in_ipythons_configuration(tmp_path: Path, name: str):
    """In whichever folder it stands, and whichever module of ours it names."""
    told = {"InteractiveShellApp": {"extra_extensions": ["other", name]}}
    (tmp_path / "ipython_config.json").write_text(json.dumps(told))
    assert loads_magics((tmp_path / "none", tmp_path))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"InteractiveShellApp": {"extra_extensions": 0}}']
)
def test_a_configuration_of_another_form_loads_no_magics(tmp_path: Path, text: str):
    """It is not ours to complain about."""
    (tmp_path / "ipython_config.json").write_text(text)
    assert not loads_magics((tmp_path,))


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_servers_own_configuration_decides(tmp_path: Path, monkeypatch, *, is_enabled: bool):
    """As `jupyter server extension` writes it."""
    pytest.importorskip("jupyter_server")
    folder = tmp_path / "jupyter_server_config.d"
    folder.mkdir()
    told = {"ServerApp": {"jpserver_extensions": {"jupyter_gpupool": is_enabled}}}
    (folder / "jupyter_gpupool.json").write_text(json.dumps(told))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    assert look_at_jupyter().is_enabled is is_enabled
