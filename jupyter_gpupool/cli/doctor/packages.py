"""Do the packages of this Python fit each other, as a host with GPUs needs them?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version

from jupyter_gpupool.client.manager_process import check_installed
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.versions import read_versions, what_lacks

from .finding import Finding, note, problem, warning, well
from .sight import Sight

_STRICT = ("dask-cuda", "rapids-dask-dependency", "distributed")
"""They name one exact release of others; installing something else beside them breaks that."""
_STAND_IN = "pynvml"
_REINSTALL = 'Run: pip install "jupyter-gpupool[host]", best in an environment of its own.'


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFacts:
    """Packages of this Python that matter here.

    Attributes:
        versions: Of those that are installed, of those that matter for claims.
        lacks: What keeps workers from running here, and the line that mends it, with ": " between.
        has_stand_in: The package pynvml is installed.
        broken: What a package needs and does not have, as "dask-cuda needs dask==1; it is 2".
        missing: Why no private pool can be started, else None.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    lacks: str = ""
    has_stand_in: bool = False
    broken: Sequence[str] = ()
    missing: Unavailable | None = None


def check_packages(sight: Sight) -> Iterator[Finding]:
    """Look at what is installed; nothing is imported."""
    yield from judge_packages(look_at_packages(), is_pool_named=sight.is_pool_named)


def judge_packages(facts: PackageFacts, *, is_pool_named: bool) -> Iterator[Finding]:
    """Who uses a pool that others run needs no part of a private one."""
    found = [*_judge_missing(facts, is_pool_named=is_pool_named), *_judge_fit(facts)]
    yield from found or [well("packages", "The packages of this Python fit each other.")]


def _judge_missing(facts: PackageFacts, *, is_pool_named: bool) -> Iterator[Finding]:
    if facts.missing is not None and not is_pool_named:
        yield problem("private-pool-needs-packages", facts.missing.message, facts.missing.hint)
    if "distributed" not in facts.versions:
        yield note(
            "no-distributed",
            "This Python has no distributed, so it can show a pool, but use no claim.",
            "Nothing for a Jupyter server; in a kernel's environment: pip install distributed",
        )


def _judge_fit(facts: PackageFacts) -> Iterator[Finding]:
    for sentence in facts.broken:
        yield problem("requirement-broken", f"{sentence}.", _REINSTALL)
    if "dask-cuda" in facts.versions and facts.lacks:
        # Without dask-cuda it is no host's, and has no workers to run.
        what, _, command = facts.lacks.partition(": ")
        yield problem(
            "workers-lack-packages", f"No worker can run here: {what}.", f"Run: {command}"
        )
    if facts.has_stand_in:
        yield warning(
            "pynvml-package",
            "The package pynvml is installed, which only stands in for nvidia-ml-py.",
            "Run: pip uninstall -y pynvml && pip install --force-reinstall nvidia-ml-py",
        )


def look_at_packages() -> PackageFacts:
    """Read the metadata of this Python's packages."""
    missing = None
    try:
        check_installed()
    except Unavailable as error:
        missing = error
    wanted = {name: requires(name) or [] for name in _STRICT if version_of(name)}
    broken = [text for name, lines in wanted.items() for text in broken_requirements(name, lines)]
    return PackageFacts(
        versions=read_versions(),
        lacks=what_lacks(),
        has_stand_in=version_of(_STAND_IN) is not None,
        broken=broken,
        missing=missing,
    )


def broken_requirements(name: str, lines: Sequence[str]) -> Iterator[str]:
    """What of a package's own requirements is not met, a clause each."""
    # Every package that is asked about needs it itself; a bare Jupyter server may lack it.
    from packaging.requirements import Requirement  # noqa: PLC0415

    for wanted in map(Requirement, lines):
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        there = version_of(wanted.name)
        if there is None:
            yield f"{name} needs {wanted.name}, which is not installed"
        elif not wanted.specifier.contains(there, prereleases=True):
            yield f"{name} needs {wanted.name}{wanted.specifier}, and {there} is installed"


def version_of(name: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
