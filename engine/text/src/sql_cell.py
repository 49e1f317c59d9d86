"""Runs a note's SQL cells with Python's own sqlite3: in any kernel that runs Python, from 3.9 on.

`sql_cell.rs` sends this file with the first SQL cell and calls `run`. SQLite itself reports which table a query misses;
it's then loaded from a variable with that name, from a file beside the note, or from the rows of a collection that came
with the query. Files are only read.
"""

import os
import sqlite3

# Maximum rows of a result, and bytes of a file that is read into a table.
_ROWS_LIMIT = 1_000_000
_FILE_LIMIT = 256 << 20
# Maximum tables that one query loads, and columns of one of them.
_TABLES_LIMIT = 64
_COLUMNS_LIMIT = 2_000
# Maximum characters of a value that is written as text.
_TEXT_LIMIT = 1 << 20
# SQLite steps between two checks for whether the cell was stopped.
_STEPS = 10_000
# Rows that are fetched, and inserted, at once.
_CHUNK = 10_000
# Maximum rows of a result, and characters of a value, in its plain text.
_ROWS_SHOWN = 20
_LETTERS_SHOWN = 40
_DATABASES = ("", ".db", ".sqlite", ".sqlite3")


class SqlError(Exception):
    """An error in a query, or in the data that it reads."""


class SqlRows(list):
    """The rows of a result as dictionaries, shown as a table."""

    def __init__(self, columns, rows):
        super().__init__(dict(zip(columns, row)) for row in rows)
        self.columns = list(columns)

    def _repr_mimebundle_(self, include=None, exclude=None):
        import csv
        import io

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(row.values() for row in self)
        return {"text/csv": text.getvalue(), "text/plain": self._plain()}, {}

    def _plain(self):
        """Returns the first rows as text, for displays without tables."""
        head = [self.columns, *([_shown(cell) for cell in row.values()] for row in self[:_ROWS_SHOWN])]
        wide = [max(len(row[place]) for row in head) for place in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(wide[place]) for place, cell in enumerate(row)).rstrip() for row in head]
        left = len(self) - _ROWS_SHOWN
        return "\n".join(lines + ([f"... {left} more rows"] if left > 0 else []))


def _shown(cell):
    text = "" if cell is None else " ".join(str(cell).split())
    return text if len(text) <= _LETTERS_SHOWN else text[: _LETTERS_SHOWN - 3] + "..."


def run(namespace, query, collections="{}"):
    """Returns the result of a query over a namespace's variables, files, and collections, which are given as JSON.

    The result is a pandas frame, or rows without pandas.
    """
    import json

    stopped = []
    collections = json.loads(collections)

    def look():
        # Python raises a pending interrupt here; SQLite wouldn't in a long query.
        try:
            return len(stopped)
        except KeyboardInterrupt:
            stopped.append(True)
            return 1

    base = sqlite3.connect("file::memory:", uri=True)
    try:
        base.set_progress_handler(look, _STEPS)
        for _ in range(_TABLES_LIMIT + 1):
            base.set_authorizer(_allows)
            try:
                found = base.execute(query)
                columns = _apart([column[0] for column in found.description or ()])
                rows, left = _fetched(found)
                break
            except sqlite3.Warning as error:
                raise SqlError(f"a cell holds one query ({error})") from None
            except sqlite3.Error as error:
                # Only the handler above interrupts.
                if stopped or str(error) == "interrupted":
                    raise KeyboardInterrupt from None
                missing = _missing(str(error))
                if missing is None:
                    raise SqlError(_words(error)) from None
            # The authorizer denies what loading needs. The query has ended, so none of its callbacks can load tables.
            base.set_authorizer(None)
            _load(base, missing, namespace, collections)
        else:
            raise SqlError(f"the query needs more than {_TABLES_LIMIT} tables")
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None
    finally:
        base.set_progress_handler(None, 0)
        base.close()
    if left:
        import sys

        print(f"the first {_ROWS_LIMIT:,} rows; add LIMIT to the query to see fewer", file=sys.stderr)
    try:
        import pandas
    except ImportError:
        return SqlRows(columns, rows)
    return pandas.DataFrame.from_records(rows, columns=columns)


def _allows(action, *details):
    """Authorizes queries only: a cell's text can't create, change or attach anything."""
    reads = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reads else sqlite3.SQLITE_DENY


def _words(error):
    said = str(error)
    if any(words in said for words in ("not authorized", "authorization denied", "prohibited")):
        return "a SQL cell only reads: begin it with SELECT, WITH or VALUES"
    return said


def _missing(said):
    for beginning in ("no such table: ", "unknown database ", "unknown database: "):
        if said.startswith(beginning):
            return said[len(beginning):]
    return None


def _fetched(found):
    rows = []
    while len(rows) <= _ROWS_LIMIT:
        more = found.fetchmany(_CHUNK)
        if not more:
            return rows, False
        rows += more
    return rows[:_ROWS_LIMIT], True


def _apart(names):
    """Returns the column names, changed where necessary to be unique in SQLite, which ignores case."""
    kept, seen = [], set()
    for place, name in enumerate(names):
        name = str(name) or f"column{place + 1}"
        again, number = name, 1
        while again.lower() in seen:
            number += 1
            again = f"{name}_{number}"
        seen.add(again.lower())
        kept.append(again)
    return kept


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


def _load(base, name, namespace, collections):
    """Creates the table that a query misses."""
    if base.execute("SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE", (name,)).fetchone():
        raise SqlError(f"write {name} in quotes, because of the dot in it")
    if name in collections:
        return _insert(base, name, *_collection_table(name, collections[name]))
    known = namespace.get(name)
    if known is not None and not name.startswith("__"):
        made = _variable_table(name, known)
        if made is None:
            raise SqlError(f"{name} isn't a table but of type {type(known).__name__}: use a data frame or a list of dictionaries")
        return _insert(base, name, *made)
    ending = name.lower().rpartition(".")[2]
    if ending in ("csv", "tsv"):
        return _insert(base, name, *_csv_table(_checked(name), ending))
    if ending in ("parquet", "pq"):
        return _insert(base, name, *_variable_table(name, _parquet_frame(_checked(name))))
    schema, point, table = name.rpartition(".")
    if point:
        for more in _DATABASES:
            if os.path.isfile(schema + more):
                return _attach(base, schema, schema + more, table)
    if ending.partition("#")[0] == "base":
        raise SqlError(f"{name} can't be read: write collections' names in quotes behind FROM, and run it in Tracebook")
    tables = sorted(key for key, value in namespace.items() if not key.startswith("_") and _looks_tabular(value))
    told = f"; there are {', '.join(tables[:20])}" if tables else ""
    raise SqlError(f"no table {name}: no variable of the kernel and no file beside the note has this name{told}")


def _collection_table(name, table):
    """Returns the column names and rows of a collection's view, which Tracebook has evaluated."""
    if "error" in table:
        raise SqlError(f"{name}: {table['error']}")
    if table["problems"]:
        import sys

        print(*(f"{name}: {problem}" for problem in table["problems"]), sep="\n", file=sys.stderr)
    return table["columns"], table["rows"]


def _parquet_frame(path):
    """Returns a Parquet file as a frame of whatever package can read it here."""
    import sys

    try:
        for package in ("pyarrow", "polars", "pandas"):
            try:
                if package == "pyarrow":
                    import pyarrow.parquet

                    # Not read_table, which would add columns for names of folders.
                    with pyarrow.parquet.ParquetFile(path) as file:
                        return file.read()
                return __import__(package).read_parquet(path)
            except ImportError:
                continue
    except Exception as error:
        raise SqlError(f"{path} can't be read as Parquet: {error}") from None
    if sys.implementation.name == "rustpython":
        here = "the built-in Python"
    else:
        here = "Science" if sys.platform == "wasi" else "this Python, which has neither pyarrow nor polars,"
    # The window offers the package of this command below the cell.
    advice = "make an environment that can: `tracebook kernels env NOTE --add pyarrow`"
    if "ipykernel" in sys.modules:
        # Its packages are the user's own.
        advice = f"install pyarrow in it, or {advice}"
    else:
        advice += ", or choose a Jupyter kernel that has pyarrow"
    raise SqlError(f"{path}: {here} can't read Parquet; {advice}")


def _checked(path):
    try:
        size = os.path.getsize(path)
    except OSError as error:
        raise SqlError(f"{path} can't be read: {error.strerror or error}") from None
    if size > _FILE_LIMIT:
        raise SqlError(f"{path} is larger than {_FILE_LIMIT >> 20} MB; read a part of it with Python")
    return path


def _attach(base, schema, path, table):
    from urllib.parse import quote

    if any(row[1] == schema for row in base.execute("PRAGMA database_list")):
        raise SqlError(f"{path} has no table {table}")
    place = quote(os.path.abspath(path))
    last = None
    # A database that another program left with a log beside it can't be read in a folder without write access.
    for how in ("mode=ro", "mode=ro&immutable=1"):
        try:
            base.execute(f"ATTACH ? AS {_quoted(schema)}", (f"file:{place}?{how}",))
        except sqlite3.Error as error:
            last = error
            continue
        try:
            base.execute(f"SELECT count(*) FROM {_quoted(schema)}.sqlite_master").fetchone()
            return
        except sqlite3.Error as error:
            last = error
            base.execute(f"DETACH {_quoted(schema)}")
    raise SqlError(f"{path} can't be read as a SQLite database: {last}")


def _looks_tabular(value):
    if type(value).__name__ in ("DataFrame", "LazyFrame", "Series", "Table"):
        return hasattr(value, "columns") or hasattr(value, "column_names") or hasattr(value, "to_frame")
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _variable_table(name, value):
    """Returns a variable's column names and rows, or None if it isn't a table."""
    if hasattr(value, "collect") and type(value).__name__ == "LazyFrame":
        value = value.collect()
    if hasattr(value, "to_frame") and type(value).__name__ == "Series":
        value = value.to_frame()
    if hasattr(value, "itertuples") and hasattr(value, "index"):
        # A pandas frame. Its index becomes a column if it's informative.
        index = value.index
        if getattr(index, "names", [None]) != [None] or type(index).__name__ != "RangeIndex":
            value = value.reset_index()
        return list(value.columns), value.itertuples(index=False, name=None)
    if hasattr(value, "iter_rows") and hasattr(value, "columns"):
        return list(value.columns), value.iter_rows()
    if hasattr(value, "to_pylist") and hasattr(value, "column_names"):
        return list(value.column_names), zip(*(_arrow_values(column) for column in value.columns))
    if isinstance(value, dict) and value and all(isinstance(column, (list, tuple)) for column in value.values()):
        if len({len(column) for column in value.values()}) > 1:
            raise SqlError(f"the columns of {name} must be equally long")
        return list(value), zip(*value.values())
    if isinstance(value, (list, tuple)):
        if isinstance(value, SqlRows):
            names = value.columns
        elif value and all(isinstance(row, dict) for row in value):
            names = list(dict.fromkeys(key for row in value for key in row))
        elif value and all(hasattr(row, "_fields") for row in value):
            return list(value[0]._fields), value
        else:
            return None
        return names, ([row.get(key) for key in names] for row in value)
    return None


def _arrow_values(column):
    try:
        return column.to_pylist()
    except ValueError:
        # Without pandas, Python has no dates with nanoseconds. Its own would lose them.
        return [cell and cell.replace(" ", "T") for cell in column.cast("string").to_pylist()]


def _csv_table(path, ending):
    import csv
    import itertools

    # Read behind the file. Inside a quote that is never closed it would be part of a cell.
    last = 'end"of file'
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = []
        try:
            head = file.readline(65_536)
            file.seek(0)
            separator = "\t" if ending == "tsv" else max(",;\t|", key=head.count)
            reader = csv.reader(itertools.chain(file, [last]), delimiter=separator)
            row = names = next(reader)
            width = 0 if names == [last] else len(names)
            start, end = 1, reader.line_num + 1
            for row in reader:
                if row == [last]:
                    break
                start, end = end, reader.line_num + 1
                if len(row) > width > 0 and any(row[width:]):
                    raise SqlError(
                        f"{path} can't be read as CSV, line {reader.line_num}: "
                        f"the row has {len(row)} cells and the header {width}; put quotes around cells with separators"
                    )
                if row:
                    # Missing cells are NULL. A separator behind the last cell adds nothing.
                    rows.append(row if len(row) == width else (row + [""] * width)[:width])
            if row != [last]:
                raise SqlError(f"{path} can't be read as CSV, line {start}: a quote is opened and never closed")
        except UnicodeDecodeError:
            # Wrong letters would be worse than none.
            raise SqlError(
                f"{path} can't be read as CSV: it isn't UTF-8 text; save it as UTF-8, or read it in a Python cell"
            ) from None
        except csv.Error as error:
            raise SqlError(f"{path} can't be read as CSV, line {reader.line_num}: {error}") from None
    if not width:
        raise SqlError(f"{path} is empty")
    for place in range(width):
        kind = _number_kind(row[place] for row in rows)
        for row in rows:
            cell = row[place]
            row[place] = None if cell == "" else cell if kind is None else kind(cell)
    return names, rows


def _number_kind(cells):
    """Returns int or float if all of a column's cells are written as such numbers, else None: 007 isn't a number."""
    kind, some = int, False
    for cell in cells:
        if cell == "":
            continue
        some = True
        digits = cell[1:] if cell[0] in "+-" else cell
        if not digits.isascii() or not digits[:1].isdigit() or (digits[0] == "0" and digits[1:2].isdigit()):
            return None
        if digits.isdigit():
            if len(digits) > 18:
                return None
            continue
        try:
            float(cell)
        except ValueError:
            return None
        if "_" in cell:
            return None
        kind = float
    return kind if some else None


def _insert(base, name, names, rows):
    names = _apart([name if isinstance(name, str) else str(name) for name in names])
    if not names:
        raise SqlError(f"{name} has no columns")
    if len(names) > _COLUMNS_LIMIT:
        raise SqlError(f"{name} has {len(names)} columns; a query takes up to {_COLUMNS_LIMIT}")
    base.execute(f"CREATE TABLE {_quoted(name)} ({', '.join(map(_quoted, names))})")
    places = ", ".join("?" * len(names))
    base.executemany(f"INSERT INTO {_quoted(name)} VALUES ({places})", ([_cell(cell) for cell in row] for row in rows))


def _cell(value):
    """Returns a value as SQLite stores it."""
    kind = type(value)
    if kind is str or kind is float or value is None or kind is bytes:
        # NaN becomes NULL.
        return None if value != value else value
    if kind is int or kind is bool:
        return int(value) if -(1 << 63) <= value < 1 << 63 else str(value)
    if hasattr(value, "isoformat"):
        said = value.isoformat()
        return None if said == "NaT" else said
    if hasattr(value, "item") and hasattr(value, "dtype") and not getattr(value, "shape", ()):
        item = value.item()
        return _cell(item) if type(item) is not kind else str(value)
    if isinstance(value, (list, dict, tuple)):
        import json

        return json.dumps(value, default=str, ensure_ascii=False)[:_TEXT_LIMIT]
    if kind.__name__ in ("NAType", "NaTType"):
        return None
    if kind.__name__ == "Decimal":
        return float(value)
    return str(value)[:_TEXT_LIMIT]
