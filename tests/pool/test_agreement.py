"""Which versions of a kernel and of an environment understand each other."""

import pytest

from jupyter_gpupool.pool.agreement import Disagreement, disagreement, that_matter


@pytest.mark.parametrize(
    ("package", "kernel", "environment"),
    [
        ("python", "3.11.7", "3.11.15"),
        ("distributed", "2026.7.0", "2026.7.1"),
        ("dask", "2025.7.0", "2026.7.1"),
        ("dask", "2026.8.0", "2026.7.1"),
        ("cloudpickle", "3.1.3", "3.0.0"),
        ("msgpack", "1.0.5", "1.2.4"),
        ("numpy", "2.0.1", "2.4.6"),
        ("numpy", "unknown", "2.4.6"),
        ("pandas", "1.5.0", "3.1.1"),
    ],
)
def test_versions_that_understand_each_other_agree(package, kernel, environment):
    """Nobody is refused for a difference that does no harm, or that nobody knows of."""
    assert disagreement({package: kernel}, {package: environment}) is None
    assert disagreement({package: environment}, {package: kernel}) is None


@pytest.mark.parametrize(
    ("package", "kernel", "environment"),
    [
        ("python", "3.10.1", "3.11.7"),
        ("python", "3.12.0", "3.11.7"),
        ("distributed", "2025.1.0", "2026.7.1"),
        ("dask", "2025.6.0", "2026.7.1"),
        ("cloudpickle", "2.2.1", "3.1.3"),
        ("msgpack", "0.6.2", "1.2.4"),
        ("numpy", "1.26.4", "2.4.6"),
        ("numpy", "2.1.0rc1", "1.26.4"),
    ],
)
def test_versions_that_break_pickling_disagree(package, kernel, environment):
    """Both versions are named, whichever side is the older one."""
    found = disagreement({package: kernel}, {package: environment})
    assert found == Disagreement(package=package, kernel=kernel, environment=environment)
    assert disagreement({package: environment}, {package: kernel}) is not None


def test_what_one_side_does_not_name_is_no_disagreement():
    """A kernel without dask, and an environment nobody has looked at yet, refuse nobody."""
    assert disagreement({"python": "3.11.7"}, {"python": "3.11.7", "dask": "2026.7.1"}) is None
    assert disagreement({"python": "3.10.1"}, {}) is None


def test_disagreement_says_both_versions_and_the_way_out():
    """Its user can act on it without looking anything up."""
    found = Disagreement(package="python", kernel="3.10.1", environment="3.11.7")
    sentence = found.sentence("rapids")
    assert all(word in sentence for word in ("3.10.1", "3.11.7", '"rapids"'))
    assert found.remedy == "use a kernel with Python 3.11"


def test_remedy_for_a_package_can_be_pasted():
    """It installs in the kernel what the environment has."""
    found = Disagreement(package="numpy", kernel="1.26.4", environment="2.4.6")
    assert found.remedy == "install in the kernel: pip install numpy==2.4.6"


def test_only_what_can_disagree_matters():
    """Whatever else a kernel tells is nothing to keep, in whichever order it is told."""
    told = {"pandas": "3.0", "numpy": "2.4.6", "python": "3.11.7"}
    assert that_matter(told) == (("python", "3.11.7"), ("numpy", "2.4.6"))
