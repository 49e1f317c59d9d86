//! A view of a collection, worked out: which files, in which order, with what in each cell.

use super::expression::Expr;
use super::scope::Scope;
use super::worth::{Key, Worth};
use super::{Base, Filter, Now, Source, View, bare, summary};
use std::cell::Cell as Count;
use std::collections::{BTreeMap, BTreeSet};
use store::DocId;
use text::properties::Kind;

/// Problems that are told, at most.
const PROBLEMS: usize = 8;
/// After so many files it is asked whether to go on.
const SLICE: usize = 256;

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Words.
    Text(String),
    /// A number.
    Number(f64),
    /// A day, with or without a time.
    Date(String),
    /// Yes or no.
    Check(bool),
    /// A link: what it is called, what is written, and the file to which it leads.
    Link {
        /// What it is called.
        words: String,
        /// What is written.
        target: String,
        /// The file.
        to: Option<DocId>,
    },
    /// Several.
    List(Vec<Cell>),
}

impl Cell {
    /// As plain words.
    pub fn shown(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) | Cell::Date(text) => text.clone(),
            Cell::Number(number) => number.to_string(),
            Cell::Check(value) => if *value { "yes" } else { "no" }.to_owned(),
            Cell::Link { words, .. } => words.clone(),
            Cell::List(items) => items.iter().map(Cell::shown).collect::<Vec<_>>().join(", "),
        }
    }

    fn kind(&self) -> Option<Kind> {
        Some(match self {
            Cell::Empty => return None,
            Cell::Text(_) => Kind::Text,
            Cell::Number(_) => Kind::Number,
            Cell::Date(_) => Kind::Date,
            Cell::Check(_) => Kind::Check(false),
            Cell::Link { .. } => Kind::Link,
            Cell::List(_) => Kind::List,
        })
    }
}

/// A column of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its property, as it is written.
    pub name: String,
    /// What it is called.
    pub title: String,
    /// How wide it is, in points, if that is said.
    pub width: Option<f32>,
    /// What most of its values are.
    pub kind: Kind,
    /// What its values come to, and by which summary.
    pub summary: Option<(String, String)>,
}

impl Column {
    /// The note's property that its cells are, if they can be edited.
    pub fn property(&self) -> Option<&str> {
        match self.name.split_once('.') {
            Some(("file" | "formula", _)) => None,
            _ => Some(bare(&self.name)),
        }
    }
}

/// A view, worked out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// The files, sorted.
    pub rows: Vec<Row>,
    /// How many there would be without a limit.
    pub all: usize,
    /// Each group's name and how many rows it has, in order; none where there are no groups.
    pub groups: Vec<(String, usize)>,
    /// What of the collection is not understood.
    pub problems: Vec<String>,
}

/// A file of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The file.
    pub file: DocId,
    /// Its path.
    pub path: String,
    /// What it is grouped by; empty without groups.
    pub group: String,
    /// What stands in each column.
    pub cells: Vec<Cell>,
    /// What is shown above a card: a path or a link.
    pub image: Option<String>,
}

struct Sorted {
    keys: Vec<Key>,
    row: Row,
    /// What the summaries of columns are made of.
    worths: Vec<Worth>,
}

impl Base {
    /// Works a view out. `this`: the note in which the collection is looked at.
    pub fn table(&self, source: Source<'_>, view: usize, this: Option<DocId>, now: Now) -> Table {
        self.table_while(source, view, this, now, &mut |_| true).unwrap_or_default()
    }

    /// The same; it is asked now and then, with the count of files looked at, whether to go on.
    pub fn table_while(
        &self,
        source: Source<'_>,
        view: usize,
        this: Option<DocId>,
        now: Now,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Table> {
        let view = self.views.get(view)?;
        let mut problems: BTreeSet<String> = self.problems.iter().take(PROBLEMS).cloned().collect();
        let steps = Count::new(0);
        let mut found: Vec<Sorted> = Vec::new();
        for (place, row) in source.files.values().enumerate() {
            if place % SLICE == 0 && !goes_on(place) {
                return None;
            }
            steps.set(0);
            let formulas = &self.formulas;
            let scope = Scope { source, file: row.id, this, now, formulas, depth: 0, item: None, steps: &steps };
            let mut say = |why: String| {
                if problems.len() < PROBLEMS {
                    problems.insert(why);
                }
            };
            let passes = [&self.filter, &view.filter].into_iter().flatten().all(|filter| {
                passes(filter, &scope).unwrap_or_else(|why| {
                    say(why);
                    false
                })
            });
            if passes {
                found.push(self.row(view, &scope, &row.path, &mut say));
            }
        }
        let down: Vec<bool> =
            view.group.iter().map(|(_, down)| *down).chain(view.sort.iter().map(|(_, down)| *down)).collect();
        found.sort_by(|one, other| {
            let mut keys = one.keys.iter().zip(&other.keys).zip(&down);
            let order =
                keys.find_map(|((one, other), down)| Some(one.order(other, *down)).filter(|order| order.is_ne()));
            order.unwrap_or_else(|| one.row.path.cmp(&other.row.path))
        });
        let all = found.len();
        found.truncate(view.limit.unwrap_or(usize::MAX));
        goes_on(source.files.len()).then_some(())?;
        let columns = self.columns(view, &found, source, this, now);
        let rows: Vec<Row> = found.into_iter().map(|sorted| sorted.row).collect();
        let mut groups: Vec<(String, usize)> = Vec::new();
        for row in rows.iter().filter(|_| view.group.is_some()) {
            match groups.last_mut().filter(|(name, _)| *name == row.group) {
                Some((_, count)) => *count += 1,
                None => groups.push((row.group.clone(), 1)),
            }
        }
        Some(Table { columns, rows, all, groups, problems: problems.into_iter().collect() })
    }

    fn row(&self, view: &View, scope: &Scope<'_>, path: &str, say: &mut dyn FnMut(String)) -> Sorted {
        let mut worth = |name: &String| {
            scope.property(name).unwrap_or_else(|why| {
                say(why);
                Worth::Nothing
            })
        };
        let group = view.group.as_ref().map(|(name, _)| worth(name));
        let keys = group.iter().map(Worth::key).collect::<Vec<_>>().into_iter();
        let keys = keys.chain(view.sort.iter().map(|(name, _)| worth(name).key()).collect::<Vec<_>>()).collect();
        let (mut cells, mut worths) = (Vec::with_capacity(view.columns.len()), Vec::new());
        for name in &view.columns {
            // A file's name leads to it.
            let found = if name == "file.name" { scope.file_of(scope.file) } else { worth(name) };
            cells.push(found.cell());
            if view.summaries.contains_key(bare(name)) {
                worths.push(found);
            }
        }
        let image = view.image.as_ref().and_then(|image| match worth(image) {
            Worth::File(_, path) => Some(path),
            Worth::Link(link) => Some(link.target),
            Worth::List(items) => items.first().map(Worth::shown),
            Worth::Nothing => None,
            other => Some(other.shown()),
        });
        let group = group.map_or_else(String::new, |group| group.shown());
        Sorted { keys, worths, row: Row { file: scope.file, path: path.to_owned(), group, cells, image } }
    }

    fn columns(&self, view: &View, found: &[Sorted], source: Source<'_>, this: Option<DocId>, now: Now) -> Vec<Column> {
        let mut summed = 0;
        let mut columns = Vec::with_capacity(view.columns.len());
        for (place, name) in view.columns.iter().enumerate() {
            let mut kinds: BTreeMap<u8, (usize, Kind)> = BTreeMap::new();
            for kind in found.iter().filter_map(|sorted| sorted.row.cells.get(place)?.kind()) {
                kinds.entry(rank(kind)).or_insert((0, kind)).0 += 1;
            }
            let most = kinds.values().max_by_key(|(count, _)| *count).map(|(_, kind)| *kind);
            let kind = most.unwrap_or(if matches!(bare(name), "tags" | "aliases") { Kind::List } else { Kind::Text });
            let summary = view.summaries.get(bare(name)).map(|summary| {
                let values: Vec<Worth> = found.iter().filter_map(|sorted| sorted.worths.get(summed).cloned()).collect();
                summed += 1;
                let worth = match self.summaries.get(summary) {
                    Some(expr) => self.summed(expr, values, source, this, now),
                    None => summary::of(summary, &values),
                };
                (summary.clone(), worth.shown())
            });
            columns.push(Column {
                name: name.clone(),
                title: self.title(name),
                width: view.widths.get(bare(name)).copied(),
                kind,
                summary,
            });
        }
        columns
    }

    /// A summary of the collection's own: an expression over `values`.
    fn summed(&self, expr: &Expr, values: Vec<Worth>, source: Source<'_>, this: Option<DocId>, now: Now) -> Worth {
        let steps = Count::new(0);
        let values = Worth::List(values);
        let file = this.unwrap_or(DocId([0; 16]));
        let item = Some((&values, 0, None));
        let scope = Scope { source, file, this, now, formulas: &self.formulas, depth: 0, item, steps: &steps };
        scope.worth(expr).unwrap_or(Worth::Nothing)
    }
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Text => 0,
        Kind::Number => 1,
        Kind::Date => 2,
        Kind::Check(_) => 3,
        Kind::List => 4,
        Kind::Link => 5,
        Kind::Nested => 6,
    }
}

fn passes(filter: &Filter, scope: &Scope<'_>) -> Result<bool, String> {
    let verdicts = |all: &[Filter], wanted: bool| -> Result<bool, String> {
        for one in all {
            if passes(one, scope)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    };
    match filter {
        Filter::All(all) => verdicts(all, false).map(|failed| !failed),
        Filter::Any(any) => Ok(any.is_empty() || verdicts(any, true)?),
        Filter::None(none) => verdicts(none, true).map(|any| !any),
        Filter::Is(expr) => scope.worth(expr).map(|worth| worth.is_true()),
    }
}
