"""From the fork to the first line of what it becomes: how a child gets to be on its own.

Called by `zygote` in the child. The order is the point: it lets go of the zygote's descriptors,
waits until the agent knows of it, becomes its user, and only then reads its launch, which holds
secrets.
"""

import contextlib
import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Collection, Mapping
from pathlib import Path

import dask.config
import numpy as np

from jupyter_gpupool.protocol.launch import MOST_LOCKS, Fork, Launch, Role, decode, lock_names

from . import holder, identity, scheduler, threads, warming, worker
from .problems import CannotStart

_LARGEST_LAUNCH_BYTES = 4 * 1024 * 1024


def live(request: Fork, descriptors: Mapping[str, int], *, held: int) -> int:
    """Become what the launch says and run until it ends.

    Args:
        request: Whom to become.
        descriptors: What was handed over, by name.
        held: Readable once the agent knows of this process.

    Returns:
        The exit code.
    """
    stand_alone()
    keep_only(descriptors, {held})
    if not _is_let_go(held):
        return 1
    return become(request, descriptors)


def stand_alone() -> None:
    """Leave the zygote's session, signals and file mode behind."""
    os.setsid()
    os.umask(0o077)
    _take_default_signals()


def keep_only(descriptors: Mapping[str, int], others: Collection[int] = ()) -> None:
    """Close every descriptor that was not handed over, and write to the log from now on."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = descriptors.get("log", nothing)
    os.dup2(nothing, 0)
    for stream in (1, 2):
        os.dup2(log, stream)
    kept = {descriptor for name, descriptor in descriptors.items() if name != "log"}
    close_all_but({0, 1, 2} | kept | set(others))


def become(request: Fork, descriptors: Mapping[str, int]) -> int:
    """Become its user, read its launch, and run what that says until it ends.

    Returns:
        The exit code.
    """
    role = "process"
    try:
        if request.uid is not None:
            identity.become(request.uid, request.gid, request.groups)
        identity.gain_nothing()
        launch = _read_launch(descriptors["launch"])
        role = launch.role
        _settle(launch)
        if launch.role is Role.SCHEDULER:
            return scheduler.run(launch)
        if launch.role is Role.HOLDER:
            return holder.run(launch)
        names = filter(descriptors.__contains__, lock_names(MOST_LOCKS))
        return worker.run(launch, lock_fds=tuple(descriptors[name] for name in names))
    except CannotStart as problem:
        _say(f"The {role} cannot start: {problem}")
    except Exception as error:  # noqa: BLE001 - its last line is the reason a user reads
        traceback.print_exc()
        _say(f"The {role} cannot start: {_innermost(error)}")
    return 1


def _take_default_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    # As every Python process has it: a closed pipe is an error to handle, not the end.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _is_let_go(held: int) -> bool:
    """Wait for the zygote's word; its death instead of a word means that nobody knows of this."""
    try:
        return os.read(held, 1) != b""
    finally:
        os.close(held)


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor of this process but these."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - no object to leak
        if int(name) not in kept:
            # The listing's own descriptor is closed already.
            with contextlib.suppress(OSError):
                os.close(int(name))


def _read_launch(descriptor: int) -> Launch:
    try:
        line = os.pread(descriptor, _LARGEST_LAUNCH_BYTES, 0)
    finally:
        os.close(descriptor)
    launch = decode(line)
    if not isinstance(launch, Launch):
        raise CannotStart(f"it was handed a {type(launch).__name__} instead of a launch.")
    return launch


def _settle(launch: Launch) -> None:
    warming.name_process(f"gpupool-{launch.role}")
    threads.allow(launch.env)
    _make_temporary(launch)
    os.environ.update(launch.env)
    # Every child inherits the zygote's state of both, and would draw the same numbers.
    random.seed()
    np.random.seed()  # noqa: NPY002 - the global one is what has to be reseeded
    try:
        os.chdir(launch.folder)
    except OSError as error:
        raise CannotStart(
            f"its folder {launch.folder} cannot be used: {error.strerror}."
        ) from error
    _read_dask_configuration(launch)


def _make_temporary(launch: Launch) -> None:
    """Have temporary files go where the claim's others are; its own variables may say otherwise."""
    if not launch.temporary:
        return
    try:
        Path(launch.folder, "tmp").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise CannotStart(
            f"its folder {launch.folder} cannot be written: {error.strerror}."
        ) from error
    os.environ["TMPDIR"] = launch.temporary
    # What the zygote, or a spare, has found for itself.
    tempfile.tempdir = None


def _read_dask_configuration(launch: Launch) -> None:
    own = Path(os.environ.get("HOME", "/")) / ".config" / "dask"
    if not os.environ.get("DASK_CONFIG") and str(own) not in dask.config.paths and _is_folder(own):
        dask.config.refresh(paths=[*dask.config.paths, str(own)], env=os.environ)
    elif any(name.startswith("DASK_") for name in launch.env):
        dask.config.update(dask.config.config, dask.config.collect_env(os.environ))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)  # noqa: T201 - the log is this process's stderr
