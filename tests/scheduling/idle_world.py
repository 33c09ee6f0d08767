"""Builders for the tests of idleness: rules, a claim, and samples that follow one another."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from jupyter_gpupool.pool.idle_match import Subject
from jupyter_gpupool.pool.idle_rule import IdleRule
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.signals import Sample, Signal
from jupyter_gpupool.scheduling.idle import Situation, advance
from jupyter_gpupool.scheduling.idle_verdicts import Call, Verdict
from jupyter_gpupool.scheduling.idle_watch import Watch
from jupyter_gpupool.scheduling.keep_alive import kept

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
TOLD = frozenset(Signal) - {Signal.GPU}
ANNS = Subject(
    user=UserName("ann"),
    queues=("vision", "research"),
    models=("A100",),
    priority="interactive",
    devices=2000,
)
RULE = IdleRule(name="all")
SOMEBODY = (ClaimId("c-waits"),)


@dataclass
class Watching:
    """A claim that is watched in virtual time; each call adds a sample and says what comes of it.

    Attributes:
        now_s: The clock of the life that samples come from.
        calls: Minutes since the first sample, and what had to be done then, if anything.
    """

    rules: tuple[IdleRule, ...] = (RULE,)
    subject: Subject = ANNS
    wanted_by: tuple[ClaimId, ...] = ()
    protected: bool = False
    revision: int = 1
    life: str = "boot"
    now_s: float = 1000.0
    at: datetime = NOON
    watch: Watch = field(default_factory=Watch)
    calls: list[tuple[float, Call]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def see(self, for_s: float = 60.0, *active: Signal, unknown=(), **seen) -> Verdict:
        """A time in which some signals were active, others unknown, and all the rest quiet."""
        begin_s, self.now_s = self.now_s, self.now_s + for_s
        self.at += timedelta(seconds=for_s)
        told = {"gpu_peak": 0, "gpu_mean": 0, "held_bytes": 31 * 2**30, "orphaned": False} | seen
        sample = Sample(
            life=self.life,
            begin_ms=round(begin_s * 1000),
            end_ms=round(self.now_s * 1000),
            at=self.at,
            active=frozenset(active),
            quiet=TOLD - {*active, *unknown},
            **told,
        )
        self.watch, verdict = advance(self.watch, sample, self.situation)
        self.verdicts.append(verdict)
        if verdict.call is not Call.NOTHING:
            self.calls.append((self.watch.now_ms / 60_000, verdict.call))
        return verdict

    def see_minutes(self, minutes: int, *active: Signal, **seen) -> list[tuple[float, Call]]:
        """So many minutes, a sample each; what has to be done in them."""
        before = len(self.calls)
        for _ in range(minutes):
            self.see(60.0, *active, **seen)
        return self.calls[before:]

    def miss(self, for_s: float) -> None:
        """A time of which nothing is heard."""
        self.now_s += for_s
        self.at += timedelta(seconds=for_s)

    def keep(self, for_s: float, reason: str = "") -> None:
        """Its user keeps it, within the bounds of the first rule."""
        self.watch = kept(self.watch, self.rules[0].keep_alive, round(for_s * 1000), reason)

    @property
    def situation(self) -> Situation:
        """All but the samples that decides now."""
        return Situation(
            rules=self.rules,
            revision=self.revision,
            subject=self.subject,
            wanted_by=self.wanted_by,
            protected=self.protected,
        )


def a_rule(name: str = "all", **terms) -> IdleRule:
    """The rule of good defaults, but for these terms."""
    return replace(RULE, name=name, **terms)
