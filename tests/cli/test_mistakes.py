"""A user's mistake is one line and an exit status, never a traceback."""

import subprocess
import sys
from collections.abc import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_pool_that_does_not_answer_is_one_line(run: Run) -> None:
    """It says where it looked and what to check, and the status is 1."""
    done = run("status")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "http://127.0.0.1:9" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("status", "--no-such-option"),
        ("claim", "many"),
        ("claim", "4-1"),
        ("claim", "2", "--time-limit", "soon"),
        ("claim", "2", "--gpu-memory", "much"),
        ("claim", "1.5"),
        ("claim", "0.5.1"),
        ("claim", "0.5", "--gpu-memory", "1GiB"),
        ("claim", "3", "--gpus-per-worker", "2"),
        ("claim", "1", "--gpus-per-worker", "1.5"),
        ("claim", "2", "--nthreads", "0"),
        ("claim", "2", "--timeout", "soon"),
        ("claim", "2", "--timeout", "soon", "--detach"),
        ("scale", "x", "-3"),
        ("release",),
        ("release", "x", "--all"),
        ("token", "create", "--user", ""),
        ("token", "create", "--expires", "never"),
        ("token", "create", "--role", "king"),
        ("token", "revoke"),
        ("events", "--limit", "0"),
        ("token", "create", "--label", "x" * 201),
        ("token", "create", "--expires", "3655d"),
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(run: Run, arguments: tuple[str, ...]) -> None:
    """Status 2, and nothing of Python shows."""
    done = run(*arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("jupyter gpupool: ")


_WINDOW = ("--queue", "default", "--from", "now", "--until", "1h")


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        (("claim", "-1"), 'Write for example 2, "1-4", or 0.5 for a part of one.'),
        (("claim", "-0.5", "--detach"), 'Write for example 2, "1-4", or 0.5'),
        (("estimate", "-2", "--model", "A100"), 'Write for example 2, "1-4", or 0.5'),
        (("scale", "x", "-3"), 'Write for example 2, or "1-4".'),
        (("keep", "x", "-1h"), 'Write for example "2h".'),
        (("keep", "x", "1h", "--reason", "-1h", "-2"), "unexpected extra argument (-2)"),
        (("claim", "2", "--time-limit", "-1h"), 'Write for example "2h".'),
        (("reserve", "-1", *_WINDOW), "-1 is not in the range x>=1"),
        (("policy", "rollback", "-1", "--json"), "-1 is not in the range x>=0"),
        (("claim", "--colour", "red"), "See: jupyter gpupool claim --help"),
        (("no-such-command",), "See: jupyter gpupool --help"),
    ],
)
def test_mistake_says_what_is_valid(run: Run, arguments: tuple[str, ...], valid: str) -> None:
    """Or where to read it; a number below 0 is a number, and no option that is lacking."""
    assert valid in run(*arguments).stderr


def test_command_of_commands_lists_them(run: Run) -> None:
    """Whoever says no more of it does not know it yet."""
    assert "rollback" in run("policy").stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"GPUPOOL_URL": "nonsense", "GPUPOOL_TOKEN": "t"},
        {"GPUPOOL_URL": "http://127.0.0.1:9"},
        {"GPUPOOL_URL": "http://127.0.0.1:99999", "GPUPOOL_TOKEN": "t"},
        {"GPUPOOL_URL": "http://127.0.0.1:9", "GPUPOOL_TOKEN": "t\u00e9"},
        {"GPUPOOL_URL": "http://127.0.0.1:9", "GPUPOOL_TOKEN_FILE": "/no/such/file"},
        {"GPUPOOL_URL": "http://127.0.0.1:9", "GPUPOOL_TOKEN_FILE": "/"},
        {"GPUPOOL_TOKEN": "t"},
        {"GPUPOOL_URL": "https://127.0.0.1:9", "GPUPOOL_TOKEN": "t", "GPUPOOL_CA": "/no/file"},
        {"GPUPOOL_URL": "https://127.0.0.1:9", "GPUPOOL_TOKEN": "t", "GPUPOOL_CA": "/"},
        {"GPUPOOL_URL": "https://127.0.0.1:9", "GPUPOOL_TOKEN": "t", "GPUPOOL_CA": __file__},
    ],
)
def test_unusable_environment_is_one_line(run: Run, environment: dict[str, str]) -> None:
    """Whatever is wrong with it."""
    done = run("status", environment=environment)
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("jupyter gpupool: ")


@pytest.mark.parametrize(
    "command",
    [
        *("status", "claim", "claims", "release", "scale", "hosts", "devices", "events", "demo"),
        *("explain", "log", "keep", "environments", "doctor"),
        *("token create", "token list", "token revoke"),
    ],
)
def test_each_command_explains_itself_and_speaks_json(run: Run, command: str) -> None:
    """Every command that shows something has --json."""
    done = run(*command.split(), "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout


def test_help_loads_nothing_heavy() -> None:
    """Neither HTTP nor Dask nor pydantic is needed to explain oneself."""
    script = (
        "import sys\n"
        "from jupyter_gpupool.cli.root import run\n"
        "run(['--help'])\n"
        "print({'httpx', 'distributed', 'pydantic', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "set()"
