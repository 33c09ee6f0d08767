"""Lets other environments load our package from here, and nothing else that is installed here.

Called by `environments`: an environment need not have our package, and one that has another version
of it would not understand this agent's launches.
"""

from pathlib import Path

import jupyter_gpupool
from jupyter_gpupool.pool.errors import Unavailable


def expose_package(folder: Path) -> Path:
    """Make it a folder that holds our package alone.

    Raises:
        Unavailable: If it cannot be made.
    """
    (package,) = jupyter_gpupool.__path__
    link, draft = folder / jupyter_gpupool.__name__, folder / ".draft"
    try:
        folder.mkdir(exist_ok=True)
        # Users' own zygotes read it as well, whatever the umask is.
        folder.chmod(0o755)
        draft.unlink(missing_ok=True)
        draft.symlink_to(Path(package).resolve(), target_is_directory=True)
        draft.replace(link)
    except OSError as error:
        raise Unavailable(
            f"The folder {folder} cannot be made: {error.strerror}.",
            hint="Look after the agent's state folder.",
        ) from error
    return folder
