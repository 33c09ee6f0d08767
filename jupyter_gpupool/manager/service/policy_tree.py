"""The policy's queues as the tree that scheduling divides by.

Called when a policy is taken up, which is refused if it makes no tree, and by each pass.
"""

from collections.abc import Iterable, Iterator

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.host import Host
from jupyter_gpupool.pool.policy import Policy, QueueTerms, Resources
from jupyter_gpupool.scheduling.amounts import (
    BASE_KINDS,
    NO_LIMIT,
    WHOLE_DEVICE,
    Amount,
    Kinds,
    devices_of,
)
from jupyter_gpupool.scheduling.queue_checks import (
    check_guarantees,
    grow,
    refusals_of_guarantees,
    refusals_of_queues,
)
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, UserLimits
from jupyter_gpupool.scheduling.unset_guarantees import filled


def tree_of(policy: Policy) -> QueueTree:
    """Grow the tree of a policy's queues, without their users.

    Raises:
        BadRequest: If they form none, or a number among them makes no sense; it names the queue.
    """
    kinds, queues = _queues(policy)
    tree = grow(kinds, queues)
    return filled(tree, {terms.name: _is_said(kinds, terms.guarantee) for terms in policy.queues})


def refusals_of_tree(policy: Policy, hosts: Iterable[Host]) -> Iterator[BadRequest]:
    """All for which `tree_of` or, if none, `check_against` would refuse a policy."""
    kinds, queues = _queues(policy)
    refusals = tuple(refusals_of_queues(kinds, queues))
    yield from refusals
    if not refusals:
        tree = tree_of(policy)
        yield from refusals_of_guarantees(tree, _known_capacity(tree, hosts))


def check_against(tree: QueueTree, hosts: Iterable[Host]) -> None:
    """Refuse guarantees beyond what the pool's hosts, or the queue above, could keep.

    A host that is lost counts as long as the pool remembers it: most come back, and a policy does
    not become wrong for a minute.

    Raises:
        BadRequest: With the numbers.
    """
    check_guarantees(tree, _known_capacity(tree, hosts))


def capacity_of(tree: QueueTree, hosts: Iterable[Host]) -> Amount:
    """What hosts have, in the kinds of a tree, whether or not they are there now."""
    return _capacity(tree.kinds, hosts)


def _known_capacity(tree: QueueTree, hosts: Iterable[Host]) -> Amount | None:
    known = [host for host in hosts if host.devices]
    return capacity_of(tree, known) if known else None


def _queues(policy: Policy) -> tuple[Kinds, list[Queue]]:
    kinds = _kinds(policy)
    return kinds, [_queue(policy, kinds, terms, n) for n, terms in enumerate(policy.queues)]


def _kinds(policy: Policy) -> Kinds:
    """The resources to divide: devices of single models only where a queue speaks of them."""
    said = [each for terms in policy.queues for each in (terms.guarantee, terms.limit)]
    models = sorted({model for each in said for model, _ in each.models})
    return (*BASE_KINDS, *map(devices_of, models))


def _queue(policy: Policy, kinds: Kinds, terms: QueueTerms, number: int) -> Queue:
    user = terms.per_user
    return Queue(
        name=terms.name,
        parent=terms.parent,
        guarantee=_amount(kinds, terms.guarantee, 0),
        weight=terms.weight,
        limit=_amount(kinds, terms.limit, NO_LIMIT),
        priority=terms.priority,
        max_priority=policy.priority_class(terms.highest).rank if terms.highest else None,
        reclaim_min_runtime_s=terms.reclaim_min_runtime_s,
        own_min_runtime_s=terms.own_min_runtime_s,
        user_limits=UserLimits(
            devices=user.devices,
            claims=user.claims,
            budget_s=user.device_s,
            period_s=user.period_s,
        ),
        created=number,
    )


def _is_said(kinds: Kinds, said: Resources) -> tuple[bool, ...]:
    base = (said.devices, said.cpu, said.memory_bytes)
    models = dict(said.models)
    named = (kind.partition(":")[2] in models for kind in kinds[len(base) :])
    return (*(value is not None for value in base), *named)


def _amount(kinds: Kinds, said: Resources, unsaid: int) -> Amount:
    base = (said.devices, said.cpu, said.memory_bytes)
    models = dict(said.models)
    named = (models.get(kind.partition(":")[2]) for kind in kinds[len(base) :])
    return tuple(unsaid if value is None else value for value in (*base, *named))


def _capacity(kinds: Kinds, those: Iterable[Host]) -> Amount:
    hosts = tuple(those)
    devices = [device.model.lower() for host in hosts for device in host.devices]
    models = (kind.partition(":")[2] for kind in kinds[len(BASE_KINDS) :])
    counts = (len(devices), *(sum(m in device for device in devices) for m in models))
    first, *named = (count * WHOLE_DEVICE for count in counts)
    cpu = sum(host.cpus * 1000 for host in hosts)
    return (first, cpu, sum(host.memory_bytes for host in hosts), *named)
