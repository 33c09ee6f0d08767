"""Revisions of the policy, and what is found in documents, as admins are shown them: pure."""

from jupyter_gpupool.manager.service.policy_check import Checked
from jupyter_gpupool.manager.service.records import PolicyRevision
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.policy_lines import line_of_refusal
from jupyter_gpupool.protocol.policy_views import (
    CheckView,
    PolicyProblem,
    RevisionView,
)


def revision_view(made: PolicyRevision, in_force: int, *, with_source: bool = True) -> RevisionView:
    """A revision, with its document unless there are many."""
    return RevisionView(
        revision=made.revision,
        is_in_force=made.revision == in_force,
        at=made.at,
        by=made.by,
        comment=made.comment,
        restores=made.restores,
        source=made.source if with_source else "",
    )


def check_view(source: str, checked: Checked) -> CheckView:
    """What was found in a document."""
    return CheckView(
        problems=tuple(_problem(source, refusal) for refusal in checked.refusals),
        warnings=checked.effects,
    )


def _problem(source: str, refusal: BadRequest) -> PolicyProblem:
    line = line_of_refusal(source, refusal)
    # The line has a place of its own here.
    hint = refusal.hint.removeprefix(f"See line {line}.").strip()
    message = f"{refusal.message} {hint}".strip()
    return PolicyProblem(line=line, key=refusal.field, message=message)
