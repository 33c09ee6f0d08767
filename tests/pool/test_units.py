"""Sizes and times that people write."""

from datetime import timedelta
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import (
    absolute_bytes,
    as_count,
    format_bytes,
    format_duration,
    parse_bytes,
    parse_duration,
    plural,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("10GiB", 10 * 2**30),
        ("10 GB", 10**10),
        (" 1.5 kib ", 1536),
        ("2g", 2 * 2**30),
        ("512", 512),
        (512, 512),
        ("1b", 1),
        ("1EiB", None),
        ("1048576 TiB", 2**60),
    ],
)
def test_a_size_reads_as_written(text, size_bytes):
    """Decimal and binary units, any case, with or without a space; no unit is bytes."""
    if size_bytes is None:
        with pytest.raises(BadRequest, match="is not a size"):
            parse_bytes(text)
    else:
        assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    "text", ["", "0", "0.5", "-1", "ten", "1 GiB 2", "nan", "inf", "1e9", "9" * 400, "1048577 TiB"]
)
def test_a_nonsense_size_names_its_field(text):
    """What is no size, below a byte or beyond an exbibyte is refused where it stands."""
    with pytest.raises(BadRequest) as refused:
        parse_bytes(text, field="memory")
    assert (refused.value.field, refused.value.hint) == ("memory", 'Write for example "10GiB".')


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        (90, 90),
        (0.5, 0.5),
        ("90s", 90),
        ("20 min", 1200),
        ("20m", 1200),
        ("2h", 7200),
        ("1.5 d", 129_600),
        ("1w", 604_800),
        (timedelta(hours=1), 3600),
    ],
)
def test_a_time_reads_as_written(text, seconds):
    """A number without a unit is seconds; minutes, hours, days and weeks have their letters."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["", "0", "-5", "soon", "2 fortnights", "0.0000001", timedelta(0), -1.0, nan, True],
)
def test_a_nonsense_time_names_its_field(text):
    """What is no time or not above zero is refused where it stands."""
    with pytest.raises(BadRequest, match="is not a time above zero") as refused:
        parse_duration(text, field="time_limit")
    assert refused.value.field == "time_limit"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (1048575, "1024 KiB"),
        (512 * 2**20, "512 MiB"),
        (85_520_809_984, "79.6 GiB"),
        (3 * 2**40, "3.0 TiB"),
    ],
)
def test_a_size_is_written_in_its_largest_unit(size_bytes, text):
    """Three digits, never an exponent."""
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (45, "45 s"),
        (0.3, "0.3 s"),
        (0.01, "0 s"),
        (59.6, "1 min"),
        (65, "1 min 5 s"),
        (299, "4 min 59 s"),
        (301, "5 min"),
        (3599, "59 min"),
        (7200, "2 h"),
        (11_100, "3 h 05 min"),
        (86_400, "1 d"),
        (187_200, "2 d 4 h"),
    ],
)
def test_a_time_is_written_as_exactly_as_it_matters(seconds, text):
    """Seconds below five minutes, minutes below a day; no unit of 0, and nothing negative."""
    assert format_duration(timedelta(seconds=seconds)) == format_duration(seconds) == text


@given(st.floats(0, 3_660 * 86_400))
def test_a_written_time_is_off_by_little(seconds):
    """By less than a fifth, so that nobody comes late by what was left out."""
    units_s = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
    words = iter(format_duration(seconds).split())
    told_s = sum(float(number) * units_s[unit] for number, unit in zip(words, words, strict=True))
    assert abs(told_s - seconds) <= max(0.5, seconds / 5)


def test_one_has_no_plural():
    """One device, two devices, no devices."""
    assert [plural(n, "device") for n in (0, 1, 2)] == ["0 devices", "1 device", "2 devices"]


@pytest.mark.parametrize(
    "text", ["11000d", "9" * 400, "1000000h", 1e300, inf, 10**30, timedelta.max]
)
def test_too_long_a_time_is_said_to_be_one(text):
    """Beyond ten years is above zero all the same."""
    with pytest.raises(BadRequest, match=r"is longer than ten years\. Write") as refused:
        parse_duration(text, field="time_limit")
    assert refused.value.field == "time_limit"


@pytest.mark.parametrize(
    ("number", "whole"), [(2, 2), (np.int64(2), 2), (True, None), (2.0, None), ("2", None)]
)
def test_whole_numbers_of_any_type_count(number, whole):
    """A bool counts nothing, and text is no number."""
    assert as_count(number) == whole


@given(st.text(), st.sampled_from([parse_bytes, parse_duration]))
def test_no_text_breaks_a_parser(text, parse):
    """Whatever is typed is read or refused: nothing else is ever raised."""
    try:
        assert parse(text)
    except BadRequest as refused:
        assert refused.hint  # noqa: PT017 - both outcomes are right, a third one is not


@given(st.integers(0, 2**60))
def test_a_written_size_has_no_exponent(size_bytes):
    """People read digits."""
    assert "e" not in format_bytes(size_bytes)


@pytest.mark.parametrize(
    ("size", "expected"), [(None, None), ("0.5", None), ("1.0", None), ("1", 1), ("2GiB", 2**31)]
)
def test_sizes_of_dask_cuda_are_bytes_or_fractions(size: str | None, expected: int | None) -> None:
    """A fraction is of a device, so it is no number of bytes."""
    assert absolute_bytes(size) == expected
