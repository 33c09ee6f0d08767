"""The page on the policy shows a document that works, and leaves no key out."""

import re
from pathlib import Path

from jupyter_gpupool.manager.service.policy import in_force
from jupyter_gpupool.protocol import policy
from jupyter_gpupool.scheduling.queue_checks import check_guarantees

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
[DOCUMENT] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_document_of_the_page_makes_a_tree():
    """Copied as it is, it starts a manager, and one whose hosts have joined as well."""
    tree = in_force(DOCUMENT, 1).tree
    assert set(tree.queues) == {"research", "vision", "speech", "guests"}
    check_guarantees(tree, (10**15,) * len(tree.kinds))


def test_every_key_stands_on_the_page():
    """An admin finds all there is."""
    entries = (
        policy.QueueEntry,
        policy.Amounts,
        policy.PerUser,
        policy.PriorityEntry,
        policy.SchedulingEntry,
    )
    keys = {key for entry in entries for key in entry.model_fields}
    assert {key for key in keys if not re.search(rf"\b{key} =", DOCUMENT)} == set()
