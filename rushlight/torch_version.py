"""`torch.torch_version`: a version that is text and compares as a version."""

from __future__ import annotations

import re


class TorchVersion(str):
    """A version, such as "2.13.0": a string that compares with versions by their numbers, given as text or as tuples.

    As PEP 440 has it, a pre-release (`a`, `b`, `rc`, `dev`) comes before its release, and a local version (`+cpu`) after.
    """

    def _key(self, other: object) -> tuple:
        if isinstance(other, str):
            return _parse(other)
        if isinstance(other, (tuple, list)):
            return _parse(".".join(map(str, other)))
        raise TypeError(f"a version compares with text or a tuple of numbers, not {type(other).__name__}")

    def _compare(self, other: object) -> int | None:
        try:
            mine, its = _parse(str(self)), self._key(other)
        except (TypeError, ValueError):
            return None
        return (mine > its) - (mine < its)

    def __lt__(self, other):
        found = self._compare(other)
        return str.__lt__(self, other) if found is None else found < 0

    def __le__(self, other):
        found = self._compare(other)
        return str.__le__(self, other) if found is None else found <= 0

    def __gt__(self, other):
        found = self._compare(other)
        return str.__gt__(self, other) if found is None else found > 0

    def __ge__(self, other):
        found = self._compare(other)
        return str.__ge__(self, other) if found is None else found >= 0

    def __eq__(self, other):
        found = self._compare(other)
        return str.__eq__(self, other) if found is None else found == 0

    __hash__ = str.__hash__


def _parse(text: str) -> tuple:
    """Return a key that orders versions. ValueError: the text does not begin with a number."""
    found = re.match(r"v?(\d+(?:\.\d+)*)(?:[-_.]?(dev|a|alpha|b|beta|rc|c|pre)(\d*))?(?:.*?\+(.*))?", text)
    if found is None:
        raise ValueError(f"{text!r} is no version")
    numbers = [int(each) for each in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    rank = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, "rc": 3, "c": 3, "pre": 3}.get(found[2] or "", 4)
    return tuple(numbers), rank, int(found[3] or 0), found[4] or ""
