"""What would come of applying a policy, without applying it: pure.

Called by the API with the books as they are.
"""

from dataclasses import dataclass

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.policy import refusals_of

from .policy import check_fits, in_force
from .policy_effects import effects_of
from .standing import View


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
    refusals = refusals_of(source)
    if refusals:
        return Checked(refusals=refusals)
    try:
        after = in_force(source, view.policy.revision)
        check_fits(after, view)
    except BadRequest as error:
        return Checked(refusals=(error,))
    return Checked(effects=effects_of(view, view.policy, after, now_s))
