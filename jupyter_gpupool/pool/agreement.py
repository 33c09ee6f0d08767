"""Whether what a kernel pickles can be read in an environment, and the other way round. Pure.

Called by the manager when a claim is asked for and when it is placed. The rules:

- **Python** has to agree in its first two numbers: functions travel as bytecode, which differs
  from one minor version to the next. Patch releases are alike.
- **dask and distributed** promise nothing between releases. Clients of 2025.4 to 2026.8 were seen
  to work with a scheduler and workers of 2026.7.1; those of 2025.1 and before are told nothing but
  that their futures were cancelled. So releases of up to a year apart are let through, which is
  within what was seen; distributed itself warns of each smaller difference.
- **cloudpickle, msgpack and numpy** have to agree in their first number: what they write names
  functions and modules, such as `numpy._core`, that the next major version has moved.

What one side has and the other does not name is unknown, and the unknown refuses nobody.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

Versions = Mapping[str, str]
"""Of "python" and of packages."""

_NUMBERS = re.compile(r"(\d+)(?:\.(\d+))?")
_MOST_MONTHS_APART = 12
_TITLES = {"python": "Python"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """The first thing that keeps a kernel and an environment from understanding each other.

    Attributes:
        package: "python", or a package's name.
        kernel: The kernel's version of it.
        environment: The environment's version of it.
    """

    package: str
    kernel: str
    environment: str

    def sentence(self, environment: str) -> str:
        """What is wrong, given the environment's name."""
        title = _TITLES.get(self.package, self.package)
        return (
            f'This kernel has {title} {self.kernel}, but the environment "{environment}" has'
            f" {title} {self.environment}: neither could read what the other pickles."
        )

    @property
    def remedy(self) -> str:
        """What to do about it on the kernel's side; begins in small letters."""
        if self.package == "python":
            major, minor = _pair(self.environment) or (0, 0)
            return f"use a kernel with Python {major}.{minor}"
        return f"install in the kernel: pip install {self.package}=={self.environment}"


def disagreement(kernel: Versions, environment: Versions) -> Disagreement | None:
    """What keeps them from understanding each other, or None if nothing is known to."""
    for package, agree in _RULES.items():
        ours, theirs = kernel.get(package, ""), environment.get(package, "")
        one, other = _pair(ours), _pair(theirs)
        if one is not None and other is not None and not agree(one, other):
            return Disagreement(package=package, kernel=ours, environment=theirs)
    return None


def that_matter(versions: Versions) -> tuple[tuple[str, str], ...]:
    """Of these, the ones that can keep anybody from understanding, in one order whoever tells."""
    return tuple((package, versions[package]) for package in _RULES if package in versions)


_Pair = tuple[int, int]


@lru_cache(maxsize=1024)
def _pair(version: str) -> _Pair | None:
    """Its first two numbers, or None if it is no version."""
    found = _NUMBERS.match(version)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def _same(one: _Pair, other: _Pair) -> bool:
    return one == other


def _same_major(one: _Pair, other: _Pair) -> bool:
    return one[0] == other[0]


def _about_as_old(one: _Pair, other: _Pair) -> bool:
    months = 12 * (one[0] - other[0]) + one[1] - other[1]
    return abs(months) <= _MOST_MONTHS_APART


_RULES: Mapping[str, Callable[[_Pair, _Pair], bool]] = {
    "python": _same,
    "distributed": _about_as_old,
    "dask": _about_as_old,
    "cloudpickle": _same_major,
    "msgpack": _same_major,
    "numpy": _same_major,
}
