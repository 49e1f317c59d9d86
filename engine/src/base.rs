//! Collections: `.base` files as Obsidian's Bases writes them, a table over the properties of notes. The file is read
//! into filters and views, and a view is worked out over what the index knows; no note is opened for it.

mod expression;

use crate::outline::{plain, yaml};
use crate::session::Volume;
use crate::task::Day;
use expression::{Expr, Scope, Worth};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::DocId;

/// A collection.
#[derive(Clone, Debug, Default)]
pub struct Base {
    /// Its views, in order.
    pub views: Vec<View>,
    filter: Option<Filter>,
    titles: BTreeMap<String, String>,
    formulas: BTreeMap<String, Expr>,
}

/// A view of a collection.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Its name.
    pub name: String,
    /// How it is shown: `table`, `cards` or another word.
    pub kind: String,
    filter: Option<Filter>,
    columns: Vec<String>,
    sort: Vec<(String, bool)>,
    group: Option<String>,
    limit: Option<usize>,
}

#[derive(Clone, Debug)]
enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    None(Vec<Filter>),
    Is(Expr),
}

/// A view, worked out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Each column's property and title.
    pub columns: Vec<(String, String)>,
    /// The files, sorted.
    pub rows: Vec<Row>,
    /// What of the collection is not understood.
    pub problems: Vec<String>,
}

/// A file of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The file.
    pub file: DocId,
    /// Its path.
    pub path: String,
    /// What it is grouped by; empty without groups.
    pub group: String,
    /// What stands in each column.
    pub cells: Vec<String>,
}

impl Base {
    /// Reads a `.base` file.
    ///
    /// # Errors
    /// A sentence: it is no YAML, or an expression in it is not understood.
    pub fn read(text: &str) -> Result<Base, String> {
        let root = yaml(text).ok_or("the collection is not YAML; look at its text")?;
        let mut base = Base { filter: filter(&root["filters"])?, ..Base::default() };
        for (name, about) in root["properties"].as_object().into_iter().flatten() {
            if let Some(title) = about["displayName"].as_str() {
                base.titles.insert(bare(name).to_owned(), title.to_owned());
            }
        }
        for (name, formula) in root["formulas"].as_object().into_iter().flatten() {
            // A formula that is not understood makes its column empty, and the rest stays of use.
            if let Ok(formula) = Expr::read(&plain(formula)) {
                base.formulas.insert(name.clone(), formula);
            }
        }
        for view in root["views"].as_array().into_iter().flatten() {
            base.views.push(read_view(view)?);
        }
        if base.views.is_empty() {
            let columns = vec!["file.name".to_owned()];
            base.views.push(View { name: "Table".to_owned(), kind: "table".to_owned(), columns, ..View::default() });
        }
        Ok(base)
    }

    /// Works a view out. `this`: the note in which the collection is looked at.
    pub fn table(&self, volume: &Volume, view: usize, this: Option<DocId>, today: Day) -> Table {
        let Some(view) = self.views.get(view) else { return Table::default() };
        let title = |name: &String| {
            let title = self.titles.get(bare(name)).cloned();
            (name.clone(), title.unwrap_or_else(|| bare(name).trim_start_matches("file.").to_owned()))
        };
        let mut table = Table { columns: view.columns.iter().map(title).collect(), ..Table::default() };
        let mut problems = BTreeSet::new();
        let mut rows: Vec<(Vec<Worth>, Row)> = Vec::new();
        for row in volume.files.values() {
            let scope = Scope { volume, file: row.id, this, today, formulas: &self.formulas, depth: 0 };
            let passes = [&self.filter, &view.filter].into_iter().flatten().all(|filter| {
                passes(filter, &scope).unwrap_or_else(|why| {
                    problems.insert(why);
                    false
                })
            });
            if !passes {
                continue;
            }
            let cell = |name: &String| scope.property(name).unwrap_or(Worth::Nothing);
            let keys: Vec<Worth> = view.group.iter().chain(view.sort.iter().map(|(name, _)| name)).map(cell).collect();
            let group = view.group.as_ref().map_or_else(String::new, |name| cell(name).shown());
            let cells = view.columns.iter().map(|name| cell(name).shown()).collect();
            rows.push((keys, Row { file: row.id, path: row.path.clone(), group, cells }));
        }
        let down: Vec<bool> = view.group.iter().map(|_| false).chain(view.sort.iter().map(|(_, down)| *down)).collect();
        rows.sort_by(|(one, row), (other, with)| {
            let keys = one.iter().zip(other).zip(&down);
            let order = keys.map(|((one, other), down)| one.order(other, *down)).find(|order| order.is_ne());
            order.unwrap_or_else(|| row.path.cmp(&with.path))
        });
        rows.truncate(view.limit.unwrap_or(usize::MAX));
        table.rows = rows.into_iter().map(|(_, row)| row).collect();
        table.problems = problems.into_iter().collect();
        table
    }
}

/// A property without `note.`, which says nothing.
fn bare(name: &str) -> &str {
    name.strip_prefix("note.").unwrap_or(name)
}

fn read_view(view: &Value) -> Result<View, String> {
    let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
    let names = |list: &Value| -> Vec<String> { list.as_array().into_iter().flatten().map(plain).collect() };
    let mut columns = names(&view["order"]);
    if columns.is_empty() {
        columns.push("file.name".to_owned());
    }
    let sort = view["sort"].as_array().into_iter().flatten().filter_map(|sort| {
        let name = sort["property"].as_str().or(sort["column"].as_str())?;
        Some((name.to_owned(), sort["direction"].as_str().is_some_and(|word| word.eq_ignore_ascii_case("desc"))))
    });
    let group = view["groupBy"]["property"].as_str().or(view["groupBy"].as_str()).map(ToOwned::to_owned);
    Ok(View {
        name: text("name"),
        kind: text("type"),
        filter: filter(&view["filters"])?,
        columns,
        sort: sort.collect(),
        group,
        limit: view["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()),
    })
}

fn filter(value: &Value) -> Result<Option<Filter>, String> {
    let list = |value: &Value| -> Result<Vec<Filter>, String> {
        let all = match value {
            Value::Array(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        all.iter().filter_map(|one| filter(one).transpose()).collect()
    };
    match value {
        Value::Null => Ok(None),
        Value::Object(parts) => {
            let part = |(word, value): (&String, &Value)| match word.as_str() {
                "and" => list(value).map(Filter::All),
                "or" => list(value).map(Filter::Any),
                "not" => list(value).map(Filter::None),
                other => Err(format!("a filter has and, or, not, and no “{other}”")),
            };
            Ok(Some(Filter::All(parts.iter().map(part).collect::<Result<_, _>>()?)))
        }
        other => Expr::read(&plain(other)).map(|expr| Some(Filter::Is(expr))),
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
