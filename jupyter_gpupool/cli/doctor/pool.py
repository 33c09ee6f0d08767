"""Does the pool answer, and do its clock and its devices agree with what is here? Judges alone."""

from collections.abc import Iterator

from jupyter_gpupool.client.address import PoolAddress, Source
from jupyter_gpupool.client.discovery import TOKEN, URL
from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.pool.units import format_duration, plural

from .finding import Finding, note, problem, warning, well
from .pool_view import PoolView

_SKEW_WARNS_S = 30.0
_SKEW_BREAKS_S = 86_400.0
"""A claim's certificates are backdated by a day, for hosts whose clock is behind."""
_OTHER_NAME = "mismatch"
_WRONG_TIME = ("expired", "not yet valid")


def judge_connection(view: PoolView) -> Iterator[Finding]:
    """Whether the pool that notebooks use answers them."""
    if view.error is not None:
        yield problem("pool-unusable", view.error.message, _mend(view.error, view.address))
    elif view.address is None:
        yield note(
            "pool-not-running",
            "No pool is named, and your own on this machine does not run.",
            f"Nothing; it starts at the first use. To use another, set {URL} and {TOKEN}.",
        )
    elif view.status is not None:
        said = view.status
        devices = plural(said.devices, "simulated device" if said.simulated else "device")
        what = f"The pool at {view.address.base} answers; it has {devices}, {said.free} free."
        yield well("pool-answers", what) if said.devices else _empty(view.address)
        for told in said.problems:
            yield warning(
                "pool-problem", told, "Do what it says; it is told until that has been done."
            )


def _empty(address: PoolAddress) -> Finding:
    return warning(
        "pool-empty",
        f"The pool at {address.base} answers, but has no device: every claim waits.",
        "Have a host join it: `jupyter gpupool agent --help` says how.",
    )


def _mend(error: PoolError, address: PoolAddress | None) -> str:
    """What to do; OpenSSL tells more reasons apart than the hint does."""
    text = error.message.lower()
    if address is not None and address.source is Source.RUNTIME_FILE:
        return (
            f"End process {address.manager_pid}, your own pool's manager: the next use starts it."
        )
    if _OTHER_NAME in text:
        return f"Write the very name into {URL} that the certificate is for."
    if any(words in text for words in _WRONG_TIME):
        return "Have the manager's certificate renewed, if this machine's clock is right."
    return error.hint or "Change what the sentence names, then look again."


def judge_clock(view: PoolView) -> Iterator[Finding]:
    """Whether this machine and the manager's agree what time it is."""
    ahead_s = view.clock_ahead_s
    if ahead_s is None:
        return
    way = "ahead of" if ahead_s > 0 else "behind"
    what = f"This machine's clock is {format_duration(abs(ahead_s))} {way} the manager's."
    mend = "Have both machines keep time by NTP, for example: timedatectl set-ntp true."
    if abs(ahead_s) > _SKEW_BREAKS_S:
        yield problem("clock-skew", f"{what} The certificates of claims are not valid here.", mend)
    elif abs(ahead_s) > _SKEW_WARNS_S:
        yield warning("clock-skew", f"{what} Times and estimates are wrong by as much.", mend)
    else:
        yield well("clock-agrees", "This machine's clock agrees with the manager's.")


def judge_devices(view: PoolView) -> Iterator[Finding]:
    """Whether somebody besides the pool uses its devices."""
    if view.status is None:
        return
    elsewhere = [device.uuid for device in view.devices if device.held_elsewhere]
    foreign = [device.uuid for device in view.devices if device.foreign]
    if elsewhere:
        yield warning(
            "devices-held-by-another-pool",
            f"Another pool on the same host has leased {', '.join(elsewhere)} of this pool.",
            "Let one pool have the host's devices: end the other's claims, and its agent.",
        )
    if foreign:
        yield warning(
            "devices-used-outside",
            f"Processes outside the pool use {', '.join(foreign)}.",
            "See them with `jupyter gpupool devices`, and ask their owner to claim instead.",
        )
    if not elsewhere and not foreign:
        yield well("devices-pools-own", "Nobody but the pool uses its devices.")


def judge_version(view: PoolView, here: str) -> Iterator[Finding]:
    """Whether this package and the manager's are the same release."""
    if view.status is None:
        return
    there = view.status.version
    if there == here:
        yield well("version-agrees", f"The manager is of this version too, {here}.")
    else:
        yield warning(
            "version-differs",
            f"jupyter_gpupool is {here} here, and {there} at the manager.",
            f"Run: pip install jupyter-gpupool=={there}",
        )
