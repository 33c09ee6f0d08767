"""Keeps secrets out of what the doctor says, whoever worded it. Pure."""

import re
from collections.abc import Mapping
from dataclasses import replace

from jupyter_gpupool.client.discovery import TOKEN

from .finding import Finding

_CONCEALED = "***"
_IN_URL = re.compile(r"(?<=//)[^/\s@]+@")
"""User and password in front of a host's name."""
_SHORTEST = 6
"""What is shorter is no secret, and might be part of any word."""


def conceal(found: Finding, environ: Mapping[str, str]) -> Finding:
    """The same without the token of the environment, and without passwords in URLs."""
    token = environ.get(TOKEN, "").strip()

    def plain(text: str) -> str:
        shown = text.replace(token, _CONCEALED) if len(token) >= _SHORTEST else text
        return _IN_URL.sub(f"{_CONCEALED}@", shown)

    return replace(found, what=plain(found.what), mend=plain(found.mend))
