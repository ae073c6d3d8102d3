"""Options: all that a compilation depends on besides the graph."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """Options of a compilation. `threads` is the number of threads, None if each call chooses it. `debug` builds for a
    debugger. `autotune` times several ways to run a template. `timed` reads the clock after each kernel. `target` is "cpp",
    "triton-interpreter" (Triton kernels, interpreted on the CPU), "triton-sanitizer" (the same, with a check of each memory
    access) or "triton-text" (Triton kernels that are only written); `precision` is how Triton kernels multiply float32
    matrices: "ieee" or "tf32". `graphs` captures calls on a GPU as CUDA graphs."""

    threads: int | None
    debug: bool = False
    autotune: bool = False
    timed: bool = False
    target: str = "cpp"
    precision: str = "ieee"
    graphs: bool = False
