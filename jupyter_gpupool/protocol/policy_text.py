"""Reads a policy's text as TOML, in time that grows no faster than the text.

Called by `policy` and `policy_diff`. Python's parser takes quadratic time over the parts of one
dotted key: a line of 100 kB would keep a manager busy for minutes, and gigabytes of its memory.
"""

import tomllib
from typing import Any, Final

from jupyter_gpupool.pool.errors import BadRequest

MOST_DOTS: Final = 64
"""In one line that is no comment: more than any key, number or name of a policy needs."""


def read_toml(text: str) -> dict[str, Any]:
    """Read it.

    Raises:
        BadRequest: If it is no TOML, or has a line that only a mistake can have.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MOST_DOTS and not line.lstrip().startswith("#"):
            raise BadRequest(
                f"The policy cannot be read: line {number} has more than {MOST_DOTS} dots.",
                hint="Write tables instead of keys with so many parts.",
            )
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # The parser lets through what Python says of numbers too long and tables too deep.
        raise BadRequest(f"The policy is no TOML: {error}.") from error
