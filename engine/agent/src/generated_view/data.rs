//! Values of a note or kernel for a view, as a table of texts or as numbers, within size limits.

use super::{TextSegment, ValueName, ValueSource};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use text::properties::{self, Property, PropertyKind};

/// Limits of a table: rows, columns, and characters of a cell.
const MAX_GRID_ROWS: usize = 500;
const MAX_GRID_COLUMNS: usize = 30;
const MAX_GRID_CELL_CHARS: usize = 200;
/// Limits of a plot: curves, and points of a curve.
const MAX_PLOT_CURVES: usize = 12;
const MAX_CURVE_POINTS: usize = 10_000;
/// Maximum number of points in a plot's Markdown table, which replaces the plot where nothing can be drawn.
const MAX_MARKDOWN_POINTS: usize = 50;

/// Values of a note and its kernel that a view can use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewValues {
    /// Properties of the note.
    pub properties: BTreeMap<String, Value>,
    /// Variables of the note's kernel.
    pub variables: BTreeMap<String, Value>,
}

impl ViewValues {
    /// Returns the properties of a note's text, without variables.
    pub fn from_note(text: &str) -> ViewValues {
        ViewValues { properties: note_properties(text), variables: BTreeMap::new() }
    }

    /// Returns the value with this name.
    pub fn value_named(&self, name: &ValueName) -> Option<&Value> {
        match name {
            ValueName::Property(name) => self.properties.get(name),
            ValueName::Variable(name) => self.variables.get(name),
        }
    }

    /// Returns the value of a source.
    pub fn source_value<'a>(&'a self, source: &'a ValueSource) -> Option<&'a Value> {
        match source {
            ValueSource::Values(value) => Some(value),
            ValueSource::Bound(name) => self.value_named(name),
        }
    }

    /// Returns a text with its values filled in. Missing values are shown as a dash.
    pub fn fill_text(&self, pieces: &[TextSegment]) -> String {
        let piece = |piece: &TextSegment| match piece {
            TextSegment::Words(words) => words.clone(),
            TextSegment::Bound(name) => self.value_named(name).map_or_else(|| "\u{2013}".to_owned(), value_text),
        };
        pieces.iter().map(piece).collect()
    }

    /// Returns a property's value as text.
    pub(super) fn property_text(&self, property: &str) -> String {
        self.properties.get(property).map_or_else(|| "\u{2013}".to_owned(), |value| escape_markdown(&value_text(value)))
    }
}

/// Converts the value of a property to JSON.
pub fn property_value(property: &Property) -> Value {
    let first = property.values.first().map_or("", |(word, _)| word.as_str());
    match property.kind {
        PropertyKind::Check(yes) => Value::Bool(yes),
        PropertyKind::Number => {
            let whole = first.parse::<i64>().ok().map(Value::from);
            whole.or_else(|| first.parse::<f64>().ok().map(Value::from)).unwrap_or_else(|| Value::from(first))
        }
        PropertyKind::List => {
            Value::Array(property.values.iter().map(|(word, _)| parse_number_or_text(word)).collect())
        }
        PropertyKind::Text | PropertyKind::Date | PropertyKind::Link | PropertyKind::Nested => Value::from(first),
    }
}

fn parse_number_or_text(word: &str) -> Value {
    word.parse::<f64>().ok().filter(|number| number.is_finite()).map_or_else(|| Value::from(word), Value::from)
}

/// Returns the properties of a note's text, by key.
pub(super) fn note_properties(text: &str) -> BTreeMap<String, Value> {
    let read = properties::read(text).and_then(Result::ok).unwrap_or_default();
    read.iter().map(|one| (one.key.clone(), property_value(one))).collect()
}

/// Formats a number without trailing zeros.
fn format_number(number: f64) -> String {
    let size = number.abs();
    if number.fract() == 0.0 && size < 1e15 {
        return format!("{number:.0}");
    }
    if !(1e-4..1e15).contains(&size) {
        return format!("{number:.4e}");
    }
    format!("{number:.6}").trim_end_matches('0').to_owned()
}

/// Formats a value on one line.
pub fn value_text(value: &Value) -> String {
    let text = match value {
        Value::Null => "\u{2013}".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(value) => match value.as_f64() {
            Some(float) if value.is_f64() => format_number(float),
            _ => value.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let some: Vec<String> = all.iter().take(20).map(value_text).collect();
            let more = if all.len() > 20 { ", \u{2026}" } else { "" };
            format!("{}{more}", some.join(", "))
        }
        Value::Object(_) => value.to_string(),
    };
    let line = text.split(['\n', '\r']).next().unwrap_or_default();
    let mut short: String = line.chars().take(MAX_GRID_CELL_CHARS).collect();
    if short.len() < text.len() {
        short.push('\u{2026}');
    }
    short
}

/// Escapes characters that Markdown would interpret.
pub(super) fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '$' | '~' | '=' | '!' | '%' => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

/// A table of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordGrid {
    /// Names of the columns; may be empty.
    pub columns: Vec<String>,
    /// Rows of the table, each with one text per column.
    pub rows: Vec<Vec<String>>,
    /// For each column, whether it contains only numbers.
    pub numbers: Vec<bool>,
    /// Number of rows that were omitted.
    pub more: usize,
}

/// Converts a value to a table: a list of objects or of lists, an object of lists, a list, or a single value.
pub fn to_grid(value: &Value, wanted: &[String]) -> WordGrid {
    let mut columns: Vec<String> = wanted.iter().take(MAX_GRID_COLUMNS).cloned().collect();
    let mut cells: Vec<Vec<&Value>> = Vec::new();
    let all;
    let nothing = Value::Null;
    match value {
        Value::Array(rows) => {
            all = rows.len();
            let rows = &rows[..rows.len().min(MAX_GRID_ROWS)];
            if columns.is_empty() && rows.iter().any(Value::is_object) {
                let keys = rows.iter().filter_map(Value::as_object).flat_map(Map::keys);
                let mut seen = BTreeSet::new();
                columns = keys.filter(|key| seen.insert(*key)).take(MAX_GRID_COLUMNS).cloned().collect();
            }
            for row in rows {
                cells.push(match row {
                    Value::Object(fields) => columns.iter().map(|key| fields.get(key).unwrap_or(&nothing)).collect(),
                    Value::Array(row) => row.iter().take(MAX_GRID_COLUMNS).collect(),
                    other => vec![other],
                });
            }
        }
        Value::Object(fields) if fields.values().all(Value::is_array) && !fields.is_empty() => {
            if columns.is_empty() {
                columns = fields.keys().take(MAX_GRID_COLUMNS).cloned().collect();
            }
            let of = |key: &String| fields.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            all = columns.iter().map(|key| of(key).len()).max().unwrap_or(0);
            for at in 0..all.min(MAX_GRID_ROWS) {
                cells.push(columns.iter().map(|key| of(key).get(at).unwrap_or(&nothing)).collect());
            }
        }
        Value::Object(fields) => {
            all = fields.len();
            let rows =
                fields.iter().take(MAX_GRID_ROWS).map(|(key, value)| vec![key.clone(), value_text(value)]).collect();
            return WordGrid {
                columns: Vec::new(),
                rows,
                numbers: vec![false, false],
                more: all.saturating_sub(MAX_GRID_ROWS),
            };
        }
        other => {
            all = 1;
            cells.push(vec![other]);
        }
    }
    let width = cells.iter().map(Vec::len).max().unwrap_or(0).max(columns.len());
    if !columns.is_empty() {
        columns.resize(width, String::new());
    }
    let numeric = |at: usize| {
        let mut all = cells.iter().filter_map(|row| row.get(at)).filter(|cell| !cell.is_null()).peekable();
        all.peek().is_some() && all.all(|cell| cell.is_number())
    };
    let numbers = (0..width).map(numeric).collect();
    let row = |row: &Vec<&Value>| {
        let mut words: Vec<String> = row.iter().map(|cell| value_text(cell)).collect();
        words.resize(width, String::new());
        words
    };
    WordGrid { rows: cells.iter().map(row).collect(), columns, numbers, more: all.saturating_sub(MAX_GRID_ROWS) }
}

impl WordGrid {
    /// Formats the table as Markdown.
    pub fn to_markdown(&self) -> String {
        let width = self.numbers.len();
        if width == 0 || self.rows.is_empty() {
            return "*This table is empty.*\n".to_owned();
        }
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| escape_markdown(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut heads = self.columns.clone();
        heads.resize(width, String::new());
        let mut out = line(&heads);
        let rule: Vec<&str> = self.numbers.iter().map(|number| if *number { "---:" } else { "---" }).collect();
        out.push_str(&format!("| {} |\n", rule.join(" | ")));
        self.rows.iter().for_each(|row| out.push_str(&line(row)));
        if self.more > 0 {
            out.push_str(&format!("\n*And {} more.*\n", self.more));
        }
        out
    }
}

/// Numbers of a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotCurves {
    /// Values along x.
    pub x: Vec<f64>,
    /// Labels along x if the values are text; one for each number.
    pub labels: Vec<String>,
    /// Curves along y: the name and values of each.
    pub y: Vec<(String, Vec<f64>)>,
}

fn to_numbers(all: &[Value]) -> Vec<f64> {
    let float = |value: &Value| match value {
        Value::Bool(yes) => f64::from(u8::from(*yes)),
        value => value.as_f64().unwrap_or(f64::NAN),
    };
    all.iter().take(MAX_CURVE_POINTS).map(float).collect()
}

/// Converts values to numbers along x and y. `y` is a list of numbers, an object of such lists, or an object of numbers
/// by name.
pub fn to_curves(x: Option<&Value>, y: &Value) -> PlotCurves {
    let mut found = PlotCurves::default();
    match y {
        Value::Array(rows) if rows.iter().any(Value::is_object) => {
            let keys: BTreeSet<&String> = rows.iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
            for key in keys {
                let column: Vec<Value> = rows.iter().map(|row| row.get(key).cloned().unwrap_or_default()).collect();
                if column.iter().any(Value::is_number) {
                    found.y.push((key.clone(), to_numbers(&column)));
                } else if found.labels.is_empty() {
                    found.labels = column.iter().take(MAX_CURVE_POINTS).map(value_text).collect();
                }
            }
        }
        Value::Array(all) => found.y.push((String::new(), to_numbers(all))),
        Value::Object(fields) if fields.values().any(Value::is_array) => {
            let lists = fields.iter().filter_map(|(name, value)| Some((name.clone(), to_numbers(value.as_array()?))));
            found.y.extend(lists);
        }
        Value::Object(fields) => {
            found.labels = fields.keys().take(MAX_CURVE_POINTS).cloned().collect();
            let values: Vec<Value> = fields.values().cloned().collect();
            found.y.push((String::new(), to_numbers(&values)));
        }
        other => found.y.push((String::new(), to_numbers(std::slice::from_ref(other)))),
    }
    found.y.truncate(MAX_PLOT_CURVES);
    let longest = found.y.iter().map(|(_, numbers)| numbers.len()).max().unwrap_or(0);
    match x.and_then(Value::as_array) {
        Some(all) if all.iter().any(|value| !value.is_number()) => {
            found.labels = all.iter().take(longest).map(value_text).collect();
        }
        Some(all) => (found.x, found.labels) = (to_numbers(all), Vec::new()),
        None => {}
    }
    #[allow(clippy::cast_precision_loss, reason = "a few thousand are counted so")]
    if found.x.is_empty() {
        found.x = (0..longest).map(|at| (at + 1) as f64).collect();
    }
    found.x.truncate(longest);
    found.labels.truncate(longest);
    found
}

impl PlotCurves {
    /// Formats the first `MAX_MARKDOWN_POINTS` points as a Markdown table.
    pub fn to_markdown(&self) -> String {
        let count = self.x.len();
        let rows = (0..count.min(MAX_MARKDOWN_POINTS)).map(|at| {
            let first = self.labels.get(at).cloned().unwrap_or_else(|| format_number(self.x[at]));
            let cell = |(_, all): &(String, Vec<f64>)| {
                all.get(at).filter(|y| y.is_finite()).map_or(String::new(), |y| format_number(*y))
            };
            std::iter::once(first).chain(self.y.iter().map(cell)).collect()
        });
        let names = self.y.iter().map(|(name, _)| name.clone());
        let columns: Vec<String> = std::iter::once(String::new()).chain(names).collect();
        let numbers = std::iter::once(self.labels.is_empty()).chain(self.y.iter().map(|_| true)).collect();
        WordGrid { rows: rows.collect(), columns, numbers, more: count.saturating_sub(MAX_MARKDOWN_POINTS) }
            .to_markdown()
    }
}
