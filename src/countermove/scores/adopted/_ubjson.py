"""Universal binary JSON, as XGBoost writes it: types are one letter, arrays may be typed."""

from __future__ import annotations

import struct
from typing import Any

_NUMBERS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}


def read_ubjson(content: bytes) -> Any:
    """Return the value a document holds."""
    return _Reader(content).value()


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def letter(self) -> str:
        found = chr(self.content[self.at])
        self.at += 1
        return found

    def number(self, kind: str) -> Any:
        size = struct.calcsize(_NUMBERS[kind])
        (found,) = struct.unpack_from(_NUMBERS[kind], self.content, self.at)
        self.at += size
        return found

    def text(self) -> str:
        size = int(self.number(self.letter()))
        found = self.content[self.at : self.at + size].decode()
        self.at += size
        return found

    def value(self, kind: str | None = None) -> Any:
        kind = self.letter() if kind is None else kind
        if kind in _NUMBERS:
            return self.number(kind)
        if kind == "S":
            return self.text()
        if kind in "TF":
            return kind == "T"
        if kind == "Z":
            return None
        if kind == "C":
            return self.letter()
        if kind == "[":
            return self.array()
        if kind == "{":
            return self.mapping()
        raise ValueError(f"no UBJSON type {kind!r} at byte {self.at - 1}")

    def header(self) -> tuple[str | None, int | None]:
        """Return the type and count of what follows, where they are given."""
        kind = count = None
        if chr(self.content[self.at]) == "$":
            self.at += 1
            kind = self.letter()
        if chr(self.content[self.at]) == "#":
            self.at += 1
            count = int(self.number(self.letter()))
        return kind, count

    def array(self) -> list[Any]:
        kind, count = self.header()
        if count is not None:
            return [self.value(kind) for _ in range(count)]
        found = []
        while chr(self.content[self.at]) != "]":
            found.append(self.value())
        self.at += 1
        return found

    def mapping(self) -> dict[str, Any]:
        kind, count = self.header()
        if count is not None:
            return {self.text(): self.value(kind) for _ in range(count)}
        found = {}
        while chr(self.content[self.at]) != "}":
            key = self.text()
            found[key] = self.value()
        self.at += 1
        return found
