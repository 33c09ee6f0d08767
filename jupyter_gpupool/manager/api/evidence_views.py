"""Evidence as its reader may see it: pure."""

from dataclasses import fields

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.protocol.evidence_view import EvidenceView

_KEPT = tuple(each.name for each in fields(Evidence))


def evidence_view(evidence: Evidence | None, caller: Caller) -> EvidenceView | None:
    """All of it for an admin; whose claims wait is nothing that others may know."""
    if evidence is None:
        return None
    shown = {name: getattr(evidence, name) for name in _KEPT}
    if not caller.is_admin:
        shown["wanted_by"] = ()
    return EvidenceView(**shown, waiting=len(evidence.wanted_by))
