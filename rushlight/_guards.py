"""`torch._guards`: the names of captures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CompileId:
    """The number of a frame and of a capture of that frame, both from 0; prints as `frame/capture`."""

    frame_id: int | None
    frame_compile_id: int | None
    compiled_autograd_id: int | None = None

    def __str__(self) -> str:
        own = f"{self.frame_id}/{self.frame_compile_id}"
        if self.compiled_autograd_id is None:
            return own
        return f"!{self.compiled_autograd_id}" + ("" if self.frame_id is None else f"/{own}")
