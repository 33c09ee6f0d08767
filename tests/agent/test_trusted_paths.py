"""Which environments a root zygote may load: pure over what was found."""

import sys
from pathlib import Path

import pytest

from jupyter_gpupool.agent.trusted_paths import PathFacts, first_untrusted, look_at

FOLDER = 0o040000
LINK = 0o120000


def _facts(**changes) -> PathFacts:
    return PathFacts(**({"path": "/opt/x", "uid": 0, "mode": FOLDER | 0o755} | changes))


@pytest.mark.parametrize(
    ("fact", "is_trusted"),
    [
        pytest.param(_facts(), True, id="root's alone"),
        pytest.param(_facts(uid=1000), False, id="a user's"),
        pytest.param(_facts(mode=FOLDER | 0o775), False, id="a group may write"),
        pytest.param(_facts(mode=FOLDER | 0o757), False, id="everybody may write"),
        pytest.param(_facts(mode=FOLDER | 0o1777, is_parent=True), True, id="sticky parent"),
        pytest.param(_facts(mode=FOLDER | 0o1777), False, id="sticky, but loaded from"),
        pytest.param(_facts(mode=FOLDER | 0o777, is_parent=True), False, id="open parent"),
        pytest.param(_facts(mode=LINK | 0o777, is_link=True), True, id="a link of root's"),
        pytest.param(_facts(mode=LINK | 0o777, is_link=True, uid=1000), False, id="a user's link"),
        pytest.param(_facts(leads_elsewhere=True), False, id="leads to unknown folders"),
    ],
)
def test_only_roots_own_paths_are_trusted(fact, is_trusted):
    """One path that somebody else may change is enough to refuse."""
    assert (first_untrusted([_facts(), fact]) is None) is is_trusted


def test_look_reaches_parents_folders_and_all_in_them():
    """The interpreter, what leads to it, and each file of its import folders are seen."""
    seen = {fact.path for fact in look_at(Path(sys.executable))}
    plugin = Path(pytest.__file__).parent / "__init__.py"
    assert {"/", sys.executable, str(plugin.parent.parent), str(plugin)} <= seen


def test_other_interpreters_are_looked_at_without_being_run(environment):
    """A stranger's Python is judged by its files: running it would be running its code."""
    assert str(environment.site / "package" / "deep") in environment.seen()


def test_file_deep_in_a_package_is_judged(environment):
    """One library that a group may write is enough, however deep it lies."""
    library = environment.site / "package" / "deep" / "library.so"
    library.write_bytes(b"")
    library.chmod(0o664)
    assert environment.facts_of(library).mode & 0o020


def test_links_are_followed_through_what_leads_to_their_ends(environment, tmp_path):
    """A link's end is loaded: it is seen with its parents and all in it."""
    elsewhere = tmp_path / "elsewhere" / "package"
    elsewhere.mkdir(parents=True)
    (elsewhere / "module.py").write_text("")
    (environment.site / "linked").symlink_to(elsewhere)
    assert {str(elsewhere / "module.py"), str(elsewhere.parent)} <= environment.seen()


def test_path_files_and_library_folders_are_followed(environment, tmp_path):
    """What a `.pth` file or the loader adds is loaded as well."""
    for name in ("added", "libraries"):
        (tmp_path / name / "inside").mkdir(parents=True)
    (environment.site / "more.pth").write_text(f"import sys\n{tmp_path / 'added'}\n")
    wanted = {str(tmp_path / "added" / "inside"), str(tmp_path / "libraries" / "inside")}
    assert wanted <= environment.seen(libraries=f":{tmp_path / 'libraries'}")


def test_python_that_an_environment_was_copied_from_is_looked_at(environment, tmp_path):
    """It loads the standard library from there, though its own interpreter is no link."""
    module = tmp_path / "base" / "lib" / "python3.11" / "os.py"
    module.parent.mkdir(parents=True)
    module.touch()
    (environment.python.parent.parent / "pyvenv.cfg").write_text(f"home = {tmp_path}/base/bin\n")
    assert str(module) in environment.seen()


def test_editable_finder_is_not_trusted(environment):
    """It maps names to folders in code, which only running it would tell."""
    finder = environment.site / "__editable___pkg_1_0_finder.py"
    finder.write_text("")
    assert environment.facts_of(finder).leads_elsewhere


def test_missing_folder_is_judged_by_who_could_make_it(environment, tmp_path):
    """In a folder such as /tmp anybody makes what is missing: its being sticky is no help."""
    missing = tmp_path / "missing"
    facts = list(look_at(environment.python, str(missing)))
    assert [f.is_parent for f in facts if f.path == str(tmp_path)].count(False) == 1


class Environment:
    """A stranger's Python."""

    def __init__(self, prefix: Path) -> None:
        self.site = prefix / "lib" / "python3.11" / "site-packages"
        (self.site / "package" / "deep").mkdir(parents=True)
        self.python = prefix / "bin" / "python"
        self.python.parent.mkdir()
        self.python.write_text("#!/bin/false\n")

    def seen(self, libraries: str = "") -> set[str]:
        return {fact.path for fact in look_at(self.python, libraries)}

    def facts_of(self, path: Path) -> PathFacts:
        return next(fact for fact in look_at(self.python) if fact.path == str(path))


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "env")
