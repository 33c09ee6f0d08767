from pathlib import Path

import pytest
from stubs.build import NoCompiler, StubLibraries, build


@pytest.mark.stubs
def test_stubs_are_compiled_once(stub_libraries: StubLibraries, tmp_path: Path):
    """The same sources are not compiled again, and both libraries are there."""
    first = build(tmp_path)
    made_ns = first.nvml.stat().st_mtime_ns
    assert build(tmp_path) == first
    assert (first.nvml.stat().st_mtime_ns, first.cuda.exists()) == (made_ns, True)


def test_a_missing_compiler_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Tests are then skipped with this line, and nothing half-built stays."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(NoCompiler, match="need a C compiler") as refused:
        build(tmp_path / "stubs")
    assert "\n" not in str(refused.value)
    assert list((tmp_path / "stubs").iterdir()) == []
