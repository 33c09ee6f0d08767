"""What a command of `%gpupool` answers. Made by `commands`, shown or returned by `calling`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command has to say.

    Attributes:
        value: What `x = %gpupool …` gets.
        said: Printed in any case, for it tells of an effect; "" is nothing.
        shows: Whether the value is displayed as well where nobody takes it.
    """

    value: object
    said: str = ""
    shows: bool = True
