# Data frames as tables of the window. Joined with `cells.py`, and with the setup of Jupyter kernels.

# A data frame is handed over with so many values and columns: more take seconds to write, and are no reading matter.
_TABLE_VALUES = 100_000
_TABLE_COLUMNS = 1_000
_TABLE_SAMPLE = 1_000
# A longer table (letters) isn't sent: no message of a kernel may be longer than 64 MiB.
_TABLE_LIMIT = 32 << 20


def _frame_table(value):
    """The rows of a data frame as CSV for the table of the window, how many these are, and how many it has; or None."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if kind.__name__ != "DataFrame" or library not in ("pandas", "polars"):
        return None
    rows, columns = value.shape
    if not rows or not 0 < columns <= _TABLE_COLUMNS or (library == "pandas" and value.columns.nlevels > 1):
        return None

    def written(count):
        return value.iloc[:count].to_csv() if library == "pandas" else value.head(count).write_csv()

    shown = min(rows, max(1, _TABLE_VALUES // (columns + 1)))
    sample = written(min(shown, _TABLE_SAMPLE))
    if len(sample) > _TABLE_LIMIT // 4:
        return None
    if shown > _TABLE_SAMPLE:
        shown = min(shown, _TABLE_SAMPLE * (_TABLE_LIMIT // 2) // len(sample))
        sample = written(shown)
    return (sample, shown, rows) if len(sample) <= _TABLE_LIMIT else None
