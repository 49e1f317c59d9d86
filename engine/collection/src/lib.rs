//! Collections: `.base` files in the format of Obsidian's Bases, which show a table over the properties of notes.
//!
//! A file is parsed into filters and views. A view is evaluated over the index, so no note is opened for it.

mod change;
mod embed;
mod eval;
mod expression;
mod functions;
mod query_tables;
mod snapshot;
mod summary;
mod table;
mod value;

pub use change::{CollectionChange, CollectionChangeError, apply_change};
pub use embed::{EmbeddedCollection, find_embeds, parse_embed, replace_embeds, split_around_embeds};
pub use expression::ExpressionError;
pub use query_tables::evaluate_query_tables;
pub use snapshot::{MirrorSlice, MirroredFile, VolumeMirror};
pub use summary::SUMMARY_NAMES;
pub use table::{CollectionCell, CollectionColumn, CollectionRow, CollectionTable};

use expression::Expr;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::disk::FileRow;
use text::links::VolumeLinks;
use text::outline::plain_value;
use text::task::CalendarDay;
use text::yaml_edit::{YamlReadError, parse_value};

/// Stack size in bytes for a thread that evaluates collections.
///
/// Expressions are evaluated recursively, and in unoptimized test builds each level takes a lot of stack.
pub const EVAL_STACK_BYTES: usize = 32 << 20;
/// Maximum nesting depth of filters.
const MAX_FILTER_DEPTH: usize = 16;

/// The files and links over which a collection is evaluated.
#[derive(Clone, Copy)]
pub struct VolumeFilesAndLinks<'a> {
    /// The files by their paths.
    pub files: &'a BTreeMap<String, FileRow>,
    /// The links between the volume's files.
    pub links: &'a VolumeLinks,
}

/// The current time in the user's time zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalNow {
    /// Local time in milliseconds since 1970.
    pub local: i64,
    /// Offset of local time from UTC in milliseconds; positive when ahead.
    pub offset: i64,
}

impl LocalNow {
    /// Returns today's date.
    pub fn today(self) -> CalendarDay {
        CalendarDay(self.local.div_euclid(86_400_000))
    }
}

/// Error from parsing a collection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectionError {
    /// The text isn't valid YAML.
    #[error("the collection is not YAML: {0}")]
    NotYaml(#[from] YamlReadError),
    /// The YAML document isn't a mapping.
    #[error("the collection is a text without views; look at it")]
    NotMapping,
    /// Filters nest too deep.
    #[error("the collection's filters stand too deep in one another")]
    FilterTooDeep,
    /// A filter group uses an unknown keyword.
    #[error("a filter has and, or, not, and no “{word}”")]
    FilterWord {
        /// The unknown keyword.
        word: String,
    },
    /// A condition can't be parsed.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
}

/// A parsed `.base` file.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// Views, in order.
    pub views: Vec<CollectionView>,
    filter: Option<CollectionFilter>,
    titles: BTreeMap<String, String>,
    formulas: BTreeMap<String, Expr>,
    summaries: BTreeMap<String, Expr>,
    /// Errors from formulas that can't be parsed.
    problems: Vec<String>,
    raw: Value,
}

/// A view of a collection.
#[derive(Clone, Debug, Default)]
pub struct CollectionView {
    /// Name of the view, shown as its tab.
    pub name: String,
    /// Layout of the view: `table`, `cards` or another name.
    pub kind: String,
    /// Sort keys: property names, and whether each sorts descending.
    pub sort: Vec<(String, bool)>,
    /// Property to group by, and whether groups sort descending.
    pub group: Option<(String, bool)>,
    /// Properties shown as columns, in order.
    pub columns: Vec<String>,
    /// Maximum number of rows; `None` for no limit.
    pub limit: Option<usize>,
    /// Width of a card in points.
    pub card: Option<f32>,
    /// Marker in front of a list item: `bullet`, `number` or `none`.
    pub markers: String,
    /// Whether a list item's properties are shown below it, one per line.
    pub nested: bool,
    /// Separator between a list item's properties on one line.
    pub separator: String,
    filter: Option<CollectionFilter>,
    widths: BTreeMap<String, f32>,
    summaries: BTreeMap<String, String>,
    image: Option<String>,
}

/// Conditions of a collection or of one of its views, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterConditions {
    /// How the conditions are combined: `and`, `or` or `not`.
    pub word: String,
    /// Each condition, and whether it's a single expression rather than a nested group.
    pub all: Vec<(String, bool)>,
}

#[derive(Clone, Debug)]
enum CollectionFilter {
    All(Vec<CollectionFilter>),
    Any(Vec<CollectionFilter>),
    None(Vec<CollectionFilter>),
    Condition(Expr),
}

/// Returns whether a path has the extension of a collection.
pub fn is_collection(path: &str) -> bool {
    store::FileKind::from_path(path) == store::FileKind::Collection
}

impl Collection {
    /// Parses a `.base` file.
    ///
    /// # Errors
    /// Returns an error if the text isn't a YAML mapping, or a filter can't be parsed.
    pub fn parse(text: &str) -> Result<Collection, CollectionError> {
        let root = match text.trim() {
            "" => Value::Object(Map::new()),
            _ => parse_value(text)?,
        };
        if !root.is_object() {
            return Err(CollectionError::NotMapping);
        }
        let mut base = Collection { filter: parse_filter(&root["filters"], 0)?, ..Collection::default() };
        for (name, title) in root["display"].as_object().into_iter().flatten() {
            base.titles.insert(strip_note_prefix(name).to_owned(), plain_value(title));
        }
        for (name, about) in root["properties"].as_object().into_iter().flatten() {
            if let Some(title) = about["displayName"].as_str() {
                base.titles.insert(strip_note_prefix(name).to_owned(), title.to_owned());
            }
        }
        for (key, into) in [("formulas", &mut base.formulas), ("summaries", &mut base.summaries)] {
            for (name, formula) in root[key].as_object().into_iter().flatten() {
                // A formula that can't be parsed leaves its column empty; the rest of the collection stays usable.
                match Expr::parse(&plain_value(formula)) {
                    Ok(formula) => _ = into.insert(name.clone(), formula),
                    Err(why) => base.problems.push(why.to_string()),
                }
            }
        }
        for view in root["views"].as_array().into_iter().flatten() {
            base.views.push(parse_view(view)?);
        }
        if base.views.is_empty() {
            let columns = vec!["file.name".to_owned()];
            base.views.push(CollectionView {
                name: "Table".to_owned(),
                kind: "table".to_owned(),
                columns,
                ..CollectionView::default()
            });
        }
        base.raw = root;
        Ok(base)
    }

    /// Returns the title of a property.
    pub fn property_title(&self, name: &str) -> String {
        let short = strip_note_prefix(name);
        let usual = || match short {
            "file.name" => "name".to_owned(),
            "file.mtime" => "modified time".to_owned(),
            "file.ctime" => "created time".to_owned(),
            other => other.trim_start_matches("file.").trim_start_matches("formula.").to_owned(),
        };
        self.titles.get(short).cloned().unwrap_or_else(usual)
    }

    /// Returns the index of the view with this name, or of the first view if no name is given.
    pub fn view_index(&self, name: Option<&str>) -> Option<usize> {
        let Some(name) = name else { return Some(0) };
        self.views.iter().position(|view| view.name.eq_ignore_ascii_case(name))
    }

    /// Returns the names of the collection's formulas.
    pub fn formulas(&self) -> impl Iterator<Item = &str> {
        self.formulas.keys().map(String::as_str)
    }

    /// Returns the conditions of a view, or with `None` those that apply to all views.
    pub fn conditions(&self, view: Option<usize>) -> FilterConditions {
        let filters = match view {
            Some(view) => &self.raw["views"][view]["filters"],
            None => &self.raw["filters"],
        };
        let item = |value: &Value| match value {
            Value::Object(parts) => {
                let part = |(word, all): (&String, &Value)| {
                    let all = all.as_array().map_or_else(
                        || plain_value(all),
                        |all| all.iter().map(plain_text).collect::<Vec<_>>().join("; "),
                    );
                    format!("{word}: {all}")
                };
                (parts.iter().map(part).collect::<Vec<_>>().join("; "), false)
            }
            other => (plain_value(other), true),
        };
        match filters {
            Value::Null => FilterConditions { word: "and".to_owned(), all: Vec::new() },
            Value::Object(parts) if parts.len() == 1 => {
                let (word, value) = parts.iter().next().map_or(("and", &Value::Null), |(word, value)| (word, value));
                let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                let items = items.iter().filter(|item| !item.is_null());
                FilterConditions { word: word.to_owned(), all: items.map(item).collect() }
            }
            other => FilterConditions { word: "and".to_owned(), all: vec![item(other)] },
        }
    }

    /// Returns the folder and properties that a note needs to appear in a view, as far as the conditions tell.
    ///
    /// `this` is the name of the note in which the collection is shown.
    pub fn required_properties(&self, view: usize, this: Option<&str>) -> (Option<String>, Map<String, Value>) {
        let mut wanted = (None, Map::new());
        let filters = [self.filter.as_ref(), self.views.get(view).and_then(|view| view.filter.as_ref())];
        filters.into_iter().flatten().for_each(|filter| collect_requirements(filter, this, &mut wanted));
        wanted
    }
}

fn plain_text(value: &Value) -> String {
    if value.is_object() { "…".to_owned() } else { plain_value(value) }
}

/// Collects the folder and properties that a filter requires of a note.
fn collect_requirements(
    filter: &CollectionFilter,
    this: Option<&str>,
    wanted: &mut (Option<String>, Map<String, Value>),
) {
    let expr = match filter {
        CollectionFilter::All(all) => return all.iter().for_each(|one| collect_requirements(one, this, wanted)),
        CollectionFilter::Any(any) => {
            return any.iter().take(1).for_each(|one| collect_requirements(one, this, wanted));
        }
        CollectionFilter::None(_) => return,
        CollectionFilter::Condition(expr) => expr,
    };
    collect_expr_requirements(expr, this, wanted);
}

fn collect_expr_requirements(expr: &Expr, this: Option<&str>, wanted: &mut (Option<String>, Map<String, Value>)) {
    let simple = |expr: &Expr| -> Option<Value> {
        match expr {
            Expr::Name(name) if name == "this" => this.map(|this| Value::from(format!("[[{this}]]"))),
            Expr::Member(of, part) if part == "file" && **of == Expr::Name("this".to_owned()) => {
                this.map(|this| Value::from(format!("[[{this}]]")))
            }
            Expr::Literal(value::ExprValue::Text(text)) => Some(Value::from(text.as_str())),
            Expr::Literal(value::ExprValue::Bool(value)) => Some(Value::from(*value)),
            #[allow(clippy::cast_possible_truncation, reason = "a whole number is kept whole")]
            Expr::Literal(value::ExprValue::Number(number)) if number.fract() == 0.0 && number.abs() < 1e15 => {
                Some(Value::from(*number as i64))
            }
            Expr::Literal(value::ExprValue::Number(number)) => Some(Value::from(*number)),
            Expr::Call(name, arguments) if **name == Expr::Name("link".to_owned()) => match arguments.first() {
                Some(Expr::Literal(value::ExprValue::Text(target))) => Some(Value::from(format!("[[{target}]]"))),
                _ => None,
            },
            _ => None,
        }
    };
    match expr {
        Expr::Binary(sign, one, other) if sign == "&&" => {
            collect_expr_requirements(one, this, wanted);
            collect_expr_requirements(other, this, wanted);
        }
        Expr::Binary(sign, one, other) if sign == "==" => match (property_name(one).as_deref(), simple(other)) {
            (Some("file.folder"), Some(folder)) => wanted.0 = Some(plain_value(&folder)),
            (Some(name), Some(value)) if !name.starts_with("file.") => _ = wanted.1.insert(name.to_owned(), value),
            _ => {}
        },
        Expr::Call(what, arguments) => {
            let Expr::Member(of, method) = what.as_ref() else { return };
            let Some(value) = arguments.first().and_then(simple) else { return };
            let mut add = |name: String| {
                let list = wanted.1.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&value)) {
                    list.push(value.clone());
                }
            };
            match (property_name(of).as_deref(), method.as_str()) {
                (Some("file"), "hasTag") => add("tags".to_owned()),
                (Some("file.tags"), "contains" | "containsAny") => add("tags".to_owned()),
                (Some("file"), "inFolder") => wanted.0 = Some(plain_value(&value).trim_matches('/').to_owned()),
                (Some(name), "contains" | "containsAny" | "containsAll") if !name.starts_with("file") => {
                    add(name.to_owned());
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// Returns the property that an expression reads, without `note.` and `list()`.
fn property_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Name(name) => Some(name.clone()),
        Expr::Member(of, part) => match of.as_ref() {
            Expr::Name(name) if name == "note" => Some(part.clone()),
            Expr::Name(name) if name == "file" => Some(format!("file.{part}")),
            _ => None,
        },
        Expr::Call(what, arguments) if **what == Expr::Name("list".to_owned()) => {
            arguments.first().and_then(property_name)
        }
        _ => None,
    }
}

/// Removes a property's `note.` or `property.` prefix, which carries no information.
pub fn strip_note_prefix(name: &str) -> &str {
    name.strip_prefix("note.").or_else(|| name.strip_prefix("property.")).unwrap_or(name)
}

fn parse_view(view: &Value) -> Result<CollectionView, CollectionError> {
    let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
    let names = |list: &Value| -> Vec<String> { list.as_array().into_iter().flatten().map(plain_value).collect() };
    let mut columns = names(&view["order"]);
    if columns.is_empty() && !view["order"].is_array() {
        columns.push("file.name".to_owned());
    }
    // A map view needs the column that holds its coordinates.
    if let Some(places) = view["coordinates"].as_str().filter(|_| view["type"] == "map")
        && !columns.iter().any(|column| strip_note_prefix(column) == strip_note_prefix(places))
    {
        columns.push(places.to_owned());
    }
    let down = |value: &Value| value["direction"].as_str().is_some_and(|word| word.eq_ignore_ascii_case("desc"));
    let sort = view["sort"].as_array().into_iter().flatten().filter_map(|sort| {
        let name = sort["property"].as_str().or(sort["column"].as_str())?;
        Some((name.to_owned(), down(sort)))
    });
    let group = view["groupBy"]["property"].as_str().or(view["groupBy"].as_str());
    #[allow(clippy::cast_possible_truncation, reason = "points of a screen")]
    let points = |value: &Value| value.as_f64().map(|points| points.clamp(24.0, 2_000.0) as f32);
    let widths = view["columnSize"].as_object().into_iter().flatten();
    let summaries = view["summaries"].as_object().into_iter().flatten();
    Ok(CollectionView {
        name: text("name"),
        kind: text("type"),
        filter: parse_filter(&view["filters"], 0)?,
        columns,
        sort: sort.collect(),
        group: group.map(|group| (group.to_owned(), down(&view["groupBy"]))),
        limit: view["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()),
        card: points(&view["cardSize"]),
        markers: text("markers"),
        nested: view["indentProperties"].as_bool().unwrap_or(false),
        separator: view["separator"].as_str().unwrap_or(", ").to_owned(),
        widths: widths.filter_map(|(name, size)| Some((strip_note_prefix(name).to_owned(), points(size)?))).collect(),
        summaries: summaries
            .map(|(name, summary)| (strip_note_prefix(name).to_owned(), plain_value(summary)))
            .collect(),
        image: view["image"].as_str().filter(|image| !image.is_empty()).map(str::to_owned),
    })
}

fn parse_filter(value: &Value, depth: usize) -> Result<Option<CollectionFilter>, CollectionError> {
    if depth > MAX_FILTER_DEPTH {
        return Err(CollectionError::FilterTooDeep);
    }
    let list = |value: &Value| -> Result<Vec<CollectionFilter>, CollectionError> {
        let all = match value {
            Value::Array(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        all.iter().filter_map(|one| parse_filter(one, depth + 1).transpose()).collect()
    };
    match value {
        Value::Null => Ok(None),
        Value::Object(parts) => {
            let part = |(word, value): (&String, &Value)| match word.as_str() {
                "and" => list(value).map(CollectionFilter::All),
                "or" => list(value).map(CollectionFilter::Any),
                "not" => list(value).map(CollectionFilter::None),
                other => Err(CollectionError::FilterWord { word: other.to_owned() }),
            };
            Ok(Some(CollectionFilter::All(parts.iter().map(part).collect::<Result<_, _>>()?)))
        }
        other => Ok(Some(CollectionFilter::Condition(Expr::parse(&plain_value(other))?))),
    }
}
