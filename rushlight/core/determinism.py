"""The settings of `torch.use_deterministic_algorithms`: operators must give the same result in every run."""

from __future__ import annotations

import warnings

import rushlight._C as _C


class Determinism:
    """Whether deterministic algorithms were requested, whether a warning is enough where there are none, and whether new memory
    is filled then. The settings hold for the whole process."""

    def __init__(self) -> None:
        self._asked = self.warns_only = False
        self.fills = True

    @property
    def asked(self) -> bool:
        """Return whether deterministic algorithms were requested."""
        return self._asked

    @asked.setter
    def asked(self, asked: bool) -> None:
        self._asked = asked
        _C.configure(fills_new=asked)

    def alert(self, name: str) -> None:
        """Raise RuntimeError, or warn, for an operator whose result is not deterministic."""
        if not self.asked:
            return
        if not self.warns_only:
            raise RuntimeError(
                f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. "
                "You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
                "acceptable for your application."
            )
        warnings.warn(
            f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True, "
            "warn_only=True)'.", UserWarning, stacklevel=3,
        )  # fmt: skip


DETERMINISM = Determinism()
