"""What another policy means for claims that are there already, in sentences for its admin: pure.

Applying one ends no claim. Called when one is applied or only checked; what stays as it is is not
told.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from jupyter_gpupool.pool.claim import OVER, Claim
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.policy import Policy
from jupyter_gpupool.pool.rules import SurplusOrder
from jupyter_gpupool.pool.units import format_duration, plural, some_of
from jupyter_gpupool.scheduling.amounts import NO_LIMIT
from jupyter_gpupool.scheduling.queues import QueueTree

from .idle_rule_effects import effects_of_idle_rules
from .in_force import PolicyInForce
from .reservation_effects import effects_on_reservations
from .standing import View


def effects_of(
    view: View, before: PolicyInForce, after: PolicyInForce, now_s: float
) -> tuple[str, ...]:
    """What changes for claims and reservations if one policy follows the other now."""
    claims = [r.claim for r in view.claims.values() if r.claim.phase not in OVER]
    return (
        *_gone_queues(before, after, claims),
        *_strangers(before, after, claims),
        *_over_limit(view, before, after),
        *_over_own_limits(view, before, after, claims),
        *_gone_classes(before.policy, after.policy, claims),
        *effects_on_reservations(view, before, after, now_s),
        *_begins_to_reclaim(view, before, after),
        *_begins_to_move(view, before, after),
        *effects_of_idle_rules(view, before, after, now_s),
    )


def _gone_queues(
    before: PolicyInForce, after: PolicyInForce, claims: Iterable[Claim]
) -> Iterator[str]:
    gone: defaultdict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        queue = claim.request.queue
        if queue in before.tree.queues and queue not in after.tree.queues:
            gone[queue].append(claim)
    for queue, left in sorted(gone.items()):
        homes = {None if (home := after.queue_of(claim)) is None else home.name for claim in left}
        yield f"Queue {queue} is gone and {_has_open(left)}, kept {_where(homes)}."


def _where(homes: Collection[str | None]) -> str:
    named = [home for home in homes if home is not None]
    within = f"in queue{'s' if len(named) > 1 else ''} {some_of(named)} from now on"
    if None not in homes:
        return within
    lost = "without a share, behind everybody else, where their owners belong to no queue"
    return f"{within}, or {lost}" if named else lost


def _strangers(
    before: PolicyInForce, after: PolicyInForce, claims: Iterable[Claim]
) -> Iterator[str]:
    """Claims in a queue that is still there, but no longer their owners'."""
    found: defaultdict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        queue, owner = claim.request.queue, claim.owner
        is_shut = queue in after.tree.queues and queue not in after.policy.queues_of(owner)
        if is_shut and queue in before.policy.queues_of(owner):
            found[queue].append(claim)
    for queue, theirs in sorted(found.items()):
        who = some_of(claim.owner for claim in theirs)
        yield (
            f"Queue {queue} {_has_open(theirs)} of users who may not claim there any more"
            f" ({who}); {_stay(theirs)}, new ones are refused."
        )


def _over_limit(view: View, before: PolicyInForce, after: PolicyInForce) -> Iterator[str]:
    """Queues that hold more devices than they will be allowed, and were allowed before."""
    held = held_by_queue(view, after)
    for name, queue in after.tree.queues.items():
        limit, known = queue.limit[0], before.tree.queues.get(name)
        if held[name] > limit and limit < (NO_LIMIT if known is None else known.limit[0]):
            yield (
                f"Queue {name} holds {_devices(held[name])}, above its limit of {_devices(limit)};"
                " nothing is taken for that alone, and it gets no more until it holds less."
            )


def _over_own_limits(
    view: View, before: PolicyInForce, after: PolicyInForce, claims: Collection[Claim]
) -> Iterator[str]:
    """Users who have more in a queue than each of its users may, and were allowed before."""
    over: defaultdict[str, set[str]] = defaultdict(set)
    having = {claim.id: Counter[str](claims=1) for claim in claims}
    for lease in view.leases.values():
        having.setdefault(lease.claim_id, Counter())["devices"] += lease.thousandths
    for (queue, owner), has in _by_user(having, after, claims).items():
        if _exceeds(after.tree, queue, has) and not _exceeds(before.tree, queue, has):
            over[queue].add(owner)
    for queue, users in sorted(over.items()):
        yield (
            f"Queue {queue} has users with more than each may have from now on ({some_of(users)});"
            " nothing is taken for that alone, new claims wait or are refused."
        )


def _by_user(
    having: Mapping[ClaimId, Counter[str]], policy: PolicyInForce, claims: Iterable[Claim]
) -> Mapping[tuple[str, str], Counter[str]]:
    total: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for claim in claims:
        queue = policy.queue_of(claim)
        if queue is not None:
            total[queue.name, claim.owner] += having[claim.id]
    return total


def _exceeds(tree: QueueTree, queue: str, has: Counter[str]) -> bool:
    if queue not in tree.queues:
        return False
    limits = tree.queues[queue].user_limits
    pairs = ((has["devices"], limits.devices), (has["claims"], limits.claims))
    return any(most is not None and value > most for value, most in pairs)


def held_by_queue(view: View, policy: PolicyInForce) -> Counter[str]:
    """Thousandths of devices that each queue and those below it hold, by the queues of a policy."""
    held: Counter[str] = Counter()
    for lease in view.leases.values():
        record = view.claims.get(lease.claim_id)
        queue = None if record is None else policy.queue_of(record.claim)
        for name in () if queue is None else policy.tree.path(queue.name):
            held[name] += lease.thousandths
    return held


def _gone_classes(before: Policy, after: Policy, claims: Iterable[Claim]) -> Iterator[str]:
    gone = {each.name for each in before.priorities} - {each.name for each in after.priorities}
    having = Counter(c.request.priority for c in claims if c.request.priority in gone)
    for name, count in sorted(having.items()):
        have = "has" if count == 1 else "have"
        yield (
            f"{plural(count, 'open claim')} {have} the priority {name}, which is gone, and will"
            " rank last from now on."
        )


def _begins_to_reclaim(view: View, before: PolicyInForce, after: PolicyInForce) -> Iterator[str]:
    if not any(view.leases.values()) or not after.policy.reclaims:
        return
    notice = f"from now on, after a notice of {format_duration(after.policy.grace_s)}."
    if _is_by_service(after.policy):
        if not (before.policy.reclaims and _is_by_service(before.policy)):
            yield f"Claims that have held devices for longer can be hibernated for others {notice}"
    elif not before.policy.reclaims:
        yield f"What queues hold beyond their share can be taken back {notice}"


def _is_by_service(policy: Policy) -> bool:
    return policy.rules.surplus_order is SurplusOrder.LEAST_ATTAINED_SERVICE


def _begins_to_move(view: View, before: PolicyInForce, after: PolicyInForce) -> Iterator[str]:
    may_move = after.policy.rules.may_move and not before.policy.rules.may_move
    if may_move and any(view.leases.values()):
        yield (
            "Claims can be hibernated and resumed on other devices so that others fit, after a"
            f" notice of {format_duration(after.policy.grace_s)}."
        )


def _has_open(claims: Collection[Claim]) -> str:
    return f"has {plural(len(claims), 'open claim')}"


def _stay(claims: Collection[Claim]) -> str:
    return "it stays" if len(claims) == 1 else "they stay"


def _devices(thousandths: int) -> str:
    count = thousandths / WHOLE_DEVICE
    return f"{count:g} GPU" if count == 1 else f"{count:g} GPUs"
