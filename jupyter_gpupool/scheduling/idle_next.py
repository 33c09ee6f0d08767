"""When the next thing can happen to a claim if nothing stirs: so that nobody has to look before.

Called after each sample, which may come long before the next one.
"""

from collections.abc import Iterator

from jupyter_gpupool.pool.idle_match import Subject
from jupyter_gpupool.pool.idle_rule import IdleRule, Terms

from .idle_grounds import in_ms
from .idle_runs import Run, idle_gauge, orphan_gauge
from .idle_watch import Watch


def next_in_ms(watch: Watch, rule: IdleRule | None, subject: Subject) -> int | None:
    """Milliseconds of the watch's time until a warning or a taking may be due.

    Returns:
        None if nothing is ahead. What is due already shows with whatever sample comes next.
    """
    if rule is None:
        return None
    return min((each for each in _ahead(watch, rule, subject) if each > 0), default=None)


def _ahead(watch: Watch, rule: IdleRule, subject: Subject) -> Iterator[int]:
    if watch.warned is not None:
        yield watch.warned.due_ms - watch.now_ms
    if watch.is_kept:
        yield watch.keeps[-1].until_ms - watch.now_ms
    runs = {run.gauge: run for run in watch.runs}
    for terms, gauge in (
        (rule.idle_terms(subject.wish), idle_gauge(rule)),
        (rule.orphaned, orphan_gauge(rule)),
    ):
        if terms is not None and (run := runs.get(gauge)) is not None and run.idle_ms:
            yield from _of_run(terms, run)
    if rule.longest is not None:
        yield in_ms(rule.longest.warn_s) - watch.now_ms


def _of_run(terms: Terms, run: Run) -> Iterator[int]:
    yield in_ms(terms.warn_s) - run.idle_ms
    yield in_ms(terms.after_s) - run.idle_ms
