"""Where a claim's temporary files are, and what that is called."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from jupyter_gpupool.agent import temporary
from jupyter_gpupool.agent.claim_folders import make_working_folder, set_aside_what_is_over
from jupyter_gpupool.agent.state_folder import open_state_folder
from jupyter_gpupool.agent.temporary import (
    forget_dead,
    forget_temporary,
    name_temporary,
    temporary_folder,
)


@pytest.fixture
def deep(tmp_path):
    """A state folder that lies too deep for the path of a socket."""
    return open_state_folder(tmp_path / ("d" * 100) / "state")


@pytest.fixture
def links():
    """Where links are made; short, as /tmp is."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="l-") as folder:
        yield Path(folder)


def claim_folder(folder):
    path = make_working_folder(folder, "c1", uid=os.getuid(), gid=os.getgid())
    (path / "tmp").mkdir()
    return path


def test_short_path_is_its_own_name(links):
    """Nothing is made anywhere else."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="s-") as state:
        folder = open_state_folder(Path(state))
        assert name_temporary(folder, "c1", links) == temporary_folder(folder, "c1")
    assert not list(links.iterdir())


def test_socket_can_be_made_however_deep_the_folder_lies(deep, links):
    """By a link, below which `multiprocessing` puts 32 letters more."""
    path = claim_folder(deep)
    name = name_temporary(deep, "c1", links)
    assert name_temporary(deep, "c1", links) == name
    (name / "pymp-12345678").mkdir()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(name / "pymp-12345678" / "listener-12345678"))
    assert (path / "tmp" / "pymp-12345678" / "listener-12345678").is_socket()


def test_link_goes_with_the_claim(deep, links):
    """And no other one."""
    claim_folder(deep)
    name, other = name_temporary(deep, "c1", links), name_temporary(deep, "c2", links)
    forget_temporary(deep, "c1", links)
    forget_temporary(deep, "c1", links)
    assert not os.path.lexists(name)
    assert other.is_symlink()


def test_name_that_somebody_took_is_not_used(deep, links):
    """Whatever lies there: it would lead the claim's files elsewhere."""
    link = name_temporary(deep, "c1", links)
    link.unlink()
    link.symlink_to("/etc")
    assert name_temporary(deep, "c1", links) == temporary_folder(deep, "c1")
    forget_temporary(deep, "c1", links)
    assert link.is_symlink()


def test_links_of_claims_that_are_gone_go(deep, links):
    """Whoever left them; those of living claims stay, and so does what is no link of ours."""
    claim_folder(deep)
    living, dead = name_temporary(deep, "c1", links), name_temporary(deep, "c2", links)
    other = links / "gpupool-mine"
    other.symlink_to(links / "nowhere" / "tmp")
    file = links / "gpupool-file"
    file.touch()
    forget_dead(links)
    assert sorted(links.iterdir()) == sorted([living, other, file])
    assert not os.path.lexists(dead)


def test_link_that_leads_nowhere_holds_up_no_other(deep, links):
    """Any process of the agent's own user can make one whose path the system refuses."""
    odd = Path("/") / ("x" * 300) / "tmp"
    temporary._link(odd, links).symlink_to(odd)
    dead = name_temporary(deep, "c2", links)
    forget_dead(links)
    assert not os.path.lexists(dead)


def test_temporary_files_are_set_aside_first(deep):
    """While the claim's scheduler ends; the rest follows."""
    path = claim_folder(deep)
    (path / "tmp" / "file").touch()
    (path / "other").touch()
    [aside] = set_aside_what_is_over(deep, "c1", all_of_it=False)
    assert [each.name for each in aside.iterdir()] == ["file"]
    assert [each.name for each in path.iterdir()] == ["other"]
    assert set_aside_what_is_over(deep, "c1", all_of_it=False) == (aside,)
    assert len(set_aside_what_is_over(deep, "c1", all_of_it=True)) == 2
    assert not path.exists()
