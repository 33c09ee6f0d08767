"""Sets of small numbers as the bits of one whole number: what placement counts with."""

from collections.abc import Iterator


def bits(number: int) -> Iterator[int]:
    """Positions of the bits that are set, lowest first."""
    while number:
        lowest_bit = number & -number
        yield lowest_bit.bit_length() - 1
        number ^= lowest_bit


def lowest(number: int) -> int:
    """Position of the lowest bit that is set.

    Raises:
        ValueError: If none is.
    """
    if not number:
        raise ValueError("no bit is set")
    return (number & -number).bit_length() - 1


def first(number: int, count: int) -> int:
    """The lowest `count` of the bits that are set, or all of them if there are fewer."""
    chosen = 0
    for _ in range(count):
        lowest_bit = number & -number
        chosen |= lowest_bit
        number ^= lowest_bit
    return chosen
