"""The page on the policy shows a document that works, and leaves no key out."""

import re
from pathlib import Path

from jupyter_gpupool.manager.service.policy import in_force
from jupyter_gpupool.protocol import policy

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
[DOCUMENT] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_document_of_the_page_makes_a_tree():
    """Copied as it is, it starts a manager."""
    assert set(in_force(DOCUMENT, 1).tree.queues) == {"research", "vision", "speech", "guests"}


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
