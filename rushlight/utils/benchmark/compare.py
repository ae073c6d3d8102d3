"""`Compare`: measurements as a table, a row for each sub-label and a column for each description."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable

from rushlight.utils.benchmark.measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_GOOD, _FAIR, _POOR, _END = "\033[92m", "", "\033[31m", "\033[0m"


class Colorize(enum.Enum):
    """The scope of colouring: the best time is highlighted per column or row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements, one per label, with rows grouped by number of threads."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trimmed = False
        self._colorize = Colorize.NONE
        self._highlight = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements. ValueError for anything else."""
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
            self._results.append(each)

    def trim_significant_figures(self) -> None:
        """Show only significant digits."""
        self._trimmed = True

    def colorize(self, rowwise: bool = False) -> None:
        """Show the best times of each column, or row, in green, and those that take twice as long or more in red."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times with too much spread."""
        self._highlight = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(each.label for each in merged)
        return "\n".join(self._table(label, [each for each in merged if each.label == label]) for label in labels)

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(each.median for each in results))
        columns = ordered_unique(each.description or "" for each in results)
        rows = ordered_unique((each.num_threads, each.env, each.as_row_name) for each in results)
        found = {((each.num_threads, each.env, each.as_row_name), each.description or ""): each for each in results}
        several = len({each.env for each in results}) > 1
        names = [f"{f'({env})  ' if several else ''}{name}" for _, env, name in rows]
        texts = {key: self._text(each, scale) for key, each in found.items()}
        first = max(len(name) for name in names) + 6
        widths = [max(len(column), *(len(texts.get((row, column), "")) for row in rows)) for column in columns]
        total = first + sum(width + 5 for width in widths)
        title = f" {label or '-'} "
        lines = [f"[{title.center(total - 2, '-')}]"]
        lines.append(" " * first + "".join(f"  |  {column:^{width}}" for column, width in zip(columns, widths, strict=True)))
        for threads, group in itertools.groupby(zip(rows, names, strict=True), key=lambda each: each[0][0]):
            lines.append(f"{threads} threads: ".ljust(total, "-"))
            for row, name in group:
                cells = (
                    f"  |  {self._colour_by_ratio(texts.get((row, column), '').rjust(width), found, row, column)}"
                    for column, width in zip(columns, widths, strict=True)
                )
                lines.append(f"      {name}".ljust(first) + "".join(cells))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._highlight and any(each.has_warnings for each in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(lines) + "\n"

    def _text(self, measurement: Measurement, scale: float) -> str:
        digits = measurement.significant_figures
        time = measurement.median / scale
        shown = f"{trim_sigfig(time, digits):.0f}" if self._trimmed and time >= 10 ** (digits - 1) else f"{time:.1f}"
        if self._highlight and measurement.has_warnings:
            shown += f" (! {100 * measurement.iqr / measurement.median:.0f}%)"
        return shown

    def _colour_by_ratio(self, text: str, found: dict[tuple, Measurement], row: tuple, column: str) -> str:
        if self._colorize is Colorize.NONE or (row, column) not in found:
            return text
        place = 0 if self._colorize is Colorize.ROWWISE else 1
        beside = [each.median for key, each in found.items() if key[place] == (row, column)[place]]
        ratio = found[row, column].median / min(beside)
        colour = _GOOD if ratio < 1.1 else _FAIR if ratio < 2 else _POOR
        return f"{colour}{text}{_END}" if colour else text
