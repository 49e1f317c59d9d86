//! Data of an output table: parsed, sorted and filtered off the UI thread. Independent of any window.

use anyhow::{Context, bail};
use serde_json::Value;
use std::cmp::Ordering;

/// Maximum bytes of a table that is read.
pub(crate) const MAX_TABLE_BYTES: usize = 256 << 20;
/// Maximum number of columns of a table that is read.
const MAX_TABLE_COLUMNS: usize = 1_000;
/// Number of cells that any table may have. A larger one has no more cells than its source has bytes or values: a short
/// row becomes as long as the head, so a few bytes could be very many cells.
const MIN_TABLE_CELLS: usize = 1 << 20;
/// Separates the cells of a row, so that a search doesn't match across two.
const CELL_SEPARATOR: char = '\u{1f}';

/// The cells of a table, row by row.
#[derive(Debug, Default)]
pub(crate) struct TableData {
    pub(crate) columns: Vec<DataColumn>,
    pub(crate) rows: usize,
    text: String,
    /// End offset of each cell in `text`.
    ends: Vec<u32>,
    /// Number of cells that may still be added.
    cells_left: usize,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct DataColumn {
    pub(crate) name: String,
    /// Whether it contains only numbers and empty cells, and possibly NaN and infinities beside the numbers.
    pub(crate) numeric: bool,
    /// Number of characters in its widest cell, as far as cells were measured.
    pub(crate) letters: usize,
}

/// Sort order: the column's index, and whether it is descending; `None` is unsorted.
pub(crate) type ColumnSort = Option<(usize, bool)>;

impl TableData {
    /// Parses CSV by RFC 4180; the first record contains the column names.
    pub(crate) fn parse_csv(text: &str) -> anyhow::Result<TableData> {
        // Spreadsheets begin their files with a mark of the encoding.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut data = TableData::with_room(text.len());
        let mut head = Vec::new();
        let mut record = 0;
        let (mut cell, mut place) = (String::new(), 0);
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            cell.clear();
            if bytes[at] == b'"' {
                at += 1;
                loop {
                    let rest = &text[at..];
                    let Some(end) = rest.find('"') else {
                        cell.push_str(rest);
                        at = bytes.len();
                        break;
                    };
                    cell.push_str(&rest[..end]);
                    at += end + 1;
                    if bytes.get(at) != Some(&b'"') {
                        break;
                    }
                    cell.push('"');
                    at += 1;
                }
            }
            let rest = &text[at..];
            let end = rest.find([',', '\n']).unwrap_or(rest.len());
            let ends_record = rest.as_bytes().get(end) != Some(&b',');
            let plain = &rest[..end];
            cell.push_str(if ends_record { plain.strip_suffix('\r').unwrap_or(plain) } else { plain });
            at += end + 1;
            if record == 0 {
                head.push(std::mem::take(&mut cell));
            } else {
                data.put(&cell, place)?;
                place += 1;
            }
            if ends_record {
                if record == 0 {
                    data.head(std::mem::take(&mut head))?;
                } else {
                    data.end(place)?;
                }
                (record, place) = (record + 1, 0);
            } else if at == bytes.len() {
                // A trailing comma means one more cell, which is empty.
                if record == 0 {
                    head.push(String::new())
                } else {
                    data.put("", place)?
                }
                place += 1;
            }
        }
        if record == 0 {
            data.head(head)?;
        } else if place > 0 {
            data.end(place)?;
        }
        Ok(data.finished())
    }

    /// Parses a Frictionless tabular data resource, as pandas exports tables: `{"schema": {"fields": […]}, "data":
    /// […]}`.
    pub(crate) fn parse_data_resource(value: &Value) -> anyhow::Result<TableData> {
        let rows = value["data"].as_array().context("the table has no rows")?;
        let named = value["schema"]["fields"].as_array().into_iter().flatten();
        let mut names: Vec<String> = named.filter_map(|field| Some(field["name"].as_str()?.to_owned())).collect();
        if names.is_empty() {
            names =
                rows.first().and_then(Value::as_object).map(|row| row.keys().cloned().collect()).unwrap_or_default();
        }
        let values: usize = rows.iter().filter_map(Value::as_object).map(serde_json::Map::len).sum();
        let mut data = TableData::with_room(values);
        data.head(names)?;
        for row in rows {
            for place in 0..data.columns.len() {
                let text = match &row[data.columns[place].name.as_str()] {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                data.put(&text, place)?;
            }
            data.end(data.columns.len())?;
        }
        Ok(data.finished())
    }

    /// Creates a one-column table with one row for each line of a text.
    pub(crate) fn lines(text: &str) -> anyhow::Result<TableData> {
        let mut data = TableData::with_room(text.len());
        data.head(vec![String::new()])?;
        for line in text.lines() {
            data.put(line, 0)?;
            data.end(1)?;
        }
        data.columns[0].numeric = false;
        data.columns[0].letters = data.columns[0].letters.max(80);
        Ok(data)
    }

    /// Creates an empty table that may have so many cells, or [`MIN_TABLE_CELLS`] if that's more.
    fn with_room(cells: usize) -> TableData {
        TableData { cells_left: cells.max(MIN_TABLE_CELLS), ..TableData::default() }
    }

    fn head(&mut self, names: Vec<String>) -> anyhow::Result<()> {
        if names.len() > MAX_TABLE_COLUMNS {
            bail!("the table has {} columns; at most {MAX_TABLE_COLUMNS} are shown", names.len());
        }
        let letters = |name: &String| name.chars().count();
        self.columns =
            names.into_iter().map(|name| DataColumn { letters: letters(&name), numeric: true, name }).collect();
        Ok(())
    }

    fn put(&mut self, cell: &str, place: usize) -> anyhow::Result<()> {
        let Some(column) = self.columns.get_mut(place) else { return Ok(()) }; // more cells than columns: ragged
        self.cells_left = self.cells_left.checked_sub(1).context("most cells of the table are missing")?;
        self.text.push_str(cell);
        self.ends.push(u32::try_from(self.text.len()).ok().context("the table is too large to be shown")?);
        self.text.push(CELL_SEPARATOR);
        column.numeric &= cell.is_empty() || float(cell).is_some();
        if self.rows < 1_000 {
            column.letters = column.letters.max(cell.chars().take(200).count());
        }
        Ok(())
    }

    /// Ends a row that has `cells` cells; missing cells are added as empty ones.
    fn end(&mut self, cells: usize) -> anyhow::Result<()> {
        for place in cells..self.columns.len() {
            self.put("", place)?;
        }
        self.rows += 1;
        Ok(())
    }

    fn finished(mut self) -> TableData {
        for place in 0..self.columns.len() {
            // A column of words such as `inf` alone, or of empty cells, has no numbers.
            let numeric = self.columns[place].numeric;
            self.columns[place].numeric = numeric && (0..self.rows).any(|row| number(self.cell(row, place)).is_some());
        }
        self
    }

    /// Returns the text of a cell; empty if there's no such cell.
    pub(crate) fn cell(&self, row: usize, column: usize) -> &str {
        let at = row * self.columns.len() + column;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize + 1);
        let end = self.ends.get(at).map_or(start, |end| *end as usize);
        self.text.get(start..end).unwrap_or("")
    }

    fn row(&self, row: usize) -> &str {
        let (first, last) = (row * self.columns.len(), (row + 1) * self.columns.len());
        let start = first.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize + 1);
        let end = last.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(start, |end| *end as usize);
        self.text.get(start..end).unwrap_or("")
    }

    /// Returns the rows that match a filter, sorted. Words of the filter are searched in all cells; `column=word`,
    /// `column:part` and `column<5` (also `>`, `<=`, `>=`, `!=`) are searched in one column.
    pub(crate) fn filtered_rows(&self, sort: ColumnSort, filter: &str) -> Vec<u32> {
        let tests: Vec<FilterTerm> =
            filter.split_whitespace().map(|word| FilterTerm::of(word, &self.columns)).collect();
        let all = 0..u32::try_from(self.rows).unwrap_or(u32::MAX);
        let mut rows: Vec<u32> = if tests.is_empty() {
            all.collect()
        } else {
            all.filter(|row| tests.iter().all(|test| test.admits(self, *row as usize))).collect()
        };
        let Some((column, down)) = sort.filter(|(column, _)| *column < self.columns.len()) else { return rows };
        let turned = |order: Ordering| if down { order.reverse() } else { order };
        if self.columns[column].numeric {
            let mut keyed: Vec<(f64, u32)> =
                rows.iter().map(|row| (float(self.cell(*row as usize, column)).unwrap_or(f64::NAN), *row)).collect();
            // Cells without a number come last in both directions.
            keyed.sort_by(|(a, _), (b, _)| {
                a.is_nan().cmp(&b.is_nan()).then_with(|| turned(a.partial_cmp(b).unwrap_or(Ordering::Equal)))
            });
            return keyed.into_iter().map(|(_, row)| row).collect();
        }
        rows.sort_by(|a, b| {
            let (a, b) = (self.cell(*a as usize, column), self.cell(*b as usize, column));
            a.is_empty().cmp(&b.is_empty()).then_with(|| turned(words(a, b)))
        });
        rows
    }

    /// Returns rows with their header as tab-separated values, for spreadsheets.
    pub(crate) fn rows_as_tsv(&self, rows: &[u32]) -> String {
        let clean = |cell: &str| cell.replace(['\t', '\n', '\r'], " ");
        let mut text = String::new();
        if self.columns.iter().any(|column| !column.name.is_empty()) {
            text = self.columns.iter().map(|column| clean(&column.name)).collect::<Vec<_>>().join("\t");
            text.push('\n');
        }
        for row in rows {
            for column in 0..self.columns.len() {
                if column > 0 {
                    text.push('\t');
                }
                text.push_str(&clean(self.cell(*row as usize, column)));
            }
            text.push('\n');
        }
        text
    }

    /// Returns all rows as CSV by RFC 4180, as `parse_csv` reads it.
    pub(crate) fn all_as_csv(&self) -> String {
        let mut text = String::new();
        let names = self.columns.iter().map(|column| column.name.as_str());
        put_csv_record(&mut text, names);
        for row in 0..self.rows {
            put_csv_record(&mut text, (0..self.columns.len()).map(|column| self.cell(row, column)));
        }
        text
    }
}

/// Appends a record of CSV, in quotes where it needs them.
fn put_csv_record<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>) {
    let start = text.len();
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(cell);
        }
    }
    if text.len() == start {
        text.push_str("\"\""); // other programs skip an empty line, and would lose the row
    }
    text.push('\n');
}

/// Reads a number.
pub(crate) fn number(text: &str) -> Option<f64> {
    // Words that Rust parses as numbers, such as `inf`, are text here.
    text.trim().parse().ok().filter(|_| text.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Reads a cell of a column of numbers: a number, NaN or an infinity, as pandas, polars and pyarrow write them.
fn float(text: &str) -> Option<f64> {
    match text {
        "NaN" | "nan" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => number(text),
    }
}

/// Compares two texts case-insensitively, and then case-sensitively if they are equal.
fn words(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        let low = |byte: u8| byte.to_ascii_lowercase();
        return a.bytes().map(low).cmp(b.bytes().map(low)).then_with(|| a.cmp(b));
    }
    let low = char::to_lowercase;
    a.chars().flat_map(low).cmp(b.chars().flat_map(low)).then_with(|| a.cmp(b))
}

/// One term of a filter.
enum FilterTerm {
    Has(String),
    Holds(usize, String),
    Is(usize, String, bool),
    Beside(usize, f64, fn(&Ordering) -> bool),
}

impl FilterTerm {
    fn of(word: &str, columns: &[DataColumn]) -> FilterTerm {
        let found = word.find(['<', '>', '=', '!', ':']).and_then(|at| {
            let column = columns.iter().position(|column| column.name.eq_ignore_ascii_case(&word[..at]))?;
            let rest = &word[at..];
            let sign = ["<=", ">=", "!=", "<", ">", "=", ":"].into_iter().find(|sign| rest.starts_with(sign))?;
            Some((column, sign, &rest[sign.len()..]))
        });
        let Some((column, sign, value)) = found else { return FilterTerm::Has(word.to_lowercase()) };
        let beside: fn(&Ordering) -> bool = match sign {
            "<=" => |order| order.is_le(),
            ">=" => |order| order.is_ge(),
            "<" => |order| order.is_lt(),
            ">" => |order| order.is_gt(),
            ":" => return FilterTerm::Holds(column, value.to_lowercase()),
            sign => return FilterTerm::Is(column, value.to_lowercase(), sign == "="),
        };
        number(value)
            .map_or_else(|| FilterTerm::Has(word.to_lowercase()), |value| FilterTerm::Beside(column, value, beside))
    }

    fn admits(&self, data: &TableData, row: usize) -> bool {
        match self {
            FilterTerm::Has(word) => has(data.row(row), word),
            FilterTerm::Holds(column, word) => has(data.cell(row, *column), word),
            FilterTerm::Is(column, value, same) => {
                let cell = data.cell(row, *column);
                let equal = match (number(cell), number(value)) {
                    (Some(a), Some(b)) => a == b,
                    _ => cell.to_lowercase() == *value,
                };
                equal == *same
            }
            FilterTerm::Beside(column, value, beside) => {
                let cell = data.cell(row, *column);
                let cell = if data.columns[*column].numeric { float(cell) } else { number(cell) };
                cell.and_then(|cell| cell.partial_cmp(value)).is_some_and(|order| beside(&order))
            }
        }
    }
}

/// Returns whether a text contains a lowercase word, ignoring the text's case.
fn has(text: &str, word: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(word);
    }
    let (text, word) = (text.as_bytes(), word.as_bytes());
    let Some(first) = word.first() else { return true };
    let begins = |at: &usize| text[*at].to_ascii_lowercase() == *first;
    (0..(text.len() + 1).saturating_sub(word.len()))
        .filter(begins)
        .any(|at| text[at..at + word.len()].eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(data: &TableData) -> Vec<Vec<&str>> {
        (0..data.rows).map(|row| (0..data.columns.len()).map(|column| data.cell(row, column)).collect()).collect()
    }

    const WIDE: &str = "the table has 2001 columns; at most 1000 are shown";

    #[test]
    fn csv_is_read_as_written() {
        let data = TableData::parse_csv("a,b\n1,\"x, \"\"y\"\"\nz\"\r\n,é\n3").expect("a table");
        assert_eq!(cells(&data), [["1", "x, \"y\"\nz"], ["", "é"], ["3", ""]]);
        assert_eq!(data.all_as_csv(), "a,b\n1,\"x, \"\"y\"\"\nz\"\n,é\n3,\n");
        let narrow = TableData::parse_csv("a\n1\n\"\"\n2\n").expect("a table");
        assert_eq!(narrow.all_as_csv(), "a\n1\n\"\"\n2\n");
        let columns: Vec<(&str, bool)> = data.columns.iter().map(|c| (c.name.as_str(), c.numeric)).collect();
        assert_eq!(columns, [("a", true), ("b", false)]);
        assert_eq!(cells(&TableData::parse_csv("a,b\n1,2,3\n4,\n").expect("a table")), [["1", "2"], ["4", ""]]);
        for odd in ["", "a", "a\n", "\"", "\"a", ",", "\n\n", "a,\"b\"c\n\"x\"y,z"] {
            let data = TableData::parse_csv(odd).expect("a table");
            assert!(cells(&data).iter().all(|row| row.len() == data.columns.len()), "{odd}");
        }
        assert_eq!(TableData::parse_csv(&",".repeat(2_000)).expect_err("too wide").to_string(), WIDE);
        let ragged = TableData::parse_csv(&format!("{}\n{}", ",".repeat(99), "1\n".repeat(10_000)));
        assert_eq!(ragged.map(|data| (data.rows, data.columns.len())).expect("a table"), (10_000, 100));
        let empty = format!("{}\n{}", ",".repeat(999), "\n".repeat(2_000));
        assert!(TableData::parse_csv(&empty).expect_err("too many").to_string().contains("are missing"));
    }

    #[test]
    fn rows_are_ordered_and_narrowed() {
        let data = TableData::parse_csv("name,age\nAda,36\nbob,9\nÉmile,\nalan,41\nBOB,100\n").expect("a table");
        let names = |sort, filter| -> Vec<&str> {
            data.filtered_rows(sort, filter).into_iter().map(|row| data.cell(row as usize, 0)).collect()
        };
        assert_eq!(names(None, ""), ["Ada", "bob", "Émile", "alan", "BOB"]);
        assert_eq!(names(Some((1, false)), ""), ["bob", "Ada", "alan", "BOB", "Émile"]);
        assert_eq!(names(Some((1, true)), ""), ["BOB", "alan", "Ada", "bob", "Émile"], "empty ones stay last");
        assert_eq!(names(Some((0, false)), ""), ["Ada", "alan", "BOB", "bob", "Émile"]);
        assert_eq!(names(None, "bob"), ["bob", "BOB"]);
        assert_eq!(names(None, "É"), ["Émile"]);
        assert_eq!(names(None, "age>=36 a"), ["Ada", "alan"]);
        assert_eq!(names(None, "age=9"), ["bob"]);
        assert_eq!(names(None, "name!=bob age<200"), ["Ada", "alan"]);
        assert_eq!(names(None, "name:la"), ["alan"]);
        assert_eq!(names(None, "a3 da36"), Vec::<&str>::new(), "cells do not flow together");
        assert_eq!(data.rows_as_tsv(&[1, 3]), "name\tage\nbob\t9\nalan\t41\n");
    }

    #[test]
    fn infinities_and_nan_are_among_numbers() {
        let data = TableData::parse_csv("x,word\n3,inf\ninf,\nNaN,nan\n-inf,inf\n-2,\n").expect("a table");
        assert_eq!((data.columns[0].numeric, data.columns[1].numeric), (true, false));
        let cells = |sort, filter| -> Vec<&str> {
            data.filtered_rows(sort, filter).into_iter().map(|row| data.cell(row as usize, 0)).collect()
        };
        assert_eq!(cells(Some((0, false)), ""), ["-inf", "-2", "3", "inf", "NaN"]);
        assert_eq!(cells(Some((0, true)), ""), ["inf", "3", "-2", "-inf", "NaN"]);
        assert_eq!(cells(None, "x>1"), ["3", "inf"]);
        assert_eq!(cells(None, "x=inf"), ["inf"]);
    }

    #[test]
    fn other_forms_are_tables_too() {
        let value = serde_json::json!({"schema": {"fields": [{"name": "i"}, {"name": "s"}]},
            "data": [{"i": 1, "s": "x"}, {"s": null, "i": 2.5}]});
        assert_eq!(cells(&TableData::parse_data_resource(&value).expect("a table")), [["1", "x"], ["2.5", ""]]);
        let lines = TableData::lines("b\na\n").expect("a table");
        assert_eq!(cells(&lines), [["b"], ["a"]]);
        assert_eq!(lines.rows_as_tsv(&lines.filtered_rows(None, "")), "b\na\n");
    }

    #[test]
    fn a_million_rows_take_moments() {
        let mut text = "number,word\n".to_owned();
        for row in 0..1_000_000_u32 {
            text.push_str(&format!("{},w{}\n", row.wrapping_mul(2_654_435_761) % 1_000_003, row % 977));
        }
        let begun = std::time::Instant::now();
        let data = TableData::parse_csv(&text).expect("a table");
        assert_eq!((data.rows, data.cell(999_999, 1)), (1_000_000, "w528"));
        let rows = data.filtered_rows(Some((0, false)), "");
        assert!(
            rows.windows(2)
                .all(|pair| { number(data.cell(pair[0] as usize, 0)) <= number(data.cell(pair[1] as usize, 0)) })
        );
        assert_eq!(data.filtered_rows(None, "word=w12").len(), 1_024);
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    }
}
