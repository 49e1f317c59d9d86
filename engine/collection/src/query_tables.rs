//! Tables for queries in SQL: the rows of the views that a query reads, as JSON.

use super::table::CollectionCell;
use super::{Collection, CollectionError, CollectionTable, LocalNow, VolumeFilesAndLinks, is_collection};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use store::DocId;
use text::outline::LinkKind;
use text::sql_cell::split_collection_name;

/// Maximum number of rows that a query reads from a view.
const MAX_QUERY_ROWS: usize = 100_000;
/// Maximum number of columns of a view that a query reads.
const MAX_QUERY_COLUMNS: usize = 200;
/// Maximum size of all tables of a query, in megabytes of JSON.
const MAX_QUERY_MEGABYTES: usize = 8;
/// Maximum number of views that an error names.
const MAX_NAMED_VIEWS: usize = 20;
/// Name of the column with the path of each row's file.
const FILE_COLUMN: &str = "file";

/// Error that prevents a query from reading a collection, as a part of a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum QueryTableError {
    #[error("the volume has no such collection")]
    NoFile,
    #[error("{0}")]
    Unreadable(String),
    #[error(transparent)]
    Collection(#[from] CollectionError),
    #[error("it has no view “{name}”; there are: {there}")]
    NoView { name: String, there: String },
    #[error("its view has {0} columns, and a query reads up to {MAX_QUERY_COLUMNS}; remove some from the view")]
    Columns(usize),
    #[error("its view has {0} rows, and a query reads up to {MAX_QUERY_ROWS}; add a filter to the view")]
    Rows(usize),
    #[error("a query reads up to {MAX_QUERY_MEGABYTES} MB of collections; remove columns, or add a filter")]
    Bytes,
    #[error("its view takes too long to evaluate; make its formulas simpler, or add a filter")]
    Slow,
}

/// Evaluates the views that a query reads. Returns them as JSON by their names in the query: their columns, rows and
/// problems, or the error that prevents it.
///
/// Collections are found as links in the note `this` are. `read` returns the text of the file with a path, and
/// `goes_on` whether there's time left.
pub fn evaluate_query_tables<E: std::fmt::Display>(
    names: &BTreeSet<String>,
    source: VolumeFilesAndLinks<'_>,
    (this, now): (DocId, LocalNow),
    read: impl Fn(&str) -> Result<String, E>,
    goes_on: &mut dyn FnMut(usize) -> bool,
) -> Value {
    let (mut tables, mut bytes) = (Map::new(), 0);
    for name in names {
        let mut evaluate = || -> Result<Value, QueryTableError> {
            let (target, view) = split_collection_name(name).ok_or(QueryTableError::NoFile)?;
            let found = source.links.resolve(this, LinkKind::Markdown, &target.replace('%', "%25"));
            let path = found.and_then(|file| source.links.path(file)).filter(|path| is_collection(path));
            let text = read(path.ok_or(QueryTableError::NoFile)?);
            let text = text.map_err(|why| QueryTableError::Unreadable(why.to_string()))?;
            let table = evaluate_table(&Collection::parse(&text)?, view, source, (this, now), goes_on)?;
            bytes += table.to_string().len();
            if bytes > MAX_QUERY_MEGABYTES << 20 { Err(QueryTableError::Bytes) } else { Ok(table) }
        };
        let table = evaluate().unwrap_or_else(|why| json!({"error": why.to_string()}));
        tables.insert(name.clone(), table);
    }
    Value::Object(tables)
}

fn evaluate_table(
    base: &Collection,
    view: Option<&str>,
    source: VolumeFilesAndLinks<'_>,
    (this, now): (DocId, LocalNow),
    goes_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Value, QueryTableError> {
    let index = base.view_index(view).ok_or_else(|| {
        let there: Vec<&str> = base.views.iter().take(MAX_NAMED_VIEWS).map(|view| view.name.as_str()).collect();
        QueryTableError::NoView { name: view.unwrap_or_default().to_owned(), there: there.join(", ") }
    })?;
    let columns = base.views.get(index).map_or(0, |view| view.columns.len());
    if columns > MAX_QUERY_COLUMNS {
        return Err(QueryTableError::Columns(columns));
    }
    let table = base.evaluate_view_while(source, index, Some(this), now, goes_on).ok_or(QueryTableError::Slow)?;
    if table.rows.len() > MAX_QUERY_ROWS {
        return Err(QueryTableError::Rows(table.rows.len()));
    }
    Ok(table_json(&table))
}

/// Returns a table's columns by their titles, its rows and its problems. The first column is the path of the row's
/// file, unless the view has a column with that title.
fn table_json(table: &CollectionTable) -> Value {
    let has_file = table.columns.iter().any(|column| column.title.eq_ignore_ascii_case(FILE_COLUMN));
    let titles = table.columns.iter().map(|column| column.title.as_str());
    let columns: Vec<&str> = (!has_file).then_some(FILE_COLUMN).into_iter().chain(titles).collect();
    let rows = table.rows.iter().map(|row| {
        let path = (!has_file).then(|| Value::from(row.path.as_str()));
        path.into_iter().chain(row.cells.iter().map(cell_json)).collect::<Vec<_>>()
    });
    json!({"columns": columns, "rows": rows.collect::<Vec<_>>(), "problems": table.problems})
}

fn cell_json(cell: &CollectionCell) -> Value {
    match cell {
        CollectionCell::Empty => Value::Null,
        CollectionCell::Text(text) => Value::from(text.as_str()),
        #[allow(clippy::cast_possible_truncation, reason = "a whole number is kept whole")]
        CollectionCell::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => Value::from(*number as i64),
        CollectionCell::Number(number) => Value::from(*number),
        CollectionCell::Date(date) => Value::from(date.replace(' ', "T")),
        CollectionCell::Check(value) => Value::from(*value),
        CollectionCell::Link { words, .. } => Value::from(words.as_str()),
        CollectionCell::List(items) => items.iter().map(cell_json).collect(),
    }
}
