"""What programs ask of operators that leave something open: the same result in every run."""

from __future__ import annotations

import warnings

import rushlight._C as _C


class Determinism:
    """Whether deterministic algorithms were asked for, whether a warning is enough where there are none, and whether new memory
    is filled then. One for the process."""

    def __init__(self) -> None:
        self._asked = self.warns_only = False
        self.fills = True

    @property
    def asked(self) -> bool:
        """Whether deterministic algorithms were asked for."""
        return self._asked

    @asked.setter
    def asked(self, asked: bool) -> None:
        self._asked = asked
        _C.configure(fills_new=asked)

    def alert(self, name: str) -> None:
        """RuntimeError, or a warning, for an operator whose result is not determined."""
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
