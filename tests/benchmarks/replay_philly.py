"""One shared pool against a split by team, on the Philly trace and by the scheduling proper.

    python tests/benchmarks/replay_philly.py [--json] [--one-host]

The split: each team alone on GPUs of its own, 1,128 in all. The pool: 0.6 and 0.5 times as many, in
hosts of 8, least attained service, 60 s for every hibernate-and-resume; guarantees in proportion to
the split, or none. A job is a gang of workers with one GPU each, on as few hosts as there is room;
with `--one-host` up to eight GPUs start on one host or not at all, and what that costs is seen.
Virtual time, one process for each replay.
"""

import argparse
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import Pool

import philly
from harness import Figure, Target, finish, note, options, table

from jupyter_gpupool.simulation.outcome import Outcome, jain_index

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the teams are served: each alone, or on one pool of so many hosts."""

    name: str
    hosts: int = 0
    guaranteed: bool = False
    on_one_host: bool = False


STATIC = Setting(name="split by team")
POOLS = {
    "0.6": Setting(name="pool of 0.6, guarantees", hosts=85, guaranteed=True),
    "0.5": Setting(name="pool of 0.5, guarantees", hosts=71, guaranteed=True),
    "0.5 free": Setting(name="pool of 0.5, no guarantees", hosts=71),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a setting came to.

    Attributes:
        completion_s: Mean from request to end, by team.
        took_s: Processor time of it all.
    """

    setting: Setting
    gpus: int
    claims: int
    mean_completion_s: float
    completion_s: Mapping[str, float]
    wait_p95_s: float
    hibernations: float
    passes: int
    took_s: float


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    if not philly.is_there():
        note("Left out: the Philly trace is not there (../shared/data/traces/philly).")
        return
    pooled = (replace(pool, on_one_host=chosen.one_host) for pool in POOLS.values())
    settings = (STATIC, *pooled)
    with Pool(min(len(settings), os.cpu_count() or 1), _quiet) as processes:
        static, *pools = processes.map(measure, settings, chunksize=1)
    _print_settings(static, pools)
    _print_teams(static, pools)
    finish(_figures(static, dict(zip(POOLS, pools, strict=True))), as_json=chosen.json)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--one-host", action="store_true", help="up to 8 GPUs on one host only")


def measure(setting: Setting) -> Replay:
    """Replay the trace in one setting."""
    jobs = _jobs()
    sizes = philly.static_sizes(jobs)
    started_s = time.process_time()
    if not setting.hosts:
        outcome = _joined([philly.alone(jobs, team, gpus) for team, gpus in sizes.items()])
    else:
        gpus = setting.hosts * philly.GPUS_PER_HOST
        guarantees = philly.in_proportion(sizes, gpus if setting.guaranteed else 0)
        outcome = philly.together(jobs, setting.hosts, guarantees, on_one_host=setting.on_one_host)
    took_s = time.process_time() - started_s
    if outcome.unfinished:
        raise RuntimeError(f"{len(outcome.unfinished)} claims never ended: {setting.name}")
    return Replay(
        setting=setting,
        gpus=setting.hosts * philly.GPUS_PER_HOST or sum(sizes.values()),
        claims=len(outcome.courses),
        mean_completion_s=outcome.mean_completion_s,
        completion_s={team: outcome.of(team).mean_completion_s for team in sizes},
        wait_p95_s=outcome.wait_s(0.95),
        hibernations=outcome.hibernations_per_claim,
        passes=outcome.passes,
        took_s=took_s,
    )


@cache
def _jobs() -> tuple[philly.Job, ...]:
    return philly.read_jobs()


def _quiet() -> None:
    """Let a process end when it is told to, without a word."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _joined(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(
        courses=tuple(course for outcome in outcomes for course in outcome.courses),
        unfinished=tuple(claim for outcome in outcomes for claim in outcome.unfinished),
        passes=sum(outcome.passes for outcome in outcomes),
    )


def _ratios(static: Replay, replay: Replay) -> Mapping[str, float]:
    """By team, its mean completion against its own in the split."""
    return {team: mean / static.completion_s[team] for team, mean in replay.completion_s.items()}


def _print_settings(static: Replay, pools: Sequence[Replay]) -> None:
    heads = ("", "GPUs", "completion", "of split", "worst team", "p95 wait", "hibernations", "Jain")
    rows = [
        (
            replay.setting.name,
            replay.gpus,
            f"{replay.mean_completion_s / _HOUR_S:.2f} h",
            f"{replay.mean_completion_s / static.mean_completion_s:.3f}",
            f"{max(ratios.values()):.3f}",
            f"{replay.wait_p95_s / _HOUR_S:.2f} h",
            f"{replay.hibernations:.3f}",
            f"{jain_index(1 / ratio for ratio in ratios.values()):.3f}",
        )
        for replay in (static, *pools)
        for ratios in (_ratios(static, replay),)
    ]
    title = f"{static.claims} claims; hibernations per claim; Jain's index of what teams gain"
    table(title, heads, rows)


def _print_teams(static: Replay, pools: Sequence[Replay]) -> None:
    sizes = philly.static_sizes(_jobs())
    heads = ("team", "GPUs", "completion", *(replay.setting.name for replay in pools))
    rows = [
        (
            team,
            gpus,
            f"{static.completion_s[team] / _HOUR_S:.2f} h",
            *(f"{_ratios(static, replay)[team]:.3f}" for replay in pools),
        )
        for team, gpus in sizes.items()
    ]
    table("Mean completion by team: in the split, and what part of it in a pool", heads, rows)


def _figures(static: Replay, pools: Mapping[str, Replay]) -> tuple[Figure, ...]:
    def part(name: str) -> float:
        return pools[name].mean_completion_s / static.mean_completion_s

    passes = sum(replay.passes for replay in pools.values())
    took_s = sum(replay.took_s for replay in pools.values())
    worst = max(_ratios(static, pools["0.6"]).values())
    return (
        Figure(
            key="static_mean_completion_s",
            meaning="split by team: mean completion, s",
            value=static.mean_completion_s,
        ),
        Figure(
            key="ratio_0_6",
            meaning="pool of 0.6: completion, of the split's",
            value=part("0.6"),
            target=Target(bound=0.55),
        ),
        Figure(
            key="ratio_0_5",
            meaning="pool of 0.5: completion, of the split's",
            value=part("0.5"),
            target=Target(bound=0.90),
        ),
        Figure(
            key="ratio_0_5_no_guarantee",
            meaning="pool of 0.5 without guarantees: the same",
            value=part("0.5 free"),
            target=Target(bound=0.75),
        ),
        Figure(
            key="worst_team_ratio_0_6",
            meaning="pool of 0.6: the team that gains least",
            value=worst,
            target=Target(bound=1.10),
        ),
        Figure(
            key="passes_per_s",
            meaning="passes per second of processor time",
            value=passes / took_s,
            target=Target(bound=1000.0, at_most=False),
        ),
    )


if __name__ == "__main__":
    main()
