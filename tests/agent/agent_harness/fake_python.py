"""A program that answers as an environment's interpreter does, without seconds of imports."""

from pathlib import Path

_TEXT = """#!/bin/bash
if [ "$1" = -c ]; then
    echo '{"versions": {}, "problem": ""}'
    exit
fi
link=${@: -1}
printf '{"is": "Warm", "problem": "PROBLEM"}' >&$link
ticket=0
while [ -n "$(head -c 1 <&$link)" ]; do
    ticket=$((ticket + 1))
    true &
    wait $!
    printf '{"is": "Forked", "ticket": '$ticket', "pid": '$!'}' >&$link
    printf '{"is": "Exited", "pid": '$!', "status": 0}' >&$link
done
"""
"""Its zygote's children end at once."""


def fake_python(path: Path, *, problem: str = "") -> Path:
    """Make it; `problem` is what its zygote says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_TEXT.replace("PROBLEM", problem))
    path.chmod(0o755)
    return path
