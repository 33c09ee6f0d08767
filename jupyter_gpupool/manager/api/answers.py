"""Models as HTTP answers, written by pydantic's own serialiser in one step.

The framework would build the JSON twice; routes declare the model for the documentation and
answer with these.
"""

from collections.abc import Sequence

from fastapi import Response
from pydantic import BaseModel

_MEDIA = "application/json"


def one(model: BaseModel, status: int = 200) -> Response:
    """One model."""
    return Response(model.model_dump_json(), status, media_type=_MEDIA)


def many(models: Sequence[BaseModel]) -> Response:
    """A list of models."""
    body = ",".join(model.model_dump_json() for model in models)
    return Response(f"[{body}]", media_type=_MEDIA)
