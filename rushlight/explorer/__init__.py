"""`rushlight.explorer`: one HTML page with everything that the compile stack did with a program.

    with rushlight.explorer.record("page.html"):
        compiled(x)
"""

from rushlight.explorer.record import record

__all__ = ["record"]
