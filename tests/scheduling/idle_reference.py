"""The judgement of a claim from its whole history, written for clearness and not for speed.

Written from the promises of the policy page alone. All times are in units of `UNIT_S`; what was
seen is one entry a unit, and at each step everything is worked out from the first entry on.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from jupyter_gpupool.pool.hours import Day
from jupyter_gpupool.pool.signals import Signal

UNIT_S = 20
CUT = "cut"
"""Nobody knows how much time passed here."""
DARK = "dark"
"""A unit of which nothing was seen."""
WINDOW_PARTS = 24


@dataclass
class History:
    """Everything that happened to a claim: entries are CUT, DARK, or the sample that saw the unit.

    Attributes:
        blows: Late samples that showed activity, with the number of entries there were then.
    """

    entries: list = field(default_factory=list)
    blows: list = field(default_factory=list)
    keeps: list = field(default_factory=list)
    life: str = ""
    until: int = 0
    told: tuple | None = None
    seen: object = None
    asked: dict = field(default_factory=dict)

    @property
    def now(self) -> int:
        return sum(1 for entry in self.entries if entry != CUT)

    def judge(self, sample, situation):
        """What the sample comes to: (call, ground, action, in how many units it is due)."""
        if not self._adds(sample) and not shows_activity(sample, situation.rules):
            return ("nothing", None, None, None)
        self.seen = sample
        self._ask(situation.rules)
        before = self.now
        self._put(sample)
        rule = next(
            (r for r in situation.rules if is_for(r.match, situation.subject, sample.at)), None
        )
        grounds = {} if rule is None else self._grounds(rule, situation)
        if self.told and self.told[0] in grounds:
            ground = self.told[0]
        elif grounds:
            ground = min(
                grounds,
                key=lambda g: (max(grounds[g]["left"], grounds[g]["notice"]), ORDER.index(g)),
            )
        else:
            told, self.told = self.told, None
            return ("clear" if told else "nothing", None, None, None)
        sure = grounds[ground]["sure"] and self.now > before
        return self._say(rule, ground, **grounds[ground] | {"sure": sure})

    def _say(self, rule, ground, *, action, left, notice, sure):
        before = self.told
        if not sure:
            return ("nothing", None, None, None)
        fresh_due = self.now + max(left, notice)
        if before is None:
            self.told = (ground, action, rule.name, fresh_due)
        elif before[:2] != (ground, action):
            self.told = (ground, action, rule.name, max(before[3], fresh_due))
        else:
            moved = left > 0 and (self.now + left - before[3]) * UNIT_S >= 60
            self.told = (ground, action, rule.name, self.now + left if moved else before[3])
        if self.told != before:
            return ("warn", ground, action, self.told[3] - self.now)
        if self.now >= self.told[3] and left == 0:
            return ("take", ground, action, None)
        return ("nothing", None, None, None)

    def _ask(self, rules):
        """From which entry on each thing has been asked without a break: never from before."""
        asked = set()
        for rule in rules:
            asked |= {asks(rule), asks(rule, orphan=True)}
            asked |= {rule.least_use.over_s} if rule.least_use else set()
        self.asked = {key: self.asked.get(key, len(self.entries)) for key in asked}

    def keep(self, units):
        """Its user keeps it from now on, or no longer."""
        self.keeps.append((self.now, units))
        if self.told and units and self.told[0] != "held-long":
            self.told = None

    def _adds(self, sample):
        begin, end = sample.begin_ms // (UNIT_S * 1000), sample.end_ms // (UNIT_S * 1000)
        return end > (begin if sample.life != self.life else self.until)

    def _put(self, sample):
        begin, end = sample.begin_ms // (UNIT_S * 1000), sample.end_ms // (UNIT_S * 1000)
        if sample.life != self.life:
            self.entries += [CUT] + [sample] * (end - begin)
            self.life, self.until = sample.life, end
            return
        self.entries += [DARK] * max(0, begin - self.until)
        self.blows.append((len(self.entries), sample))
        self.entries += [sample] * max(0, end - max(begin, self.until))
        self.until = max(self.until, end)

    def _grounds(self, rule, situation):
        subject, found = situation.subject, {}
        if rule.only_when_wanted and not situation.wanted_by:
            return {}
        kept = bool(self.keeps) and sum(self.keeps[-1]) > self.now
        if not (kept or situation.protected):
            self._idle(rule, subject, found)
            self._orphan(rule, found)
            self._use(rule, found)
        if rule.longest and self.now >= units(rule.longest.warn_s):
            left = max(0, units(rule.longest.after_s) - self.now)
            notice = units(rule.longest.after_s) - units(rule.longest.warn_s)
            found["held-long"] = {
                "action": rule.longest.action,
                "left": left,
                "notice": notice,
                "sure": True,
            }
        return {
            g: {**f, "action": done}
            for g, f in found.items()
            if (done := possible(rule, f["action"], subject))
        }

    def _idle(self, rule, subject, found):
        if rule.idle is None:
            return
        warn, after, action = units(rule.idle.warn_s), units(rule.idle.after_s), rule.idle.action
        if rule.choice:
            wish = subject.wish
            if wish.after_s is not None:
                notice = after - warn
                after = sorted(
                    (
                        units(rule.choice.shortest_s),
                        units(wish.after_s),
                        units(rule.choice.longest_s),
                    )
                )[1]
                warn = max(0, after - notice)
            if wish.action in rule.choice.actions:
                action = wish.action
        self._run("idle", rule, (warn, after, action), found)

    def _orphan(self, rule, found):
        if rule.orphaned:
            terms = (
                units(rule.orphaned.warn_s),
                units(rule.orphaned.after_s),
                rule.orphaned.action,
            )
            self._run("orphaned", rule, terms, found)

    def _run(self, ground, rule, terms, found):
        warn, after, action = terms
        lasted, dark = self._stretch(rule, orphan=ground == "orphaned")
        if lasted and lasted >= warn:
            found[ground] = {
                "action": action,
                "left": max(0, after - lasted),
                "notice": after - warn,
                "sure": not dark,
            }

    def _stretch(self, rule, *, orphan):
        """Units known to be idle up to now, and units of darkness at the very end."""
        signals, gpu_below, _ = key = asks(rule, orphan=orphan)
        idle = dark = at_once = 0
        blows = {
            index
            for index, sample in self.blows
            if shows(sample, signals, gpu_below, orphan=orphan) == "active"
        }
        for index, entry in list(enumerate([*self.entries, None]))[self.asked[key] :]:
            if index in blows:
                idle = dark = at_once = 0
            if entry is None:
                break
            is_seen = entry not in (CUT, DARK)
            kind = shows(entry, signals, gpu_below, orphan=orphan) if is_seen else entry
            if kind == "quiet":
                idle, at_once = idle + 1, 0
                continue
            dark, at_once = dark + 1, at_once + 1
            too_dark = at_once * UNIT_S > 60 or dark * 10 > idle
            if kind in (CUT, "active") or too_dark:
                idle = dark = at_once = 0
        return idle, at_once

    def _use(self, rule, found):
        if not rule.least_use:
            return
        since = self.asked[rule.least_use.over_s]
        seen = [entry for entry in self.entries[since:] if entry not in (CUT, DARK)]
        known = [sample.gpu_mean for sample in seen if sample.gpu_mean is not None]
        part = units(rule.least_use.over_s) // WINDOW_PARTS
        whole = len(known) // part * part
        window = known[:whole][-WINDOW_PARTS * part :]
        if len(window) == WINDOW_PARTS * part and sum(window) / len(window) < rule.least_use.below:
            found["little-used"] = {
                "action": rule.least_use.action,
                "left": 0,
                "notice": units(rule.least_use.notice_s),
                "sure": self.seen.gpu_mean is not None,
            }


ORDER = ["idle", "orphaned", "little-used", "held-long"]


def asks(rule, *, orphan=False):
    """What a rule asks of an idle claim, or of an orphan: there, only what still runs counts."""
    signals = rule.signals
    if orphan:
        signals = {s for s in signals if s in ("tasks", "calls", "gpu")} | {Signal.TASKS}
    return frozenset(signals), rule.gpu_below, orphan


def units(seconds):
    assert seconds % UNIT_S == 0
    return int(seconds // UNIT_S)


def shows(sample, signals, gpu_below, *, orphan):
    """Active, quiet or dark."""
    words = []
    for signal in signals:
        if signal == "gpu":
            peak = sample.gpu_peak
            words.append("dark" if peak is None else "active" if peak >= gpu_below else "quiet")
        else:
            words.append(
                "active"
                if signal in sample.active
                else "quiet"
                if signal in sample.quiet
                else "dark"
            )
    if orphan:
        words.append({True: "quiet", False: "active", None: "dark"}[sample.orphaned])
    return "active" if "active" in words else "dark" if "dark" in words else "quiet"


def shows_activity(sample, rules):
    """Whether anything that any rule asks about was active."""
    asked = [asks(rule, orphan=orphan) for rule in rules for orphan in (False, True)]
    return any(shows(sample, *each[:2], orphan=each[2]) == "active" for each in asked)


def possible(rule, action, subject):
    if action == "shrink" and not subject.may_shrink:
        return None
    if action == "hibernate" and not subject.may_hibernate:
        return "release" if rule.otherwise == "release" else None
    return action


def is_for(match, subject, at):
    asked = [
        not match.queues or any(q in match.queues for q in subject.queues),
        not match.users or subject.user in match.users,
        not match.priorities or subject.priority in match.priorities,
        not match.models
        or any(m in model.lower() for m in match.models for model in subject.models),
        match.least is None or subject.devices >= match.least,
        match.most is None or subject.devices <= match.most,
        match.hours is None or in_hours(match.hours, at),
    ]
    return all(asked)


def in_hours(hours, at):
    """Whether any day's hours, written as the clock shows them, hold what the clock shows now."""
    shown = at.astimezone(hours.zone).replace(tzinfo=None)
    for back in (0, 1):
        day = (shown - timedelta(days=back)).replace(hour=0, minute=0, second=0, microsecond=0)
        if list(Day)[day.weekday()] not in hours.days:
            continue
        begin, end = (
            day + timedelta(minutes=hours.begin_min),
            day + timedelta(minutes=hours.end_min),
        )
        if end <= begin:
            end += timedelta(days=1)
        if begin <= shown < end:
            return True
    return False
