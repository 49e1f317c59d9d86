//! Edits to a `.base` file made through a collection's controls. Each edit changes one value and keeps the rest of the
//! file.

use super::expression::ExpressionError;
use super::{Collection, CollectionError, strip_note_prefix};
use serde_json::{Value, json};
use text::yaml_edit::{self, YamlEditError, YamlStep};

/// A change to a collection. Views are numbered from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectionChange {
    /// Sets how a view is sorted.
    Sort(usize, Vec<(String, bool)>),
    /// Sets what a view is grouped by.
    Group(usize, Option<(String, bool)>),
    /// Sets the columns of a view.
    Columns(usize, Vec<String>),
    /// Sets the width of a view's column in points.
    Width(usize, String, f32),
    /// Sets or removes the summary of a view's column.
    Summary(usize, String, Option<String>),
    /// Sets the layout of a view, such as table or cards.
    Kind(usize, String),
    /// Renames a view.
    Name(usize, String),
    /// Sets the maximum number of rows of a view.
    Limit(usize, Option<usize>),
    /// Adds a condition to a view, or to all views.
    AddCondition(Option<usize>, String),
    /// Replaces a condition.
    SetCondition(Option<usize>, usize, String),
    /// Removes a condition.
    RemoveCondition(Option<usize>, usize),
    /// Adds a copy of a view.
    AddView(usize),
    /// Removes a view.
    RemoveView(usize),
}

/// Error from applying a change to a collection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectionChangeError {
    /// The file isn't a valid collection.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// The condition can't be parsed.
    #[error(transparent)]
    Condition(#[from] ExpressionError),
    /// The YAML is written in a form that can only be edited as text.
    #[error(transparent)]
    Yaml(#[from] YamlEditError),
    /// The last view can't be removed.
    #[error("a collection has at least one view")]
    LastView,
    /// The condition no longer exists.
    #[error("that condition no longer exists")]
    ConditionGone,
}

/// Returns the text of a collection after a change.
///
/// # Errors
/// Returns an error if the file isn't a valid collection, or its YAML can only be edited as text. It also fails if the
/// condition can't be parsed or no longer exists, or if the change would remove the last view.
pub fn apply_change(text: &str, change: &CollectionChange) -> Result<String, CollectionChangeError> {
    let base = Collection::parse(text)?;
    let of_all = matches!(
        change,
        CollectionChange::AddCondition(None, _)
            | CollectionChange::SetCondition(None, ..)
            | CollectionChange::RemoveCondition(None, _)
    );
    let text = match of_all || base.raw["views"].as_array().is_some_and(|views| !views.is_empty()) {
        true => text.to_owned(),
        // Writes out the default view that is shown when the file defines none.
        false => set_yaml_value(text, &["views".into()], Some(&json!([{"type": "table", "name": "Table"}])))?,
    };
    let at = |view: usize, key: &str| [YamlStep::from("views"), YamlStep::Index(view), YamlStep::from(key)];
    let way =
        |(name, down): &(String, bool)| json!({"property": name, "direction": if *down { "DESC" } else { "ASC" }});
    let set = |view: usize, key: &str, value: Option<Value>| set_yaml_value(&text, &at(view, key), value.as_ref());
    let own = |view: Option<usize>| match view {
        Some(view) => at(view, "filters").to_vec(),
        None => vec![YamlStep::from("filters")],
    };
    match change {
        CollectionChange::Sort(view, sort) => {
            let sort: Vec<Value> = sort.iter().map(way).collect();
            set(*view, "sort", (!sort.is_empty()).then_some(Value::Array(sort)))
        }
        CollectionChange::Group(view, group) => set(*view, "groupBy", group.as_ref().map(way)),
        CollectionChange::Columns(view, columns) => set(*view, "order", Some(json!(columns))),
        CollectionChange::Kind(view, kind) => set(*view, "type", Some(json!(kind))),
        CollectionChange::Name(view, name) => set(*view, "name", Some(json!(name))),
        CollectionChange::Limit(view, limit) => set(*view, "limit", limit.map(|limit| json!(limit))),
        CollectionChange::Width(view, column, width) => {
            let known = &base.raw["views"][*view]["columnSize"];
            let key = column_key(known, column);
            #[allow(clippy::cast_possible_truncation, reason = "points of a screen")]
            let width = json!(width.round() as i64);
            set_yaml_value(
                &text,
                &[YamlStep::from("views"), YamlStep::Index(*view), YamlStep::from("columnSize"), YamlStep::Key(key)],
                Some(&width),
            )
        }
        CollectionChange::Summary(view, column, summary) => {
            let known = &base.raw["views"][*view]["summaries"];
            let last = summary.is_none() && known.as_object().is_some_and(|all| all.len() <= 1);
            if last {
                return set(*view, "summaries", None);
            }
            let path = [
                YamlStep::from("views"),
                YamlStep::Index(*view),
                YamlStep::from("summaries"),
                YamlStep::Key(column_key(known, column)),
            ];
            set_yaml_value(&text, &path, summary.as_ref().map(|summary| json!(summary)).as_ref())
        }
        CollectionChange::AddCondition(view, condition) => {
            check_condition(condition)?;
            let mut path = own(*view);
            let known = match view {
                Some(view) => &base.raw["views"][*view]["filters"],
                None => &base.raw["filters"],
            };
            match known {
                Value::Object(parts) if parts.get("and").is_some_and(Value::is_array) && parts.len() == 1 => {
                    let count = parts["and"].as_array().map_or(0, Vec::len);
                    path.extend([YamlStep::from("and"), YamlStep::Index(count)]);
                    set_yaml_value(&text, &path, Some(&json!(condition)))
                }
                Value::Null => set_yaml_value(&text, &path, Some(&json!({"and": [condition]}))),
                other => set_yaml_value(&text, &path, Some(&json!({"and": [other, condition]}))),
            }
        }
        CollectionChange::SetCondition(view, place, condition) => {
            check_condition(condition)?;
            let path = condition_path(&base, *view, *place, own(*view))?;
            set_yaml_value(&text, &path, Some(&json!(condition)))
        }
        CollectionChange::RemoveCondition(view, place) => {
            let path = own(*view);
            if base.conditions(*view).all.len() <= 1 {
                return set_yaml_value(&text, &path, None);
            }
            set_yaml_value(&text, &condition_path(&base, *view, *place, path)?, None)
        }
        CollectionChange::AddView(like) => {
            let mut view = base.raw["views"][*like].clone();
            if !view.is_object() {
                view = json!({"type": "table"});
            }
            let first = base.views.get(*like).map_or("Table", |view| view.name.as_str());
            let taken = |name: &String| base.views.iter().any(|view| view.name == *name);
            let name = (2..).map(|number| format!("{first} {number}")).find(|name| !taken(name));
            view["name"] = json!(name);
            let count = base.raw["views"].as_array().map_or(1, Vec::len);
            set_yaml_value(&text, &[YamlStep::from("views"), YamlStep::Index(count)], Some(&view))
        }
        CollectionChange::RemoveView(view) => {
            if base.views.len() < 2 {
                return Err(CollectionChangeError::LastView);
            }
            set_yaml_value(&text, &[YamlStep::from("views"), YamlStep::Index(*view)], None)
        }
    }
}

/// Returns the key of a column in an existing mapping, or the key that Obsidian would write for it.
fn column_key(known: &Value, column: &str) -> String {
    let same = |key: &&String| strip_note_prefix(key) == strip_note_prefix(column);
    let found = known.as_object().and_then(|known| known.keys().find(same).cloned());
    found.unwrap_or_else(|| if column.contains('.') { column.to_owned() } else { format!("note.{column}") })
}

fn set_yaml_value(text: &str, path: &[YamlStep], value: Option<&Value>) -> Result<String, CollectionChangeError> {
    Ok(yaml_edit::set_value(text, path, value)?)
}

fn check_condition(condition: &str) -> Result<(), ExpressionError> {
    super::expression::Expr::parse(condition).map(|_| ())
}

/// Returns the YAML path to one condition.
fn condition_path(
    base: &Collection,
    view: Option<usize>,
    place: usize,
    mut path: Vec<YamlStep>,
) -> Result<Vec<YamlStep>, CollectionChangeError> {
    let conditions = base.conditions(view);
    let known = match view {
        Some(view) => &base.raw["views"][view]["filters"],
        None => &base.raw["filters"],
    };
    let list = known.as_object().and_then(|parts| parts.get(&conditions.word));
    match list {
        Some(Value::Array(_)) => path.extend([YamlStep::Key(conditions.word), YamlStep::Index(place)]),
        Some(_) => path.push(YamlStep::Key(conditions.word)),
        None if place == 0 => {}
        None => return Err(CollectionChangeError::ConditionGone),
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "filters:\n  and:\n    - a > 1 # why\n    - b\nviews:\n  - type: table\n    name: One\n    \
                        order:\n      - file.name\n      - note.rating\n    columnSize:\n      note.rating: 70\n";

    fn check(change: CollectionChange, old: &str, new: &str) {
        assert_eq!(apply_change(BASE, &change), Ok(BASE.replacen(old, new, 1)), "{change:?}");
        let after = apply_change(BASE, &change).expect("it fits");
        assert!(Collection::parse(&after).is_ok(), "{after}");
    }

    #[test]
    fn a_change_touches_one_place() {
        let down = |name: &str| (name.to_owned(), true);
        check(
            CollectionChange::Sort(0, vec![down("rating")]),
            "rating: 70\n",
            "rating: 70\n    sort:\n      - property: rating\n        direction: DESC\n",
        );
        check(
            CollectionChange::Group(0, Some(down("x"))),
            "rating: 70\n",
            "rating: 70\n    groupBy:\n      property: x\n      direction: DESC\n",
        );
        check(CollectionChange::Width(0, "rating".into(), 99.6), "70", "100");
        check(CollectionChange::Width(0, "file.name".into(), 50.0), "70\n", "70\n      file.name: 50\n");
        check(CollectionChange::Columns(0, vec!["file.name".into()]), "      - note.rating\n", "");
        check(CollectionChange::Kind(0, "cards".into()), "table", "cards");
        check(CollectionChange::AddCondition(None, "c == \"d\"".into()), "- b\n", "- b\n    - c == \"d\"\n");
        check(
            CollectionChange::AddCondition(Some(0), "c".into()),
            "rating: 70\n",
            "rating: 70\n    filters:\n      and:\n        - c\n",
        );
        check(CollectionChange::SetCondition(None, 0, "z".into()), "a > 1", "z");
        check(CollectionChange::RemoveCondition(None, 0), "    - a > 1 # why\n", "");
        check(CollectionChange::Limit(0, Some(5)), "70\n", "70\n    limit: 5\n");
        check(
            CollectionChange::Summary(0, "rating".into(), Some("Sum".into())),
            "70\n",
            "70\n    summaries:\n      note.rating: Sum\n",
        );
        assert!(apply_change(BASE, &CollectionChange::AddCondition(None, "a ==".into())).is_err());
        assert!(apply_change(BASE, &CollectionChange::RemoveView(0)).is_err());
        let two = apply_change(BASE, &CollectionChange::AddView(0)).expect("it fits");
        assert!(two.starts_with(BASE) && two.contains("name: One 2"), "{two}");
        assert_eq!(apply_change(&two, &CollectionChange::RemoveView(1)).as_deref(), Ok(BASE));
        assert_eq!(
            apply_change("", &CollectionChange::Kind(0, "cards".into())).as_deref(),
            Ok("views:\n  - type: cards\n    name: Table\n")
        );
    }

    #[test]
    fn a_new_note_gets_what_the_conditions_ask_for() {
        let base = Collection::parse(
            "filters:\n  and:\n    - categories.contains(link(\"Books\"))\n    - '!file.name.contains(\"T\")'\n\
             \x20   - file.inFolder(\"Shelf/Old\")\nviews:\n  - type: table\n    name: A\n    filters: read == true \
             && file.hasTag(\"new\") && rating == 7\n",
        );
        let (folder, wanted) = base.expect("a collection").required_properties(0, None);
        assert_eq!(folder.as_deref(), Some("Shelf/Old"));
        let asked = json!({"categories": ["[[Books]]"], "read": true, "tags": ["new"], "rating": 7});
        assert_eq!(Value::Object(wanted), asked);
    }
}
