"""Where a claim's processes make their temporary files: in its own folder, by a short name.

Called by `starting` and `claim_folders`. All processes of a claim on one host share it, so that a
path one of them hands to another is good there. Unix sockets are made in it, too, and a path of
more than 107 bytes names none: where the state folder lies deep, a link in /tmp is its name.
"""

import hashlib
import os
from pathlib import Path

from jupyter_gpupool.pool.ids import ClaimId

from .state_folder import StateFolder

LINKS = Path("/tmp")  # noqa: S108 - nothing but a link of a name of our own is made there
_FOLDER = "tmp"
_LONGEST_BYTES = 107
_ROOM_BYTES = 40
"""Of a socket's path: what `multiprocessing` puts below it takes 32."""


def temporary_folder(folder: StateFolder, claim_id: ClaimId) -> Path:
    """Where they are. The first process makes it, as the claim's user."""
    return folder.claim(claim_id) / _FOLDER


def name_temporary(folder: StateFolder, claim_id: ClaimId, links: Path = LINKS) -> Path:
    """What TMPDIR is for a claim: the folder, or a link to it that is made here."""
    path = temporary_folder(folder, claim_id)
    if len(os.fsencode(path)) + _ROOM_BYTES <= _LONGEST_BYTES:
        return path
    link = _link(path, links)
    try:
        link.symlink_to(path)
    except OSError:
        # Of somebody else's making it is not used: then long names of sockets fail, and no more.
        return link if _is_ours(link, path) else path
    return link


def forget_temporary(folder: StateFolder, claim_id: ClaimId, links: Path = LINKS) -> None:
    """Remove the link, if there is one of ours."""
    path = temporary_folder(folder, claim_id)
    link = _link(path, links)
    if _is_ours(link, path):
        link.unlink(missing_ok=True)


def forget_dead(links: Path = LINKS) -> None:
    """Remove links to folders of claims that are gone, whichever agent of ours has left them.

    Such as one that was killed, and its state folder removed. A link's name says where it leads,
    so none that somebody else has made for another purpose is taken for one.
    """
    for link in links.glob("gpupool-*"):
        try:
            path = link.readlink()
            is_ours = link == _link(path, links) and _is_ours(link, path)
            is_dead = is_ours and not path.parent.is_dir()
        except OSError:
            continue  # where it leads nobody can tell
        if is_dead:
            link.unlink(missing_ok=True)


def set_aside_temporary(folder: StateFolder, claim_id: ClaimId, aside: Path) -> bool:
    """Move the folder out of its user's reach; whether there was one."""
    try:
        above = os.open(folder.claim(claim_id), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        # Not through its path: what lies in the claim's folder is its user's to replace.
        os.rename(_FOLDER, aside, src_dir_fd=above)
    except OSError:
        return False
    finally:
        os.close(above)
    return True


def _link(path: Path, links: Path) -> Path:
    return links / f"gpupool-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"


def _is_ours(link: Path, path: Path) -> bool:
    try:
        return link.lstat().st_uid == os.getuid() and link.readlink() == path
    except OSError:
        return False
