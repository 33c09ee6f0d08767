"""What is said of the policy: what is in force, its revisions, and how it is changed.

Routes, all under /api/v1/policy:

    GET  ""                      → PolicyView      user: their queues; admin: all of it
    GET  /revisions              → [RevisionView]  admin
    GET  /revisions/{revision}   → RevisionView    admin
    GET  /diff?from=&to=         → DiffView        admin
    POST /check                  CheckBody → CheckView          admin; changes nothing
    POST /apply                  ApplyBody → AppliedView        admin
    POST /rollback               RollbackBody → AppliedView     admin
"""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from jupyter_gpupool.pool.ids import UserName

from .bodies import PRINTABLE, Body, View

LARGEST_POLICY = 250_000
"""Characters: more than an organisation has to say, and less than a request may hold."""
LAST_REVISION = 2**31 - 1
_Source = Annotated[str, Field(max_length=LARGEST_POLICY)]
_Comment = Annotated[str, Field(max_length=500, pattern=PRINTABLE)]
_Revision = Annotated[int, Field(ge=0, le=LAST_REVISION, strict=True)]


class CheckBody(Body):
    """A document to be looked at."""

    source: _Source


class ApplyBody(Body):
    """A document to be put into force.

    Attributes:
        comment: Why, for whoever reads the history.
        expected_revision: The revision that this follows: another one in force is a conflict.
    """

    source: _Source
    comment: _Comment = ""
    expected_revision: _Revision | None = None


class RollbackBody(Body):
    """An earlier revision to be put into force again; 0 is how every pool begins."""

    revision: _Revision
    comment: _Comment = ""
    expected_revision: _Revision | None = None


class AmountsView(View):
    """How much of everything; None is not said. `gpus` and `models` are devices, `cpus` cores."""

    gpus: float | None = None
    cpus: float | None = None
    memory_bytes: int | None = None
    models: dict[str, float] = Field(default_factory=dict)


class YoursView(View):
    """What the caller has in a queue, and may have at most; None is no limit.

    Attributes:
        held: Devices.
        claims: Open ones.
        gpu_hours: Used in the period of the budget that is running; 0 without a budget.
        period_s: How long that period is.
    """

    held: float = 0.0
    most_held: float | None = None
    claims: int = 0
    most_claims: int | None = None
    gpu_hours: float = 0.0
    most_gpu_hours: float | None = None
    period_s: int | None = None


class QueueView(View):
    """A queue of the policy, and how it and those below it stand now.

    Attributes:
        share: Devices that it may hold now before others may take them back: its part of the pool
            by what everybody holds and wants at this moment, never less than its guarantee.
        held: Devices that it holds.
        waiting: Devices that its waiting claims need to start.
        waiting_claims: How many they are.
        fit_if_moved: Of these, those that would fit if other claims moved; the policy moves none.
        used_gpu_hours: Past use that still counts against its weight.
        yours: The caller's part of it.
        users: Who may claim here; names are shown to admins alone.
    """

    name: str
    parent: str | None = None
    guarantee: AmountsView = Field(default_factory=AmountsView)
    limit: AmountsView = Field(default_factory=AmountsView)
    weight: float = 1.0
    priority: int = 0
    share: float = 0.0
    held: float = 0.0
    waiting: float = 0.0
    waiting_claims: int = 0
    fit_if_moved: int = 0
    used_gpu_hours: float = 0.0
    yours: YoursView = Field(default_factory=YoursView)
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()


class RevisionView(View):
    """A policy as it was applied.

    Attributes:
        by: Who applied it; "manager" did so at its start, from the file that its admin named.
        comment: Why.
        restores: The earlier revision that it brought back, if it was a rollback.
        is_in_force: It holds now.
        source: The document; "" in a list.
    """

    revision: int
    is_in_force: bool = False
    at: datetime | None = None
    by: UserName | None = None
    comment: str = ""
    restores: int | None = None
    source: str = ""


class PolicyView(View):
    """The policy in force.

    Attributes:
        revision: 0 is how every pool begins: one queue for everybody.
        applied: When, by whom and why, with the document; to admins alone.
        queues: All of them to an admin, to a user those they may claim in.
        warnings: What an admin should know of it, such as a policy file that says something else.
    """

    revision: int
    applied: RevisionView | None = None
    queues: tuple[QueueView, ...] = ()
    warnings: tuple[str, ...] = ()


class PolicyProblem(View):
    """Why a document is refused.

    Attributes:
        line: Where, from 1; None if no line is to blame.
        key: Dotted, from the top of the document; "" if no key is to blame.
        message: In one sentence.
    """

    line: int | None = None
    key: str = ""
    message: str


class KeyChange(View):
    """One key that differs; None is not there."""

    key: str
    before: str | None = None
    after: str | None = None


class DiffView(View):
    """What differs between two documents.

    Attributes:
        changes: By key, in the order of keys: what order, comments and layout do not change.
        text: Line by line, as diff -u writes it; "" if they are the same.
    """

    changes: tuple[KeyChange, ...] = ()
    text: str = ""


class CheckView(View):
    """What would come of applying a document.

    Attributes:
        revision: The one in force, against which it was looked at.
        next_revision: What it would be if it were applied.
        problems: Why it would be refused; none if it would not.
        warnings: What it would mean for claims that are there.
    """

    revision: int = 0
    next_revision: int = 1
    problems: tuple[PolicyProblem, ...] = ()
    warnings: tuple[str, ...] = ()
    diff: DiffView = Field(default_factory=DiffView)


class AppliedView(View):
    """What came of applying a document.

    Attributes:
        revision: The one in force now.
        is_new: False if the same document was in force before.
        warnings: What it means for claims that were there, and what else an admin should know.
    """

    revision: int
    is_new: bool
    warnings: tuple[str, ...] = ()
