"""Which claim is meant when none is named."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.client.this_host import ThisHost
from jupyter_gpupool.notebook import asking
from jupyter_gpupool.notebook.claim import attach, claim
from jupyter_gpupool.notebook.terms import body_of
from jupyter_gpupool.notebook.this_kernel import ThisKernel, this_kernel
from jupyter_gpupool.notebook.which import (
    find,
    find_used,
    name_of,
    pool_of,
    the_one_meant,
    the_one_used,
)
from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotFound
from jupyter_gpupool.protocol.api import ClaimView, TokenBody

HERE = ThisHost(mark="here", boot_id="boot", uid=os.getuid())
US = ThisKernel(id="k-1", name="/home/me/a.ipynb", pid=1, started=1, host=HERE)
View = Callable[..., ClaimView]


@pytest.fixture
def used_by(a_view: View) -> Callable[..., ClaimView]:
    """Build a claim that this kernel uses."""

    def build(kernel: ThisKernel, name: str) -> ClaimView:
        said = {**kernel.body().model_dump(), "id": kernel.id, "name": kernel.name}
        return a_view(id=name, name=name, kernels=[{**said, "attached_at": "2026-11-30T12:00:00Z"}])

    return build


def test_claim_is_called_by_whatever_stands_for_it(a_view: View) -> None:
    """Its name or id, a view of it, or its cluster, which also knows the pool."""
    cluster: Any = SimpleNamespace(claim_id="c-3", pool="its pool")
    called = ["mine", "", a_view(id="c-2"), cluster]
    assert [name_of(each) for each in called] == ["mine", "", "c-2", "c-3"]
    assert [pool_of(each) for each in called] == [None, None, None, "its pool"]


@pytest.mark.parametrize("which", [None, 5, 0.5, b"mine", [], object])
def test_nothing_else_is_a_claim(which: Any) -> None:
    """Above all not None: releasing it must not release the only claim there is."""
    with pytest.raises(BadRequest, match="is no claim"):
        name_of(which)


def test_cluster_that_asked_for_nothing_yet_names_no_claim() -> None:
    """Its empty id would be the only claim there is."""
    with pytest.raises(Conflict, match="not been requested"):
        name_of(SimpleNamespace(claim_id="", pool=None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ask",
    [
        asking.explain,
        asking.logs,
        asking.hibernate,
        asking.resume,
        asking.release,
        asking.keep_alive,
        lambda which: asking.scale(which, 1),
        attach,
    ],
)
def test_what_is_no_claim_is_refused_before_a_pool_is_looked_for(ask: Any) -> None:
    """In one sentence, by each question."""
    with pytest.raises(BadRequest, match="None is no claim"):
        ask(None)


@pytest.mark.parametrize("pool", [5, "http://127.0.0.1:9"])
def test_what_is_no_pool_is_refused(pool: Any) -> None:
    """A URL is none either: the sentence says where that goes."""
    for ask in (asking.status, asking.claims, partial(claim, 1), partial(attach, "x")):
        with pytest.raises(BadRequest, match=r"is no pool\..*GPUPOOL_URL"):
            ask(pool=pool)


@pytest.mark.parametrize("ask", [partial(claim, 1), partial(attach, "mine")])
def test_asynchronous_claim_wants_a_loop(ask: Any) -> None:
    """Refused before anything is asked for."""
    with pytest.raises(BadRequest, match="event loop, and none runs here"):
        ask(asynchronous=True)


def test_only_claim_is_meant(a_view: View) -> None:
    """Whoever uses it; what is over does not count."""
    only = a_view(id="c-1")
    assert the_one_meant([a_view(phase="ended"), only], US) == only


def test_claim_of_this_kernel_comes_before_others(a_view: View, used_by: View) -> None:
    """Also after a restart: the kernel's id stays, its process does not."""
    mine = used_by(replace(US, pid=99, name=""), "mine")
    assert the_one_meant([a_view(id="c-2"), mine], US) == mine


def test_claim_of_this_notebook_comes_before_others(a_view: View, used_by: View) -> None:
    """Also in a new kernel."""
    mine = used_by(replace(US, id="k-0"), "mine")
    assert the_one_meant([a_view(id="c-2"), mine], US) == mine


def test_kernels_without_a_name_are_not_the_same_notebook(a_view: View, used_by: View) -> None:
    """An unknown name is no name in common."""
    nameless = replace(US, name="")
    others = [used_by(replace(nameless, id="k-0"), "other"), a_view(id="c-2", name="second")]
    with pytest.raises(BadRequest):
        the_one_meant(others, nameless)


def test_claims_of_one_name_are_listed_by_id(a_view: View) -> None:
    """Their name would not tell which."""
    both = [a_view(id="c-1", name="same"), a_view(id="c-2", name="same")]
    with pytest.raises(BadRequest, match=r"c-1 \(same\), c-2 \(same\)"):
        the_one_meant(both, US)


def test_giving_back_takes_more_than_being_the_only_one(a_view: View) -> None:
    """Another notebook may be at work with it; its name is told."""
    with pytest.raises(NotFound, match=r"no claim of its own; yours are: other \(1 × A100\)\."):
        the_one_used([a_view(name="other", model="A100")], US)


def test_giving_back_takes_the_one_that_is_used(a_view: View, used_by: View) -> None:
    """Of several, none."""
    mine = used_by(US, "mine")
    assert the_one_used([a_view(id="c-2"), mine], US) == mine
    with pytest.raises(BadRequest, match="You hold 2 claims"):
        the_one_used([mine, used_by(US, "second")], US)


@pytest.mark.e2e
def test_claims_of_others_are_never_meant(pool: Pool, strangers_claim: ClaimView) -> None:
    """An admin is shown them, and in another container the same notebook may lie at one path."""
    assert strangers_claim.id in [view.id for view in asking.claims(pool=pool)]
    for ask in (lambda: find(pool.client, ""), lambda: find_used(pool.client)):
        with pytest.raises(NotFound, match="You hold no claim"):
            pool.background.run(lambda _say, ask=ask: ask())  # type: ignore[misc]


@pytest.fixture
def strangers_claim(pool: Pool) -> Iterator[ClaimView]:
    """A claim of another user, used by a kernel that is called as we are."""
    run, us = pool.background.run, this_kernel()
    made = run(lambda _say: pool.client.make_token(TokenBody(user="bob")))
    bob = Pool(replace(pool.address, token=made.secret))
    view = run(lambda _say: bob.client.request_claim(body_of(1, {})))
    yield run(lambda _say: bob.client.attach_kernel(view.id, us.id, us.body()))
    run(lambda _say: bob.client.release(view.id))
    run(lambda _say: bob.close())


def test_several_are_listed(a_view: View) -> None:
    """So that one can be named."""
    views = [a_view(id=name, name=name, model="A100") for name in ("one", "two")]
    with pytest.raises(BadRequest, match=r"You hold 2 claims: one \(1 × A100\), two \(1 × A100\)."):
        the_one_meant(views, US)


def test_no_claim_is_said_so(a_view: View) -> None:
    """With what to do."""
    with pytest.raises(NotFound, match="You hold no claim") as none:
        the_one_meant([a_view(phase="ending")], US)
    assert "gpupool.claim(" in none.value.hint
