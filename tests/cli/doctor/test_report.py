"""What people see."""

import pytest

from jupyter_gpupool.cli.doctor.examination import Told
from jupyter_gpupool.cli.doctor.finding import Severity, note, problem, unknown, warning, well
from jupyter_gpupool.cli.doctor.report import document, show, summary
from jupyter_gpupool.cli.doctor.sight import Group

TOLD = (
    Told(Group.FILES, well("w", "It is [well].")),
    Told(Group.POOL, problem("p", "It fails.", "Mend it.")),
)


def test_each_finding_shows_word_sentence_and_mend(capsys):
    """No meaning is in the colour alone, and brackets are no markup."""
    show(TOLD)
    shown = capsys.readouterr().out
    for text in ("problem", "It fails.", "Mend it.", "well", "It is [well]."):
        assert text in shown


def test_what_no_terminal_can_show_is_written_out(capsys):
    """A path that is no text, and an escape sequence from afar."""
    show([Told(Group.POOL, well("w", "At /caf\udce9 and \x1b[31m."))])
    shown = capsys.readouterr().out
    assert "/caf\\udce9" in shown
    assert "\\x1b[31m" in shown


def test_groups_come_in_one_order(capsys):
    """The pool first, whoever looked first."""
    show(TOLD)
    shown = capsys.readouterr().out
    assert shown.index("Pool") < shown.index("Files")


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([well("w", "Well.")], "Nothing to mend; 1 well."),
        (
            [problem("p", "", ""), note("n", "", ""), note("n", "", ""), unknown("u", "", "")],
            "1 problem, 1 unknown, 2 notes; 0 well.",
        ),
        ([warning("a", "", "")], "1 warning; 0 well."),
    ],
)
def test_the_last_line_counts(findings, words):
    """Worst first."""
    assert summary(findings) == words


def test_a_program_reads_the_worst_and_the_status():
    """The document says all that the exit status says."""
    told = document(TOLD)
    assert (told["worst"], told["exit_status"]) == (Severity.PROBLEM.value, 1)
    assert set(told["findings"][0]) == {"group", "reference", "severity", "what", "mend"}
