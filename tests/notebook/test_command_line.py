"""The words of a command line."""

from collections.abc import Callable, Sequence

import click
import pytest

from jupyter_gpupool.notebook.command_line import Commands, bounds, devices, mistake_in_words
from jupyter_gpupool.pool.errors import BadRequest


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def pool() -> None:
    """Answers with what it has read."""


@pool.command()
@click.argument("words", nargs=-1)
@click.option("--note")
@click.option("--all", "every", is_flag=True)
def take(**read: object) -> dict[str, object]:
    return read


@pytest.fixture
def read() -> Callable[..., dict[str, object]]:
    """What `take` makes of these words."""

    def run(*words: str) -> dict[str, object]:
        answer: dict[str, object] = pool.main(["take", *words], standalone_mode=False)
        return answer

    return run


@pytest.mark.parametrize(
    ("said", "words", "note", "every"),
    [
        (["-1"], ("-1",), None, False),
        (["mine", "-1h"], ("mine", "-1h"), None, False),
        (["-.5", "mine", "--all"], ("-.5", "mine"), None, True),
        (["--note", "-1", "mine", "-2"], ("mine", "-2"), "-1", False),
        (["-2", "--note=-1"], ("-2",), "-1", False),
        (["-2", "--", "--all", "-3"], ("-2", "--all", "-3"), None, False),
    ],
)
def test_number_below_zero_is_a_word(
    read: Callable[..., dict[str, object]],
    said: Sequence[str],
    words: tuple[str, ...],
    note: str | None,
    *,
    every: bool,
) -> None:
    """In its place, and whatever options stand around it."""
    assert read(*said) == {"words": words, "note": note, "every": every}


def test_unknown_option_is_none_beside_a_number(read: Callable[..., dict[str, object]]) -> None:
    """It is not taken for a word, and the sentence names the command to read about."""
    with pytest.raises(click.NoSuchOption) as refused:
        read("-1", "--colour", "red")
    said = mistake_in_words(refused.value, "elsewhere")
    assert "--colour" in said
    assert said.endswith("take --help")


def test_option_without_its_value_is_missed(read: Callable[..., dict[str, object]]) -> None:
    """The number before it is no value of it."""
    with pytest.raises(click.BadOptionUsage):
        read("-1", "--note")


@pytest.mark.parametrize(("text", "read_as"), [("2", (2, 2)), ("1-4", (1, 4))])
def test_bounds_read_as_written(text: str, read_as: tuple[int, int]) -> None:
    """One number, or the least and the most; devices are counted alike."""
    assert bounds(text) == devices(text) == read_as


@pytest.mark.parametrize(
    "text",
    ["-1", "-0.5", "4-x", "many", "0.5.1", "nan", "", "1-x", "-.5", "½", "1-2-3", "9" * 5000],
)
def test_nonsense_is_no_number_of_devices(text: str) -> None:
    """And the hint says what one is."""
    with pytest.raises(BadRequest, match="is no number of devices") as refused:
        devices(text)
    assert refused.value.hint == 'Write for example 2, "1-4", or 0.5 for a part of one.'
