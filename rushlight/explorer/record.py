"""`record`: a block of a program whose compilations and runs become a page."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from rushlight.explorer.page import check_built, write_page
from rushlight.explorer.recorder import Recorder


class record:  # noqa: N801  (a context manager, named like a function)
    """Context manager: writes the page `path` with all that is compiled and run in its block: compiled code of all threads,
    eager operators of the thread that enters it.

        with rushlight.explorer.record("page.html"):
            compiled(x)

    The page opens in any browser, without a network. What was compiled before and kept is compiled anew in the block, with
    programs that look at the clock after each kernel. `title` is the page's; the program's name by default. An error that ends
    the block goes through, and the page is written nevertheless. OSError if the page cannot be written,
    or a warning where the block raised.
    """

    def __init__(self, path: str | os.PathLike, title: str | None = None):
        self.path = Path(path).absolute()  # the block may change the folder
        self.title = title or Path(sys.argv[0] or "python").name

    def __enter__(self) -> record:
        check_built()
        self._process = os.getpid()
        self._recorder = Recorder()
        self._recorder.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._recorder.stop()
        if os.getpid() != self._process:  # a child that was forked in the block; its parent writes the page
            return
        failed = error is not None and not isinstance(error, SystemExit | GeneratorExit)
        said = "".join(traceback.format_exception(kind, error, trace)) if failed else None
        made = self._recorder.as_dict(self.title, " ".join([Path(sys.executable).name, *sys.argv]), error=said)
        try:
            write_page(self.path, [made])
        except OSError as failure:
            if error is None:
                raise
            warnings.warn(f"explorer: the page is not written: {failure}", stacklevel=2)  # the block's own error goes through
