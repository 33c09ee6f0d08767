"""A claim's results as its people are shown them: pure."""

from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.kept_results import keeping_of_claim
from jupyter_gpupool.manager.service.kept_room import no_room
from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.protocol.keeping import Keeping
from jupyter_gpupool.protocol.keeping_view import KeepingView, UnkeptView


def keeping_view(record: ClaimRecord, books: Books) -> KeepingView | None:
    """What is known of its results; None while nobody has asked about them."""
    hibernation, said = record.claim.hibernation, keeping_of_claim(books, record)
    if hibernation is None and (said is None or not said.surveyed):
        return None
    keeping = said or Keeping()
    # Its scheduler may be silent: what was kept then is known all the same.
    results = hibernation.results if hibernation is not None else 0
    nbytes = hibernation.result_bytes if hibernation is not None else 0
    return KeepingView(
        surveyed=keeping.surveyed,
        results=max(keeping.results, results),
        result_bytes=max(keeping.result_bytes, nbytes),
        held=keeping.held,
        held_bytes=keeping.held_bytes,
        unkept=tuple(UnkeptView.model_validate(x, from_attributes=True) for x in keeping.unkept),
        unkept_count=keeping.unkept_count,
        kept_since=None if hibernation is None else hibernation.kept_at,
        again=keeping.again,
        gone=keeping.gone,
        problem=keeping.problem or _no_room(record, books, keeping),
    )


def _no_room(record: ClaimRecord, books: Books, keeping: Keeping) -> str:
    """Said beforehand, to whoever is warned; what is kept already has its room."""
    is_asked = record.claim.hibernation is None and keeping.surveyed
    objection = no_room(books, record, keeping.result_bytes) if is_asked else ""
    return f"Its results cannot be kept: {objection}." if objection else ""
