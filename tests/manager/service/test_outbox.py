"""What may be concluded from a host's generation."""

from jupyter_gpupool.manager.service.outbox import Outbox, Outboxes
from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.protocol.link import TlsCredentials, WantedClaim, WantedWorker


def test_generation_grows_only_with_the_content():
    """The same again is no news for the host."""
    outboxes = Outboxes(boot=1)
    assert outboxes.put("h", (_claim("l-1"),))
    generation = outboxes.of("h").desired.generation
    assert not outboxes.put("h", (_claim("l-1"),))
    assert outboxes.of("h").desired.generation == generation


def test_generations_grow_over_restarts():
    """A later manager's first word is newer than anything an earlier one said."""
    first, second = Outboxes(boot=1), Outboxes(boot=2)
    first.put("h", (_claim("l-1"),))
    second.put("h", ())
    assert second.of("h").desired.generation > first.of("h").desired.generation


def test_wanted_lease_is_not_dropped():
    """However new the host's generation."""
    assert not _outbox(("l-1",)).is_dropped("l-1", 10**9)


def test_lease_is_dropped_from_the_generation_that_left_it_out():
    """Not before: an older report may simply not know it yet."""
    outbox = _outbox(("l-1",), ("l-2",))
    assert [outbox.is_dropped("l-1", generation) for generation in (1, 2)] == [False, True]


def test_lease_of_an_earlier_manager_is_dropped_by_the_first_word():
    """It was wanted by somebody we know nothing of."""
    outbox = _outbox(("l-2",))
    assert [outbox.is_dropped("l-1", generation) for generation in (0, 1)] == [False, True]


def test_nothing_is_dropped_before_the_first_word():
    """A host that was told nothing has proven nothing."""
    assert not Outbox().is_dropped("l-1", 10**9)


def _outbox(*generations: tuple[str, ...]) -> Outbox:
    outbox = Outbox()
    for number, leases in enumerate(generations, start=1):
        outbox.put((_claim(*leases),), number)
    return outbox


def _claim(*leases: str) -> WantedClaim:
    return WantedClaim(
        claim_id="c-1",
        start=1,
        owner="ann",
        os_user=None,
        environment="",
        options=WorkerOptions(),
        worker_credentials=TlsCredentials(ca="", certificate="", key=""),
        workers=tuple(WantedWorker(lease_id=x, device=f"SIM-{x}") for x in leases),
    )
