"""What another policy's rules on idle claims mean for what is there, in sentences: pure.

Part of `policy_effects`. Two things: which rule will be for claims that have devices now, and rules
that ask how much a device computes where nobody can tell.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from jupyter_gpupool.pool.claim import HOLDING, Claim
from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.idle_match import OwnWish, Subject
from jupyter_gpupool.pool.idle_rule import IdleRule
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.pool.units import format_duration, plural, some_of
from jupyter_gpupool.scheduling.idle import deciding

from .idle_subjects import subject_of
from .in_force import PolicyInForce
from .records import ClaimRecord
from .standing import View

_Change = tuple[IdleRule | None, IdleRule | None]


def effects_of_idle_rules(
    view: View, before: PolicyInForce, after: PolicyInForce, now_s: float
) -> Iterator[str]:
    """What changes for claims that have devices, and what cannot work as it is written."""
    if before.policy.idle != after.policy.idle:
        changed = _changed(view, before, after, datetime.fromtimestamp(now_s, UTC))
        for (old, new), claims in sorted(changed.items(), key=lambda each: _names(each[1])):
            yield _in_words(old, new, claims)
    yield from _blind(view, after.policy.idle)


def _changed(
    view: View, before: PolicyInForce, after: PolicyInForce, at: datetime
) -> dict[_Change, list[Claim]]:
    """The claims for which another rule will be, by the rule of now and the new one."""
    found: defaultdict[_Change, list[Claim]] = defaultdict(list)
    for record in view.claims.values():
        if record.claim.phase not in HOLDING:
            continue
        subject = _subject(view, record)
        old = deciding(before.policy.idle, subject, at)
        new = deciding(after.policy.idle, _placed(subject, record.claim, after), at)
        if old != new:
            found[old, new].append(record.claim)
    return found


def _subject(view: View, record: ClaimRecord) -> Subject:
    leases = (lease for lease in view.leases_of(record.claim.id) if lease.counts)
    return subject_of(view, record, tuple(leases))


def _placed(subject: Subject, claim: Claim, policy: PolicyInForce) -> Subject:
    """The same where the claim will stand."""
    queue = policy.queue_of(claim)
    return replace(subject, queues=() if queue is None else tuple(policy.tree.path(queue.name)))


def _in_words(old: IdleRule | None, new: IdleRule | None, claims: Sequence[Claim]) -> str:
    who = f"{plural(len(claims), 'claim')} with devices ({_names(claims)})"
    if new is None:
        return f"No rule on idle claims is for {who} any more."
    if old is None:
        return f'Rule "{new.name}" ({_does(new)}) is for {who} from now on; none was before.'
    if old.name != new.name:
        former = f'"{old.name}" ({_does(old)})'
        return f'Rule "{new.name}" ({_does(new)}) is for {who} from now on, in place of {former}.'
    if _does(old) == _does(new):
        return f'Rule "{new.name}" changes for {who}; {_does(new)} stays.'
    return f'Rule "{new.name}" changes for {who}: {_does(old)} becomes {_does(new)}.'


def _does(rule: IdleRule) -> str:
    """What it does with a claim that is idle, and whose user has chosen nothing."""
    terms = rule.idle_terms(OwnWish())
    if terms is None:
        return "nothing for idleness alone"
    return f"{terms.action} after {format_duration(terms.after_s)}"


def _blind(view: View, rules: Sequence[IdleRule]) -> Iterator[str]:
    """Rules that wait for a word of NVML that never comes: what is unknown is never idle."""
    models = Counter(device.model for device in _without_use(view))
    for number, rule in enumerate(rules):
        earlier = rules[:number]
        theirs = [model for model in models if _is_for(rule, earlier, model)]
        if theirs and _asks_use(rule):
            count = sum(models[model] for model in theirs)
            yield (
                f'Rule "{rule.name}" asks how much a GPU computes, which nobody can tell of'
                f" {plural(count, 'device')} ({some_of(theirs)}): claims on them are never idle by"
                ' it; give those models a rule of their own, whose signals leave "gpu" out.'
            )


def _without_use(view: View) -> Iterator[Device]:
    """Devices of which NVML tells no utilisation: instances of MIG, and what its word shows."""
    reports = (view.reports.get(host.id) for host in view.hosts.values())
    silent = {
        entry.device.uuid
        for report in reports
        if report is not None
        for entry in report.devices
        if entry.sample is not None and not entry.sample.lost and entry.sample.utilisation is None
    }
    for host in view.hosts.values():
        for device in host.devices:
            if not device.simulated and (device.parent is not None or device.uuid in silent):
                yield device


def _is_for(rule: IdleRule, earlier: Iterable[IdleRule], model: str) -> bool:
    return rule.match.is_for_model(model) and not any(
        other.match.is_for_all_of(model) for other in earlier
    )


def _asks_use(rule: IdleRule) -> bool:
    by_signal = Signal.GPU in rule.signals and (rule.idle or rule.orphaned) is not None
    return by_signal or rule.least_use is not None


def _names(claims: Iterable[Claim]) -> str:
    return some_of(f"{claim.owner}/{claim.name}" for claim in claims)
