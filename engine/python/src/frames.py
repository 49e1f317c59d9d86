# Shows data frames as tables of the window. Joined with `cells.py`, and with the setup of Jupyter kernels.

# Maximum values and columns of a data frame that are sent: more take seconds to write, and nobody reads them.
_TABLE_VALUES = 100_000
_TABLE_COLUMNS = 1_000
_TABLE_SAMPLE = 1_000
# A longer table (in characters) isn't sent: a kernel's messages are limited to 64 MiB.
_TABLE_LIMIT = 32 << 20


def _frame_table(value):
    """Returns a data frame's rows as CSV, their number, and the number of all its rows; None if it can't be a table.

    The CSV is shown in the window's table, and may hold only the first rows.
    """
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
