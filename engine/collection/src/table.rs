//! Evaluates a view of a collection: its files, their order, and the value of each cell.

use super::eval::{EvalScope, FormulaError};
use super::expression::Expr;
use super::value::{ExprValue, SortKey};
use super::{Collection, CollectionFilter, CollectionView, LocalNow, VolumeFilesAndLinks, strip_note_prefix, summary};
use std::cell::Cell as Count;
use std::collections::{BTreeMap, BTreeSet};
use store::DocId;
use text::properties::PropertyKind;

/// Maximum number of problems reported.
const MAX_TABLE_PROBLEMS: usize = 8;
/// Number of files between two checks for cancellation.
const FILES_PER_CHECK: usize = 256;

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectionCell {
    /// No value.
    Empty,
    /// Plain text.
    Text(String),
    /// A number, integer or decimal.
    Number(f64),
    /// A day, with or without a time.
    Date(String),
    /// A checkbox.
    Check(bool),
    /// A link to a file or URL.
    Link {
        /// The link's text.
        words: String,
        /// The link's target as written.
        target: String,
        /// The linked file; `None` if it doesn't exist.
        to: Option<DocId>,
    },
    /// A list of values.
    List(Vec<CollectionCell>),
}

impl CollectionCell {
    /// Converts the cell to plain text.
    pub fn to_text(&self) -> String {
        match self {
            CollectionCell::Empty => String::new(),
            CollectionCell::Text(text) | CollectionCell::Date(text) => text.clone(),
            CollectionCell::Number(number) => number.to_string(),
            CollectionCell::Check(value) => if *value { "yes" } else { "no" }.to_owned(),
            CollectionCell::Link { words, .. } => words.clone(),
            CollectionCell::List(items) => items.iter().map(CollectionCell::to_text).collect::<Vec<_>>().join(", "),
        }
    }

    fn property_kind(&self) -> Option<PropertyKind> {
        Some(match self {
            CollectionCell::Empty => return None,
            CollectionCell::Text(_) => PropertyKind::Text,
            CollectionCell::Number(_) => PropertyKind::Number,
            CollectionCell::Date(_) => PropertyKind::Date,
            CollectionCell::Check(_) => PropertyKind::Check(false),
            CollectionCell::Link { .. } => PropertyKind::Link,
            CollectionCell::List(_) => PropertyKind::List,
        })
    }
}

/// A column of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionColumn {
    /// The column's property, as written in the file.
    pub name: String,
    /// The column's title.
    pub title: String,
    /// Width in points, if set.
    pub width: Option<f32>,
    /// The most frequent kind of value in the column.
    pub kind: PropertyKind,
    /// Name and value of the column's summary.
    pub summary: Option<(String, String)>,
}

impl CollectionColumn {
    /// Returns the note property that the column's cells edit; `None` for `file` and `formula` columns.
    pub fn editable_property(&self) -> Option<&str> {
        match self.name.split_once('.') {
            Some(("file" | "formula", _)) => None,
            _ => Some(strip_note_prefix(&self.name)),
        }
    }
}

/// An evaluated view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionTable {
    /// The columns, left to right.
    pub columns: Vec<CollectionColumn>,
    /// The rows, filtered and sorted.
    pub rows: Vec<CollectionRow>,
    /// Number of rows without the view's limit.
    pub all: usize,
    /// Each group's name and row count, in order; empty if the view isn't grouped.
    pub groups: Vec<(String, usize)>,
    /// Problems found in the collection's expressions.
    pub problems: Vec<String>,
    /// Whether the filter, or the formula of a column, can't be evaluated for any file.
    pub is_broken: bool,
}

/// A row of a view: one file.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionRow {
    /// Document id of the file.
    pub file: DocId,
    /// The file's path in its volume.
    pub path: String,
    /// Value that the row is grouped by; empty if the view isn't grouped.
    pub group: String,
    /// Value of each column.
    pub cells: Vec<CollectionCell>,
    /// Image at the top of a card: a path or a link.
    pub image: Option<String>,
}

struct SortedRows {
    keys: Vec<SortKey>,
    row: CollectionRow,
    /// Values of the columns that have a summary.
    worths: Vec<ExprValue>,
}

impl Collection {
    /// Evaluates a view. `this` is the note in which the collection is shown.
    pub fn evaluate_view(
        &self,
        source: VolumeFilesAndLinks<'_>,
        view: usize,
        this: Option<DocId>,
        now: LocalNow,
    ) -> CollectionTable {
        self.evaluate_view_while(source, view, this, now, &mut |_| true).unwrap_or_default()
    }

    /// Evaluates a view, and stops with `None` when `goes_on` returns false.
    ///
    /// `goes_on` is called regularly with the number of files processed so far.
    pub fn evaluate_view_while(
        &self,
        source: VolumeFilesAndLinks<'_>,
        view: usize,
        this: Option<DocId>,
        now: LocalNow,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Option<CollectionTable> {
        let view = self.views.get(view)?;
        let mut problems: BTreeSet<String> = self.problems.iter().take(MAX_TABLE_PROBLEMS).cloned().collect();
        let steps = Count::new(0);
        let mut has_filter_failed = false;
        let mut found: Vec<SortedRows> = Vec::new();
        for (place, row) in source.files.values().enumerate() {
            if place % FILES_PER_CHECK == 0 && !goes_on(place) {
                return None;
            }
            steps.set(0);
            let formulas = &self.formulas;
            let scope = EvalScope { source, file: row.id, this, now, formulas, depth: 0, item: None, steps: &steps };
            let mut say = |why: FormulaError| {
                if problems.len() < MAX_TABLE_PROBLEMS {
                    problems.insert(why.to_string());
                }
            };
            let passes = [&self.filter, &view.filter].into_iter().flatten().all(|filter| {
                passes_filter(filter, &scope).unwrap_or_else(|why| {
                    has_filter_failed = true;
                    say(why);
                    false
                })
            });
            if passes {
                found.push(self.evaluate_row(view, &scope, &row.path, &mut say));
            }
        }
        let down: Vec<bool> =
            view.group.iter().map(|(_, down)| *down).chain(view.sort.iter().map(|(_, down)| *down)).collect();
        found.sort_by(|one, other| {
            let mut keys = one.keys.iter().zip(&other.keys).zip(&down);
            let order =
                keys.find_map(|((one, other), down)| Some(one.compare(other, *down)).filter(|order| order.is_ne()));
            order.unwrap_or_else(|| one.row.path.cmp(&other.row.path))
        });
        let all = found.len();
        found.truncate(view.limit.unwrap_or(usize::MAX));
        goes_on(source.files.len()).then_some(())?;
        let is_formula_broken = |(place, name): (usize, &String)| {
            let is_empty = |sorted: &SortedRows| sorted.row.cells.get(place) == Some(&CollectionCell::Empty);
            let is_candidate = name.starts_with("formula.") && found.iter().all(is_empty);
            let Some(first) = found.first().filter(|_| is_candidate) else { return false };
            steps.set(0);
            let (file, formulas) = (first.row.file, &self.formulas);
            let scope = EvalScope { source, file, this, now, formulas, depth: 0, item: None, steps: &steps };
            scope.eval_property(name).is_err()
        };
        let is_broken =
            (has_filter_failed && found.is_empty()) || view.columns.iter().enumerate().any(is_formula_broken);
        let columns = self.view_columns(view, &found, source, this, now);
        let rows: Vec<CollectionRow> = found.into_iter().map(|sorted| sorted.row).collect();
        let mut groups: Vec<(String, usize)> = Vec::new();
        for row in rows.iter().filter(|_| view.group.is_some()) {
            match groups.last_mut().filter(|(name, _)| *name == row.group) {
                Some((_, count)) => *count += 1,
                None => groups.push((row.group.clone(), 1)),
            }
        }
        Some(CollectionTable { columns, rows, all, groups, problems: problems.into_iter().collect(), is_broken })
    }

    fn evaluate_row(
        &self,
        view: &CollectionView,
        scope: &EvalScope<'_>,
        path: &str,
        say: &mut dyn FnMut(FormulaError),
    ) -> SortedRows {
        let mut worth = |name: &String| {
            scope.eval_property(name).unwrap_or_else(|why| {
                say(why);
                ExprValue::Nothing
            })
        };
        let group = view.group.as_ref().map(|(name, _)| worth(name));
        let keys = group.iter().map(ExprValue::sort_key).collect::<Vec<_>>().into_iter();
        let keys = keys.chain(view.sort.iter().map(|(name, _)| worth(name).sort_key()).collect::<Vec<_>>()).collect();
        let (mut cells, mut worths) = (Vec::with_capacity(view.columns.len()), Vec::new());
        for name in &view.columns {
            // The file name links to its file.
            let found = if name == "file.name" { scope.file_value(scope.file) } else { worth(name) };
            cells.push(found.to_cell());
            if view.summaries.contains_key(strip_note_prefix(name)) {
                worths.push(found);
            }
        }
        let image = view.image.as_ref().and_then(|image| match worth(image) {
            ExprValue::File(_, path) => Some(path),
            ExprValue::Link(link) => Some(link.target),
            ExprValue::List(items) => items.first().map(ExprValue::to_text),
            ExprValue::Nothing => None,
            other => Some(other.to_text()),
        });
        let group = group.map_or_else(String::new, |group| group.to_text());
        SortedRows { keys, worths, row: CollectionRow { file: scope.file, path: path.to_owned(), group, cells, image } }
    }

    fn view_columns(
        &self,
        view: &CollectionView,
        found: &[SortedRows],
        source: VolumeFilesAndLinks<'_>,
        this: Option<DocId>,
        now: LocalNow,
    ) -> Vec<CollectionColumn> {
        let mut summed = 0;
        let mut columns = Vec::with_capacity(view.columns.len());
        for (place, name) in view.columns.iter().enumerate() {
            let mut kinds: BTreeMap<u8, (usize, PropertyKind)> = BTreeMap::new();
            for kind in found.iter().filter_map(|sorted| sorted.row.cells.get(place)?.property_kind()) {
                kinds.entry(kind_rank(kind)).or_insert((0, kind)).0 += 1;
            }
            let most = kinds.values().max_by_key(|(count, _)| *count).map(|(_, kind)| *kind);
            let kind = most.unwrap_or(if matches!(strip_note_prefix(name), "tags" | "aliases") {
                PropertyKind::List
            } else {
                PropertyKind::Text
            });
            let summary = view.summaries.get(strip_note_prefix(name)).map(|summary| {
                let values: Vec<ExprValue> =
                    found.iter().filter_map(|sorted| sorted.worths.get(summed).cloned()).collect();
                summed += 1;
                let worth = match self.summaries.get(summary) {
                    Some(expr) => self.eval_summary(expr, values, source, this, now),
                    None => summary::summarize(summary, &values),
                };
                (summary.clone(), worth.to_text())
            });
            columns.push(CollectionColumn {
                name: name.clone(),
                title: self.property_title(name),
                width: view.widths.get(strip_note_prefix(name)).copied(),
                kind,
                summary,
            });
        }
        columns
    }

    /// Evaluates a custom summary of the collection: an expression over `values`.
    fn eval_summary(
        &self,
        expr: &Expr,
        values: Vec<ExprValue>,
        source: VolumeFilesAndLinks<'_>,
        this: Option<DocId>,
        now: LocalNow,
    ) -> ExprValue {
        let steps = Count::new(0);
        let values = ExprValue::List(values);
        let file = this.unwrap_or(DocId([0; 16]));
        let item = Some((&values, 0, None));
        let scope = EvalScope { source, file, this, now, formulas: &self.formulas, depth: 0, item, steps: &steps };
        scope.eval(expr).unwrap_or(ExprValue::Nothing)
    }
}

fn kind_rank(kind: PropertyKind) -> u8 {
    match kind {
        PropertyKind::Text => 0,
        PropertyKind::Number => 1,
        PropertyKind::Date => 2,
        PropertyKind::Check(_) => 3,
        PropertyKind::List => 4,
        PropertyKind::Link => 5,
        PropertyKind::Nested => 6,
    }
}

fn passes_filter(filter: &CollectionFilter, scope: &EvalScope<'_>) -> Result<bool, FormulaError> {
    let verdicts = |all: &[CollectionFilter], wanted: bool| -> Result<bool, FormulaError> {
        for one in all {
            if passes_filter(one, scope)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    };
    match filter {
        CollectionFilter::All(all) => verdicts(all, false).map(|failed| !failed),
        CollectionFilter::Any(any) => Ok(any.is_empty() || verdicts(any, true)?),
        CollectionFilter::None(none) => verdicts(none, true).map(|any| !any),
        CollectionFilter::Condition(expr) => scope.eval(expr).map(|worth| worth.is_true()),
    }
}
