"""The worked example of docs/scheduling.md comes out as it says."""

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "scheduling.md"


def test_worked_example_is_true():
    """Every line that the document shows is what the engine gives."""
    failed, tried = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert tried > 10
    assert failed == 0
