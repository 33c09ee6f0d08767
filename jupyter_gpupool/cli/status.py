"""`status`, `hosts`, `devices`: the pool as it is."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.pool.units import format_bytes

from .asking import ask
from .output import ago, json_option, show_json, show_table, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from jupyter_gpupool.protocol.api import DeviceView, HolderView, HostView, StatusView


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Show the pool in one look."""
    view = ask(lambda client: client.status())
    if as_json:
        show_json(view)
    else:
        click.echo(status_text(view))


@click.command()
@json_option
def hosts(*, as_json: bool) -> None:
    """List the pool's hosts."""
    views = ask(lambda client: client.hosts())
    if as_json:
        show_json(views)
    else:
        show_table(hosts_table(views), "No host has joined the pool yet.")


@click.command()
@json_option
def devices(*, as_json: bool) -> None:
    """List the pool's devices and who has them."""
    views = ask(lambda client: client.devices())
    if as_json:
        show_json(views)
    else:
        show_table(devices_table(views), "The pool has no device.")


def status_text(view: "StatusView") -> str:
    """The pool in a few lines."""
    from jupyter_gpupool.notebook.answers import status_lines  # noqa: PLC0415 - 0.3 s

    return "\n".join(status_lines(view))


def hosts_table(views: "Sequence[HostView]") -> "Table":
    """One row a host."""
    made = table("HOST", "PHASE", "SINCE", "DEVICES", "FREE", "CPUS", "MEMORY", "PROBLEM")
    for view in views:
        made.add_row(
            view.name,
            view.phase,
            ago(view.since),
            str(view.devices),
            str(view.free),
            str(view.cpus),
            format_bytes(view.memory_bytes),
            view.problem,
        )
    return made


def devices_table(views: "Sequence[DeviceView]") -> "Table":
    """One row a device."""
    made = table("DEVICE", "MODEL", "MEMORY", "HOST", "USED", "STATE")
    for view in views:
        made.add_row(
            view.uuid,
            view.device.model,
            format_bytes(view.device.memory_bytes),
            view.host,
            "" if view.utilisation is None else f"{view.utilisation:.0%}",
            device_state(view),
        )
    return made


def device_state(view: "DeviceView") -> str:
    """Whether a device may be had, or what stands against it."""
    if view.leased:
        holders = ", ".join(filter(None, map(_holder, view.holders)))
        left = f", {view.left:g} of it free" if view.left else ""
        return f"leased to {holders}{left}" if holders else f"leased{left}"
    if view.held_elsewhere:
        return "held by another pool"
    if view.foreign:
        return f"used outside the pool by process {view.foreign[0].pid}"
    if view.free:
        return "free"
    return " ".join(part for part in (view.health, view.problem) if part)


def _holder(view: "HolderView") -> str:
    if view.claim is None:
        return ""
    part = f"{view.share:g} to " if view.share < 1 else ""
    return f"{part}{view.owner} ({view.claim})"
