"""What is too old to be of use: lost hosts, void tokens, users, past usage, answered keys.

Called by the timer once an hour. Ended claims and events are deleted by the store alone, for the
books do not hold them.
"""

from jupyter_gpupool.pool.host import Host, HostPhase
from jupyter_gpupool.scheduling.usage import usage_at

from .accounting import spent_s
from .once import KEPT
from .records import UsageRecord
from .unit import UnitOfWork

_NOTHING_S = 1.0
"""So few device-seconds change nobody's share."""


def forget_old(unit: UnitOfWork) -> None:
    """Let go of all that nobody will ask for again."""
    _forget_hosts(unit)
    _forget_tokens(unit)
    _forget_users(unit)
    _forget_usage(unit)
    for key in [k for k, record in unit.once.items() if unit.now - record.at > KEPT]:
        del unit.once[key]


def _forget_hosts(unit: UnitOfWork) -> None:
    for host in [host for host in unit.hosts.values() if _is_forgotten(unit, host)]:
        del unit.hosts[host.id]
        if host.id in unit.host_tokens:
            del unit.host_tokens[host.id]


def _is_forgotten(unit: UnitOfWork, host: Host) -> bool:
    if host.phase is not HostPhase.LOST or unit.now - host.since < unit.moment.settings.retention:
        return False
    places = (record.claim.scheduler for record in unit.placed())
    holds = any(place is not None and place.host_id == host.id for place in places)
    return not holds and not any(unit.leases_on(host.id))


def _forget_tokens(unit: UnitOfWork) -> None:
    for token in list(unit.tokens.values()):
        if token.expires_at is not None and token.expires_at <= unit.now:
            del unit.tokens[token.id]


def _forget_usage(unit: UnitOfWork) -> None:
    now_s, half_life_s = unit.now.timestamp(), unit.policy.policy.rules.half_life_s
    kept_s = unit.moment.settings.retention.total_seconds()
    for used in list(unit.usage.values()):
        is_old = not used.decayed.held and now_s - used.spent.at_s > kept_s
        left_s = usage_at(used.decayed, now_s, half_life_s=half_life_s)
        if is_old and left_s < _NOTHING_S and _period_is_over(unit, used):
            del unit.usage[used.leaf]


def _period_is_over(unit: UnitOfWork, used: UsageRecord) -> bool:
    """Whether no budget counts any more what a user has used."""
    queue = unit.policy.tree.queues.get(used.leaf.partition("/")[0])
    period_s = None if queue is None else queue.user_limits.period_s
    return period_s is None or not spent_s(used, unit.now.timestamp(), period_s)


def _forget_users(unit: UnitOfWork) -> None:
    # A user who is mapped to another name on the hosts stays: forgetting that would change whose
    # processes their next claim is.
    with_token = {token.user for token in unit.tokens.values()}
    for user in list(unit.users.values()):
        if user.os_user is None and user.name not in with_token:
            del unit.users[user.name]
