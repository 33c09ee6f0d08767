"""What rules on idle claims would have done to claims whose samples were recorded. Pure.

Played by the judgement proper over what was seen. Two things nobody can know are said as they are:
whether a user would have kept a claim that they were warned of, so takings are the most there
would have been; and what went on while nothing was seen, which is won by nobody.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.idle_match import Subject
from jupyter_gpupool.pool.idle_rule import DEFAULT_SIGNALS, IdleRule, KeepAlive
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Sample

from .idle import Situation, advance, deciding
from .idle_next import next_in_ms
from .idle_runs import Gauge, Reading, read
from .idle_verdicts import Call
from .idle_watch import Watch
from .keep_alive import kept

PIECE_MS: Final = 60_000
"""Recorded windows may be long; whoever was judged live was judged by shorter ones."""
SOON_MS: Final = 15 * 60_000
"""Who wants to work again within this time is missed what was taken from them."""
FIRST_MS: Final = 5000
"""After so much of a record it is known what may be due in it."""
USED: Final = Gauge(signals=DEFAULT_SIGNALS, gpu_below=50)
"""What is taken for work, whatever rules ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A sample, and all else that decides on its claim, as it was then.

    Attributes:
        spare: What the claim holds beyond its minimum, in thousandths of a device.
        keep_ms: For how long its user kept it at the beginning of the sample, if they did.
    """

    sample: Sample
    subject: Subject
    wanted_by: tuple[ClaimId, ...] = ()
    protected: bool = False
    spare: int = 0
    keep_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldTake:
    """Something that would have been taken.

    Attributes:
        devices: In thousandths.
        won_ms: For how long they would have been with others: known to be unused.
        was_busy: Its claim was used in the very sample that decides.
        missed_ms: After how long it was used again; None if it never was.
    """

    claim_id: ClaimId
    subject: Subject
    evidence: Evidence
    devices: int
    won_ms: int = 0
    was_busy: bool = False
    missed_ms: int | None = None

    @property
    def hurts(self) -> bool:
        """Whether somebody who worked with it would have noticed at once or soon."""
        return self.was_busy or (self.missed_ms is not None and self.missed_ms <= SOON_MS)

    @property
    def won_device_s(self) -> float:
        """Device-seconds for others."""
        return self.devices / 1000 * self.won_ms / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What rules would have done.

    Attributes:
        takings: In the order of the claims that were given, and of time.
        warned: How often each claim's user would have been warned.
        refused_keeps: Keeps that users had asked for and that these rules would have refused.
    """

    takings: tuple[WouldTake, ...]
    warned: tuple[tuple[ClaimId, int], ...]
    refused_keeps: int

    @property
    def won_device_s(self) -> float:
        """Device-seconds for others, by all takings."""
        return sum(taking.won_device_s for taking in self.takings)

    @property
    def hurt(self) -> tuple[WouldTake, ...]:
        """The takings that somebody would have noticed."""
        return tuple(taking for taking in self.takings if taking.hurts)


def dry_run(
    histories: Iterable[tuple[ClaimId, Iterable[Recorded]]], rules: Sequence[IdleRule]
) -> DryRun:
    """Play rules over claims' histories, each in the order of time."""
    plays = []
    for claim_id, records in histories:
        play = _Play(claim_id, rules)
        for record in records:
            for piece in (record,) if play.is_away_in(record) else play.pieces(record):
                play.see(piece)
        plays.append(play)
    return DryRun(
        takings=tuple(taking for play in plays for taking in play.takings),
        warned=tuple((play.claim_id, play.warned) for play in plays if play.warned),
        refused_keeps=sum(play.refused_keeps for play in plays),
    )


@dataclass(slots=True)
class _Play:
    """One claim's history under the rules."""

    claim_id: ClaimId
    rules: Sequence[IdleRule]
    watch: Watch = field(default_factory=Watch)
    takings: list[WouldTake] = field(default_factory=list)
    warned: int = 0
    refused_keeps: int = 0
    _away_ms: int | None = None

    def is_away_in(self, record: Recorded) -> bool:
        """Whether others have its devices in all of a record."""
        return self._away_ms is not None and read(USED, record.sample) is not Reading.ACTIVE

    def pieces(self, record: Recorded) -> Iterator[Recorded]:
        """A record, cut where something is due: hosts are asked in these moments.

        Each piece is to be taken in before the next one is asked for, and lasts a minute at most.
        A signal that was active in the record is so in each.
        """
        sample, length_ms = record.sample, FIRST_MS
        begin_ms = sample.begin_ms
        while sample.end_ms - begin_ms > length_ms:
            end_ms = begin_ms + length_ms
            at = sample.at - timedelta(milliseconds=sample.end_ms - end_ms)
            piece = replace(sample, begin_ms=begin_ms, end_ms=end_ms, at=at)
            yield replace(record, sample=piece)
            record, begin_ms = replace(record, keep_ms=None), end_ms
            length_ms = self._until_due_ms(record.subject, at)
        yield replace(record, sample=replace(sample, begin_ms=begin_ms))

    def see(self, record: Recorded) -> None:
        """Take in one piece of it."""
        if self._away_ms is not None and not self._returns(record, self._away_ms):
            return
        if record.keep_ms is not None:
            self._keep(record, record.keep_ms)
        situation = Situation(
            rules=self.rules,
            revision=0,
            subject=record.subject,
            wanted_by=record.wanted_by,
            protected=record.protected,
        )
        self.watch, verdict = advance(self.watch, record.sample, situation)
        self.warned += verdict.call is Call.WARN
        if verdict.call is Call.TAKE and verdict.evidence is not None:
            self._take(record, verdict.evidence)

    def _returns(self, record: Recorded, away_ms: int) -> bool:
        """Whether its user is back, and resumes it; else somebody else has its devices."""
        length_ms = record.sample.end_ms - record.sample.begin_ms
        reading, last = read(USED, record.sample), self.takings[-1]
        if reading is Reading.ACTIVE:
            self.takings[-1] = replace(last, missed_ms=away_ms)
            self.watch, self._away_ms = Watch(), None
            return True
        if reading is Reading.QUIET:
            self.takings[-1] = replace(last, won_ms=last.won_ms + length_ms)
        self._away_ms = away_ms + length_ms
        return False

    def _until_due_ms(self, subject: Subject, at: datetime) -> int:
        ahead_ms = next_in_ms(self.watch, deciding(self.rules, subject, at), subject)
        return PIECE_MS if ahead_ms is None else min(PIECE_MS, ahead_ms)

    def _keep(self, record: Recorded, for_ms: int) -> None:
        rule = deciding(self.rules, record.subject, record.sample.at)
        bounds = KeepAlive() if rule is None else rule.keep_alive
        try:
            self.watch = kept(self.watch, bounds, for_ms, "as recorded")
        except BadRequest:
            self.refused_keeps += 1

    def _take(self, record: Recorded, evidence: Evidence) -> None:
        shrinks = evidence.action is OnIdle.SHRINK
        taking = WouldTake(
            claim_id=self.claim_id,
            subject=record.subject,
            evidence=evidence,
            devices=record.spare if shrinks else record.subject.devices,
            was_busy=read(USED, record.sample) is Reading.ACTIVE,
        )
        self.takings.append(taking)
        self._away_ms = 0
