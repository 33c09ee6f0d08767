"""What cannot be a request is a sentence, and shows no secret."""

from typing import Any

import pytest

from jupyter_gpupool.client.bodies import make
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.api import ClaimBody, ReleaseBody, ScaleBody, TokenBody, Workers
from jupyter_gpupool.protocol.bodies import Body


@pytest.mark.parametrize(
    ("body", "values", "field"),
    [
        (ReleaseBody, {"reason": "x" * 201}, "reason"),
        (ReleaseBody, {"reason": "\udcff"}, "reason"),
        (TokenBody, {"label": "x" * 201}, "label"),
        (TokenBody, {"user": "x" * 201}, "user"),
        (TokenBody, {"expires_in_s": 1e12}, "expires_in_s"),
        (TokenBody, {"king": True}, "king"),
        (Workers, {"min": -1, "max": 2}, "min"),
        (ScaleBody, {}, "workers"),
    ],
)
def test_wrong_value_is_one_short_line(body: type[Body], values: Any, field: str) -> None:
    """With the name of the term."""
    with pytest.raises(BadRequest) as refused:
        make(body, **values)
    assert refused.value.field == field
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "env", [[("KEY", "s3cret")], {"PIN": 53037}, {"KEY": ["s3cret"]}, "s3cret", {53037: "x"}]
)
def test_values_of_variables_are_never_shown(env: Any) -> None:
    """Neither in the sentence nor in what Python prints as its cause."""
    with pytest.raises(BadRequest) as refused:
        make(ClaimBody, workers=Workers(min=1, max=1), env=env)
    shown = f"{refused.value} {refused.value.__cause__}"
    assert refused.value.field.startswith("env")
    assert refused.value.__suppress_context__
    assert "s3cret" not in shown
