"""What the end of a log says as a reason."""

from jupyter_gpupool.agent.log_ends import last_lines


def test_last_lines_are_few_short_and_printable(tmp_path) -> None:
    """They end in a sentence for a user."""
    log = tmp_path / "log"
    log.write_text("".join(f"{n}\x1b[31m{'x' * 1000}\n" for n in range(50)))
    lines = last_lines(log).split(" | ")
    assert len(lines) <= 10
    assert all(len(line) <= 400 and line.isprintable() for line in lines)


def test_last_lines_of_another_process_are_left_out(tmp_path) -> None:
    """What was there before is no reason of this one's."""
    log = tmp_path / "log"
    log.write_text("theirs\nours\n\nend\n")
    assert last_lines(log, since=len("theirs\n")) == "ours | end"


def test_no_log_has_no_last_lines(tmp_path) -> None:
    """A process may die before it says a word."""
    assert last_lines(tmp_path / "log") == ""


def test_log_that_was_cut_meanwhile_tells_what_is_left(tmp_path) -> None:
    """Where this process's words began is no place in it any more."""
    log = tmp_path / "log"
    log.write_text("end\n")
    assert last_lines(log, since=1000) == "end"
