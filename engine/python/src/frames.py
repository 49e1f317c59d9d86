# Shows data frames as tables of the window. Joined with `cells.py`, and with the setup of Jupyter kernels.

# The types of data frames by their library.
_FRAME_TYPES = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
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


def _frame_library(value):
    """Returns the library whose data frame this is: "pandas", "polars" or "pyarrow"; else None."""
    # Subclasses count, such as GeoPandas' frames.
    for kind in type(value).__mro__:
        library = kind.__module__.partition(".")[0]
        if kind.__name__ in _FRAME_TYPES.get(library, ()):
            return library
    return None


def _frame_table(value):
    """Returns a data frame's rows as CSV, their number, and the number of all its rows; None if it can't be a table.

    The CSV is shown in the window's table, and may hold only the first rows.
    """
    if _frame_library(value) is None:
        return None
    rows, columns = value.shape
    if not rows or not 0 < columns <= _TABLE_COLUMNS:
        return None

    def written(count):
        return _frame_csv(value, 0, count)

    shown = min(rows, max(1, _TABLE_VALUES // (columns + 1)))
    first = min(shown, _TABLE_SAMPLE)
    sample = written(first)
    while len(sample) > _TABLE_LIMIT // 4 and first > 1:
        # Long texts or lists: fewer rows are better than none.
        first = shown = max(1, first // 8)
        sample = written(first)
    if len(sample) > _TABLE_LIMIT // 4:
        return None
    if shown > first:
        shown = min(shown, first * (_TABLE_LIMIT // 2) // len(sample))
        sample = written(shown)
    return (sample, shown, rows) if len(sample) <= _TABLE_LIMIT else None


def _frame_csv(value, first, count):
    """Returns rows of a data frame as CSV, with the names of its columns before the first row."""
    library = _frame_library(value)
    if library == "polars":
        return _polars_csv(value.slice(first, count), first == 0)
    if library == "pyarrow":
        return _arrow_csv(value.slice(first, count), first == 0)
    part = value.iloc[first : first + count]
    if part.columns.nlevels > 1:
        # A table has one row of names. `mean` of `price` becomes `price_mean`.
        names = ["_".join(str(level) for level in column if str(level)) for column in part.columns]
        part = part.set_axis(names, axis=1)
    return part.to_csv(header=first == 0)


def _polars_csv(part, has_names):
    import polars

    # polars writes no CSV of these types.
    changed = []
    for column in part.get_columns():
        kind = str(column.dtype).partition("(")[0]
        if kind == "Duration":
            counts, unit = column.to_physical().to_list(), column.dtype.time_unit
            changed.append(polars.Series(column.name, _duration_texts(counts, unit)))
        elif kind in ("List", "Array", "Struct", "Binary", "Object"):
            changed.append(polars.Series(column.name, [_cell_text(cell) for cell in column.to_list()]))
    if changed:
        part = part.with_columns(changed)
    return part.write_csv(**({} if has_names else {"include_header": False}))


def _arrow_csv(part, has_names):
    import io

    import pyarrow
    import pyarrow.csv

    columns = []
    for at in range(part.num_columns):
        column = part.column(at)
        if pyarrow.types.is_duration(column.type):
            counts = column.cast(pyarrow.int64()).to_pylist()
            column = pyarrow.array(_duration_texts(counts, column.type.unit), pyarrow.string())
        elif not _arrow_writes(pyarrow.types, column.type):
            column = pyarrow.array([_cell_text(cell) for cell in column.to_pylist()], pyarrow.string())
        columns.append(column)
    names = [field.name for field in part.schema]
    text = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=has_names)
    pyarrow.csv.write_csv(pyarrow.Table.from_arrays(columns, names=names), text, options)
    return text.getvalue().decode("utf-8")


def _arrow_writes(types, kind):
    """Returns whether pyarrow writes CSV of a type as people read it."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    written = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string,
               types.is_date, types.is_time, types.is_timestamp, types.is_decimal, types.is_null)
    return any(is_type(kind) for is_type in written) and not types.is_float16(kind)


def _cell_text(cell):
    """Returns a value that CSV can't hold as text: lists and structures as JSON."""
    if cell is None:
        return None
    if isinstance(cell, (list, tuple, dict)):
        import json

        return json.dumps(cell, default=str, ensure_ascii=False)
    return str(cell)


def _duration_texts(counts, unit):
    """Returns lengths of time as pandas writes them. `counts` are numbers of `unit`, None where there's none."""
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]

    def text(count):
        days, rest = divmod(count, 86_400 * 10**digits)
        seconds, rest = divmod(rest, 10**digits)
        sign = "+" if days < 0 else ""
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"{days} days {sign}{clock}" + (f".{rest:0{digits}}" if rest else "")

    return [None if count is None else text(count) for count in counts]


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
    if count > _TABLE_SAMPLE:
        # All rows of a frame with long texts may not fit into memory.
        sample = len(_frame_csv(value, first, _TABLE_SAMPLE))
        count = max(1, min(count, _TABLE_SAMPLE * _PIECE_LIMIT // sample))
    while count:
        text = _frame_csv(value, first, count)
        if len(text) <= _PIECE_LIMIT:
            return {"csv": text, "rows": count}
        count //= 2
    return None
