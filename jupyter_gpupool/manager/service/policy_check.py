"""What would come of applying a policy, without applying it: pure.

Called by the API with the books as they are.
"""

from dataclasses import dataclass
from functools import partial
from itertools import islice

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.policy import examine, located
from jupyter_gpupool.protocol.policy_lines import line_of_refusal

from .policy import in_force
from .policy_effects import effects_of
from .policy_tree import refusals_of_tree
from .standing import View

_MOST = 100
"""More refusals of queues nobody reads at once, and each is looked up in the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found.

    Attributes:
        refusals: Why it would be refused; none if it would not.
        effects: What it would mean for claims that are there, in sentences.
    """

    refusals: tuple[BadRequest, ...] = ()
    effects: tuple[str, ...] = ()


def check_policy(view: View, source: str, now_s: float) -> Checked:
    """Look at a document as if it were applied now."""
    examined = examine(source)
    refusals = list(examined.refusals)
    if examined.queues is not None:
        found = islice(refusals_of_tree(examined.queues, view.hosts.values()), _MOST)
        refusals += (located(source, each) for each in found)
    if refusals:
        return Checked(refusals=tuple(sorted(refusals, key=partial(_line, source))))
    after = in_force(source, view.policy.revision)
    return Checked(effects=effects_of(view, view.policy, after, now_s))


def _line(source: str, refusal: BadRequest) -> int:
    return line_of_refusal(source, refusal) or 0
