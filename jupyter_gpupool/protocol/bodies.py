"""What every body of the HTTP API has in common: strict when sent, tolerant when shown.

Base of `api` and `using`.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from jupyter_gpupool.pool.request import check_text

PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""What lands on an admin's terminal must not be able to drive it."""
Words = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]
"""A short text of one line."""


class Body(BaseModel):
    """Base of what clients send: a misspelt term is refused, not ignored, and so is broken text.

    Raises:
        BadRequest: On building one, if a text in it cannot be stored; `field` names it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _check_text(cls, value: object, info: ValidationInfo) -> object:
        check_text(value, info.field_name or "")
        return value


class View(BaseModel):
    """Base of what clients are shown: tolerant of fields a newer manager adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")
