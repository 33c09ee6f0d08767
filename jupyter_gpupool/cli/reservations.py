"""`reserve`, `reservations`, `unreserve`: devices booked for a queue in a time window."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from jupyter_gpupool.pool.units import plural

from .asking import ask
from .output import json_option, show_json, show_table, table
from .windows import begins_at, ends_at, in_words, zone_named

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from rich.table import Table

    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.protocol.reserving import ReservationView

_zone = click.option(
    "--time-zone",
    "zone",
    metavar="ZONE",
    help='Of the times, such as "Europe/Berlin"; this machine\'s if left out.',
)


@click.command()
@click.argument("devices", type=click.IntRange(min=1))
@click.option("--queue", required=True, help="For which queue.")
@click.option(
    "--from", "begins", required=True, metavar="TIME", help='When: "tue 10:00", "now", "14:00".'
)
@click.option("--until", required=True, metavar="TIME", help='"12:00", or how long: "2h".')
@_zone
@click.option("--note", default="", help="What for.")
@json_option
def reserve(
    devices: int,
    *,
    queue: str,
    begins: str,
    until: str,
    zone: str | None,
    note: str,
    as_json: bool,
) -> None:
    """Reserve DEVICES for a queue in a time window; for admins, and leads of the queue.

    What the queue is guaranteed anyway is part of them: they are what it has in all.

    Whoever holds them then is told a quarter of an hour before, and they are empty when it begins;
    with less time than that they are empty as soon as everybody has had notice.
    """
    from jupyter_gpupool.client.bodies import make  # noqa: PLC0415 - 0.3 s
    from jupyter_gpupool.protocol.reserving import ReserveBody  # noqa: PLC0415 - as above

    place = zone_named(zone)
    start = begins_at(begins, datetime.now(UTC), place)
    end = ends_at(until, start, place)
    body = make(ReserveBody, queue=queue, devices=devices, begins=start, ends=end, note=note)
    view = ask(lambda client: client.reserve(body))
    show_json(view) if as_json else click.echo(f"{line(view, place)}. It is {view.id}.")


@click.command()
@_zone
@json_option
def reservations(*, zone: str | None, as_json: bool) -> None:
    """List what is reserved."""
    place, views = zone_named(zone), ask(lambda client: client.reservations())
    if as_json:
        show_json(views)
    else:
        show_table(reservations_table(views, place), "Nothing is reserved.")


@click.command()
@click.argument("reservations", nargs=-1, required=True)
@json_option
def unreserve(reservations: tuple[str, ...], *, as_json: bool) -> None:
    """Give RESERVATIONS (ids) up."""

    async def give_up(client: "PoolClient") -> None:
        for reservation in reservations:
            await client.cancel_reservation(reservation)

    ask(give_up)
    if as_json:
        show_json({"given_up": list(reservations)})
    else:
        click.echo(f"Given up: {', '.join(reservations)}.")


def line(view: "ReservationView", zone: "tzinfo | None") -> str:
    """What was reserved, in one sentence without its end."""
    devices, window = plural(view.devices, "device"), in_words(view.begins, view.ends, zone)
    return f"Reserved: {devices} for {view.queue}, {window}"


def reservations_table(views: "Sequence[ReservationView]", zone: "tzinfo | None") -> "Table":
    """One row a reservation."""
    made = table("RESERVATION", "QUEUE", "DEVICES", "WINDOW", "STATE", "BY", "NOTE")
    for view in views:
        window = in_words(view.begins, view.ends, zone)
        state = f"open, {view.held} held" if view.is_open else "ahead"
        made.add_row(view.id, view.queue, str(view.devices), window, state, view.by, view.note)
    return made
