"""`usage`: the same figures as a table, CSV and picture; names cannot do harm there."""

from datetime import UTC, date, datetime
from xml.etree import ElementTree as ET

import pytest

from jupyter_gpupool.cli.usage import _days, _write_csv, usage_table
from jupyter_gpupool.cli.usage_plot import usage_svg
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.usage import UsageBy, UsageRowView, UsageView, UsedView

_AMOUNTS = {"held": 4.0, "busy": 1.5, "idle": 2.0, "unknown": 0.5, "won_back": 1.0}


def a_view(*users):
    """A report by user and day."""
    day = date(2026, 12, 1)
    rows = tuple(UsageRowView(user=user, day=day, **_AMOUNTS) for user in users)
    return UsageView(
        since=datetime(2026, 11, 25, tzinfo=UTC),
        until=datetime(2026, 12, 1, 12, tzinfo=UTC),
        zone="UTC",
        by=(UsageBy.USER, UsageBy.DAY),
        whole_pool=True,
        rows=rows,
        total=UsedView(**_AMOUNTS),
    )


def test_table_has_a_row_each_and_their_sum():
    """The sum only where there is something to add."""
    assert usage_table(a_view("ann", "bob")).row_count == 3
    assert usage_table(a_view("ann")).row_count == 1


def test_csv_has_a_heading_and_plain_numbers(capsys):
    """A name that a spreadsheet would take for a formula is none there."""
    _write_csv(a_view("=cmd()"))
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split(",")[:3] == ["user", "day", "held_gpu_hours"]
    assert row == "'=cmd(),2026-12-01,4.0,1.5,2.0,0.5,1.0"


def test_picture_is_sound_xml_and_to_scale():
    """Whatever the names are; a longer bar is more."""
    view = a_view("<ann&>", "bob")
    root = ET.fromstring(usage_svg(view, ["<ann&> · 2026-12-01", "bob"]))
    bars = [each for each in root if each.get("height") == "18"]
    lengths = [float(each.get("width")) for each in bars[:4]]
    assert len(bars) == 8
    assert lengths == pytest.approx([144.0, 192.0, 48.0, 96.0])
    assert "<ann&> · 2026-12-01: 1.50 h busy" in [each.text for bar in bars for each in bar]


def test_empty_report_is_a_picture_too():
    """Of nothing."""
    assert ET.fromstring(usage_svg(a_view(), [])).get("font-size") == "12"


@pytest.mark.parametrize(("since", "days"), [("7d", 7), ("25h", 2), ("1h", 1)])
def test_since_is_whole_days(since, days):
    """What has begun counts."""
    assert _days(since) == days


def test_more_than_is_kept_is_refused():
    """With one sentence."""
    with pytest.raises(BadRequest, match="Only the last 400 days"):
        _days("500d")
