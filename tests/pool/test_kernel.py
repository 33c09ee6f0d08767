"""The kernels of a claim."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jupyter_gpupool.pool.errors import Conflict
from jupyter_gpupool.pool.ids import KernelId
from jupyter_gpupool.pool.kernel import MOST_KERNELS, Kernel, attach, detach


@pytest.fixture
def kernel(noon):
    """A kernel that was attached at noon."""
    return Kernel(
        id=KernelId("k"), name="a.ipynb", host="h", boot_id="b", pid=1, started=2, attached_at=noon
    )


def test_the_same_kernel_again_changes_nothing(kernel):
    """Said twice, it is there since the first time."""
    again = replace(kernel, attached_at=kernel.attached_at + timedelta(hours=1))
    assert attach((kernel,), again) == (kernel,)


def test_a_restarted_kernel_takes_its_own_place(kernel):
    """The same id is another process now."""
    restarted = replace(kernel, pid=9, attached_at=kernel.attached_at + timedelta(hours=1))
    assert attach((kernel,), restarted) == (restarted,)


def test_a_claim_has_a_bounded_number_of_kernels(kernel):
    """One more is refused, one of those that are there is not."""
    full = tuple(replace(kernel, id=KernelId(f"k{n}")) for n in range(MOST_KERNELS))
    with pytest.raises(Conflict, match="100 kernels"):
        attach(full, kernel)
    assert len(attach(full, replace(full[0], pid=9))) == MOST_KERNELS


def test_only_the_named_kernel_is_detached(kernel):
    """One that is not there is not missed."""
    other = replace(kernel, id=KernelId("other"))
    assert detach((kernel, other), kernel.id) == (other,)
    assert detach((other,), kernel.id) == (other,)


def test_a_kernel_without_a_name_is_called_by_its_id(kernel):
    """A script has no notebook."""
    assert (kernel.title, replace(kernel, name="").title) == ("a.ipynb", "k")
