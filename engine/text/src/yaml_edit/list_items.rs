//! Changes of lists, entry by entry, so that the comments between the other entries stay.

use super::{YamlSpan, YamlStep, node_at, parse_marked, replace_range, set_value};
use saphyr::YamlData;
use serde_json::{Map, Value};

/// Maximum number of entries, or of an entry's keys, that are changed one by one. The text is parsed for each.
const MAX_CHANGED_ITEMS: usize = 20;

/// Changes a list from `old` to `new`. Returns `None` if its entries can't be changed one by one.
pub(super) fn set_items(text: &str, path: &[YamlStep], old: &[Value], new: &[Value]) -> Option<String> {
    let first = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[first..], &new[first..]);
    let rest = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (gone, added) = (&old[..old.len() - rest], &new[..new.len() - rest]);
    if gone.len().max(added.len()) > MAX_CHANGED_ITEMS {
        return None;
    }
    let item_path = |at: usize| [path, &[YamlStep::Index(first + at)][..]].concat();
    match (gone, added) {
        (gone, []) => {
            let mut places = (0..gone.len()).rev();
            places.try_fold(text.to_owned(), |text, at| set_value(&text, &item_path(at), None).ok())
        }
        ([], added) if rest == 0 => {
            let mut items = added.iter().enumerate();
            items.try_fold(text.to_owned(), |text, (at, item)| set_value(&text, &item_path(at), Some(item)).ok())
        }
        ([Value::Object(old)], [Value::Object(new)]) => set_fields(text, &item_path(0), old, new),
        ([_], [item]) => set_value(text, &item_path(0), Some(item)).ok(),
        (gone, added) => move_items(text, path, first, &moved_places(gone, added)?),
    }
}

fn set_fields(text: &str, path: &[YamlStep], old: &Map<String, Value>, new: &Map<String, Value>) -> Option<String> {
    let changed =
        new.iter().filter(|(key, value)| old.get(*key) != Some(*value)).map(|(key, value)| (key, Some(value)));
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key, None));
    let fields: Vec<(&String, Option<&Value>)> = changed.chain(gone).collect();
    if fields.len() > MAX_CHANGED_ITEMS {
        return None;
    }
    fields.into_iter().try_fold(text.to_owned(), |text, (key, value)| {
        set_value(&text, &[path, &[YamlStep::Key(key.clone())][..]].concat(), value).ok()
    })
}

/// Returns where each entry of `new` is in `old`; `None` if they aren't the same entries in another order.
fn moved_places(old: &[Value], new: &[Value]) -> Option<Vec<usize>> {
    let mut places: Vec<usize> = Vec::new();
    for item in new {
        let place = (0..old.len()).find(|at| old[*at] == *item && !places.contains(at))?;
        places.push(place);
    }
    (places.len() == old.len()).then_some(places)
}

/// Moves the entries from the one at `first` on, each with its lines and the comments above it. `order` says where each
/// one was, counted from `first`.
fn move_items(text: &str, path: &[YamlStep], first: usize, order: &[usize]) -> Option<String> {
    let documents = parse_marked(text).ok()?;
    let places = YamlSpan::of(text);
    let YamlData::Sequence(items) = &node_at(documents.first()?, path)?.data else { return None };
    let mut ranges = Vec::new();
    for at in first..first + order.len() {
        let item = items.get(at)?;
        let (start, line) = (places.node_start(item), places.line_range(places.node_start(item)));
        if text[line.start..start].trim() != "-" {
            return None;
        }
        // Comments above the first entry may be about the whole list.
        let above =
            at.checked_sub(1).map_or(line.start, |before| places.line_range(places.node_end(&items[before])).end);
        ranges.push(above..places.line_range(places.node_end(item)).end);
    }
    let whole = ranges.first()?.start..ranges.last()?.end;
    if !text[whole.clone()].ends_with('\n') {
        return None;
    }
    let moved = order.iter().map(|at| ranges.get(*at).map(|range| &text[range.clone()]));
    Some(replace_range(text, whole, &moved.collect::<Option<String>>()?))
}
