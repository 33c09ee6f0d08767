"""Every command, route, setting and benchmark has its place in the docs."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The pages as a fresh process writes them: click's commands remember how they were called."""
    folder = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, DOCS / "generate.py", folder], check=True)
    return folder


WRITTEN = ["configuration.md", "api.md", "cli.md", "magics.md", "policy.schema.json"]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_reference_page_is_what_the_code_says(name, written):
    """A changed setting, route or command changes its page: run `make docs`."""
    assert (DOCS / name).read_text() == (written / name).read_text()


def test_no_reference_page_is_forgotten(generate):
    """Each page that can be written is checked above."""
    assert set(generate.PAGES) == set(WRITTEN)


def test_every_route_is_in_the_architectures_table(generate):
    """The table that also says who may, lists every route there is."""
    told = (DOCS / "architecture.md").read_text()
    paths = re.findall(r"^\| `(/[^`]+)`", generate.api(), flags=re.MULTILINE)
    missing = [path for path in paths if not _is_told(path, told)]
    assert paths
    assert missing == []


def _is_told(path: str, told: str) -> bool:
    short = re.sub(r"\{\w+\}", "{id}", path)
    return any(form in told for form in (f"`{short}", f"{short}`", short.removeprefix("/api/v1")))


def test_every_setting_says_its_default(generate):
    """A setting whose default nobody can read is half a setting."""
    rows = [row for row in generate.configuration().splitlines() if row.startswith("| `")]
    silent = [row for row in rows if "Default" not in row and "Required" not in row]
    assert rows
    assert silent == []


def test_every_benchmark_and_its_figures_are_documented():
    """Each script and each key of its last line stands in docs/benchmarks.md."""
    told = (DOCS / "benchmarks.md").read_text()
    scripts = [
        path
        for path in (ROOT / "tests" / "benchmarks").glob("*.py")
        if "--json" in path.read_text() and path.name != "harness.py"
    ]
    missing = [path.name for path in scripts if path.name not in told]
    assert scripts
    assert missing == []


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in DOCS.glob("*.md"))]
)
def test_every_link_leads_somewhere(page):
    """A relative link names a file that is there."""
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())
    missing = [link for link in links if not (path.parent / link).exists()]
    assert missing == []


def test_every_place_on_a_page_is_there():
    """A link to a heading of the README says what the heading says."""
    text = (ROOT / "README.md").read_text()
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    places = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    wanted = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert wanted
    assert wanted <= places


def test_the_readme_begins_with_the_two_commands():
    """Whoever opens it reads first how to see it work."""
    commands = re.findall(r"^make \w+", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert commands[:2] == ["make demo", "make test"]
