"""Zygotes' logs: kept while they tell something, and never without end."""

import os

from jupyter_gpupool.agent.zygote_logs import remove_old_zygote_logs, zygote_log


def _logs(folder, count: int):
    logs = [zygote_log(folder, f"kernel-{number}", 1000) for number in range(count)]
    for number, log in enumerate(logs):
        log.touch()
        os.utime(log, (number, number))
    return logs


def test_log_of_old_goes_unless_its_zygote_runs(tmp_path) -> None:
    """A zygote that has been silent for long may still have something to say."""
    old, running, young = _logs(tmp_path, 3)
    remove_old_zygote_logs(tmp_path, keep={running}, older_than_s=2)
    assert set(tmp_path.iterdir()) == {running, young}
    assert not old.exists()


def test_only_so_many_logs_of_zygotes_that_are_gone_stay(tmp_path) -> None:
    """A user may name a new interpreter each time; the newest tell most."""
    logs = _logs(tmp_path, 120)
    remove_old_zygote_logs(tmp_path, keep={logs[0]}, older_than_s=0)
    assert set(tmp_path.iterdir()) == {logs[0], *logs[20:]}


def test_logs_of_claims_are_left_alone(tmp_path) -> None:
    """They go with their claims."""
    (tmp_path / "c1").mkdir()
    remove_old_zygote_logs(tmp_path, keep=(), older_than_s=1e12)
    assert (tmp_path / "c1").exists()
