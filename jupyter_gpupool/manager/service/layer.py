"""A mapping with changes laid over it, so that a command's changes can be kept or dropped whole."""

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Layer(Generic[K, V]):
    """Reads fall through to what lies below; writes stay here. None marks what was removed."""

    def __init__(self, below: "dict[K, V] | Layer[K, V]") -> None:
        self._below = below
        self.changed: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """The value, or None if there is none."""
        return self.changed[key] if key in self.changed else self._below.get(key)

    def __getitem__(self, key: K) -> V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]  # what is no key is not there

    def __setitem__(self, key: K, value: V) -> None:
        self.changed[key] = value

    def __delitem__(self, key: K) -> None:
        self.changed[key] = None

    def items(self) -> Iterator[tuple[K, V]]:
        """All pairs: first what lies below and was not changed, then what was."""
        for key, value in self._below.items():
            if key not in self.changed:
                yield key, value
        for key, changed in self.changed.items():
            if changed is not None:
                yield key, changed

    def values(self) -> Iterator[V]:
        """All values."""
        return (value for _, value in self.items())

    def merge_down(self) -> None:
        """Write the changes into what lies below."""
        for key, value in self.changed.items():
            _write(self._below, key, value)


def _write(below: "dict[K, V] | Layer[K, V]", key: K, value: V | None) -> None:
    if value is not None:
        below[key] = value
    elif isinstance(below, Layer):
        del below[key]
    else:
        below.pop(key, None)
