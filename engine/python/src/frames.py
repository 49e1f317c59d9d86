# Shows data frames as tables of the window. Joined with `cells.py`, and with the setup of Jupyter kernels.

# Maximum values and columns of a data frame that are sent: more take seconds to write, and nobody reads them.
_TABLE_VALUES = 100_000
_TABLE_COLUMNS = 1_000
_TABLE_SAMPLE = 1_000
# A longer table (in characters) isn't sent: a kernel's messages are limited to 64 MiB.
_TABLE_LIMIT = 32 << 20
# Values and characters of a piece when the window asks for all rows: writing one must not delay the next cell long.
_PIECE_VALUES = 250_000
_PIECE_LIMIT = 4 << 20
# Data frames of which only the first rows were sent, by their IDs, each with its shape. A frame isn't kept alive.
_cut_frames = {}
_CUT_FRAMES_LIMIT = 100


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
        return _frame_csv(value, 0, count)

    shown = min(rows, max(1, _TABLE_VALUES // (columns + 1)))
    sample = written(min(shown, _TABLE_SAMPLE))
    if len(sample) > _TABLE_LIMIT // 4:
        return None
    if shown > _TABLE_SAMPLE:
        shown = min(shown, _TABLE_SAMPLE * (_TABLE_LIMIT // 2) // len(sample))
        sample = written(shown)
    return (sample, shown, rows) if len(sample) <= _TABLE_LIMIT else None


def _frame_csv(value, first, count):
    """Returns rows of a data frame as CSV, with the names of its columns before the first row."""
    if type(value).__module__.partition(".")[0] == "pandas":
        return value.iloc[first : first + count].to_csv(header=first == 0)
    options = {"include_header": False} if first else {}
    return value.slice(first, count).write_csv(**options)


def _cut_metadata(value, shown, rows):
    """Returns the metadata of a data frame's CSV with its first rows: their number, that of all, and the frame's ID."""
    if shown >= rows:
        return {}
    import os
    import weakref

    about = {"rows": shown, "all_rows": rows}
    try:
        reference = weakref.ref(value)
    except TypeError:
        return {"text/csv": about}
    # Random, so that another kernel or an earlier state of this one doesn't take one frame for the other. Comparing two
    # runs leaves out what is written like an address.
    about["frame"] = "0x" + os.urandom(8).hex()
    _cut_frames[about["frame"]] = reference, tuple(value.shape)
    while len(_cut_frames) > _CUT_FRAMES_LIMIT:
        _cut_frames.pop(next(iter(_cut_frames)))
    return {"text/csv": about}


def _frame_rows(frame_id, first):
    """Returns a piece of a data frame from row `first` on, as CSV with its number of rows.

    None if the frame is gone or has another shape now, or if a row is too long.
    """
    reference, shape = _cut_frames.get(frame_id, (None, None))
    value = None if reference is None else reference()
    if value is None or tuple(value.shape) != shape or not 0 <= first < shape[0]:
        return None
    count = min(shape[0] - first, max(1, _PIECE_VALUES // (shape[1] + 1)))
    while count:
        text = _frame_csv(value, first, count)
        if len(text) <= _PIECE_LIMIT:
            return {"csv": text, "rows": count}
        count //= 2
    return None
