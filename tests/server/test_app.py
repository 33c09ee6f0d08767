"""What every Jupyter server pays for the extension, and how it is found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jupyter_gpupool
from jupyter_gpupool.client import discovery
from jupyter_gpupool.server import app
from jupyter_gpupool.server.app import GpuPoolExtension

CONFIG = "etc/jupyter/jupyter_server_config.d/jupyter_gpupool.json"
LOADED = """
import sys
import jupyter_server.serverapp
before = set(sys.modules)
import jupyter_gpupool
jupyter_gpupool._jupyter_server_extension_points()
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_loading_it_loads_nothing_heavy() -> None:
    """The server starts as fast as without it: our own files, and what such a server has anyway."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    others = set(done.stdout.split()) - set(sys.stdlib_module_names)
    assert others <= {"jupyter_gpupool", "jupyter_server"}


def test_installing_enables_it() -> None:
    """The file that pip puts beside Jupyter's own names the package that has the extension."""
    enabled = json.loads((Path(__file__).parents[2] / CONFIG).read_text())
    points = jupyter_gpupool._jupyter_server_extension_points()
    assert enabled == {"ServerApp": {"jpserver_extensions": {points[0]["module"]: True}}}
    assert points[0]["app"] is GpuPoolExtension


def test_what_is_set_holds_for_kernels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They find their pool by the environment; a file for the token comes before a variable."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ[app._TOKEN] = "gpt_old"
    app._name_pool("https://pool.example.org", "/etc/token", "")
    named = {name: os.environ[name] for name in os.environ if name.startswith("GPUPOOL_")}
    assert named == {"GPUPOOL_URL": "https://pool.example.org", "GPUPOOL_TOKEN_FILE": "/etc/token"}


def test_the_variables_are_the_clients_own() -> None:
    """Written twice, for importing the client would make the server start later."""
    theirs = (discovery.URL, discovery.TOKEN, discovery.TOKEN_FILE, discovery.CA)
    assert theirs == (app._URL, app._TOKEN, app._TOKEN_FILE, app._CA)
