"""Displays for cells beyond plain values: tables and progress bars.

Frozen into the kernel as `_tracebook_displays` and imported when a cell first uses it.
"""

import time

import _tracebook
import _tracebook_kernel as kernel

_PROGRESS = "application/vnd.tracebook.progress+json"
_TABLE = "text/csv"

# Maximum rows, and characters of a cell, in a table's plain text.
_ROWS = 20
_LETTERS = 40

_numbers = 0


class Table:
    """Rows under named columns, shown as a table that can be sorted and filtered."""

    def __init__(self, rows, columns=None):
        self.columns, self.rows = _columns(rows, columns)

    def __len__(self):
        return len(self.rows)

    def __repr__(self):
        head = [self.columns, *([_word(cell) for cell in row] for row in self.rows[:_ROWS])]
        wide = [max(len(row[place]) for row in head) for place in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(wide[place]) for place, cell in enumerate(row)).rstrip() for row in head]
        left = len(self.rows) - _ROWS
        if left > 0:
            lines.append(f"... {left} more rows")
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None):
        import csv
        import io

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return {_TABLE: text.getvalue(), "text/plain": repr(self)}, {}


def _word(cell):
    if cell is None:
        return ""
    text = " ".join(str(cell).split())
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"


def _columns(rows, columns):
    """Returns the names of the columns, and the rows as sequences of equal length."""
    named = columns is not None
    if hasattr(rows, "description") and not named and rows.description:
        # A database cursor.
        columns, named = [column[0] for column in rows.description], True
    if isinstance(rows, dict):
        # A dictionary of columns.
        names = list(rows) if columns is None else list(columns)
        lists = [list(rows[name]) for name in names]
        if len({len(values) for values in lists}) > 1:
            raise ValueError("the columns of a table must be equally long")
        return [str(name) for name in names], list(zip(*lists))
    if hasattr(rows, "tolist"):
        rows = rows.tolist()
    rows = list(rows)
    if rows and all(isinstance(row, dict) for row in rows):
        names = list(columns) if named else list(dict.fromkeys(name for row in rows for name in row))
        return [str(name) for name in names], [[row.get(name) for name in names] for row in rows]
    if not named and rows and all(hasattr(row, "_fields") for row in rows):
        columns, named = list(rows[0]._fields), True
    rows = [row if isinstance(row, (list, tuple)) else (row,) for row in rows]
    wide = max(map(len, rows), default=0)
    names = [str(name) for name in columns] if named else [str(place) for place in range(wide)]
    if wide > len(names):
        raise ValueError(f"a row has {wide} cells, and there are {len(names)} columns")
    return names, rows


class Progress:
    """A progress bar: iterate over it, or call `update` as the work advances."""

    _PAUSE = 0.1

    def __init__(self, over=None, total=None, title=""):
        global _numbers
        _numbers += 1
        if total is None and over is not None:
            try:
                total = len(over)
            except TypeError:
                pass
        self.over, self.total, self.title = over, total, str(title)
        self.done = 0
        self._name = f"progress-{_numbers}-{time.time_ns()}"
        self._begun = time.monotonic()
        self._shown = 0.0
        self._show(False)

    def __iter__(self):
        for item in self.over:
            yield item
            self.update()
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def update(self, by=1):
        """Advance by this many steps."""
        self.done += by
        if time.monotonic() - self._shown >= self._PAUSE or self.done == self.total:
            self._show(True)

    def close(self):
        """Finish, and show the final state."""
        if self.total is None:
            self.total = self.done
        self._show(True)

    def _words(self):
        seconds = time.monotonic() - self._begun
        words = [self.title] if self.title else []
        if self.total:
            words += [f"{100 * self.done / self.total:.0f} %", f"{self.done} of {self.total}"]
            if 0 < self.done < self.total and seconds > 1:
                words.append(f"{_span(seconds * (self.total - self.done) / self.done)} left")
        else:
            words.append(str(self.done))
        if seconds >= 1:
            words.append(_span(seconds))
        return " · ".join(words)

    def _show(self, again):
        self._shown = time.monotonic()
        words = self._words()
        data = {"done": self.done, "total": self.total, "title": self.title, "words": words}
        kernel.display({_PROGRESS: _tracebook._json(data), "text/plain": words}, "{}", self._name, again)


def _span(seconds):
    seconds = round(seconds)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"
