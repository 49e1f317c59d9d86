//! Writes the accessibility tree of a page as text: a line for each element that says something, and a name (`e12`)
//! for each one that can be used.

use crate::page_events::{PageTab, shortened};
use serde_json::Value;
use std::collections::HashMap;

/// Maximum number of lines of a tree.
const MAX_TREE_LINES: usize = 4_000;
/// Maximum indentation of a line.
const MAX_INDENT: usize = 12;
/// Maximum length of a name, value or text on a line, in characters.
const MAX_LINE_CHARS: usize = 500;
/// Roles of elements that are only containers. Their children are shown instead.
const TRANSPARENT_ROLES: [&str; 16] = [
    "none",
    "generic",
    "presentation",
    "paragraph",
    "Section",
    "LabelText",
    "strong",
    "emphasis",
    "LayoutTable",
    "LayoutTableRow",
    "LayoutTableCell",
    "RootWebArea",
    "WebArea",
    "MenuListPopup",
    "rowgroup",
    "Iframe",
];
/// Roles of elements that are left out with all that they contain.
const SKIPPED_ROLES: [&str; 3] = ["InlineTextBox", "LineBreak", "ListMarker"];
/// Roles of fields whose parts are left out.
const WHOLE_ROLES: [&str; 4] = ["Date", "DateTime", "InputTime", "ColorWell"];
/// Roles of elements that can be used, besides those that can have the focus.
const USED_ROLES: [&str; 17] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "listbox",
    "checkbox",
    "radio",
    "switch",
    "slider",
    "spinbutton",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "tab",
    "treeitem",
    "DisclosureTriangle",
];

/// Returns the value of a node's field, as text.
fn value_text(field: &Value) -> String {
    match &field["value"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Writes the trees of a page's frames, each as the browser lists its nodes. Elements get names that stay the same as
/// long as the document does.
pub(crate) fn write_tree(frames: &[Value], tab: &mut PageTab) -> Vec<String> {
    let mut lines = Vec::new();
    for frame in frames {
        let nodes = frame["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
        write_frame(nodes, tab, &mut lines);
    }
    lines
}

fn write_frame(nodes: &[Value], tab: &mut PageTab, lines: &mut Vec<String>) {
    let by_id: HashMap<&str, &Value> = nodes.iter().filter_map(|node| Some((node["nodeId"].as_str()?, node))).collect();
    let Some(root) = nodes.first() else { return };
    // Node, indentation, and the name of the element above, which its text only repeats.
    let mut open: Vec<(&Value, usize, String)> = vec![(root, 0, String::new())];
    // A node is written once, even if a damaged list names it twice.
    let mut left = nodes.len();
    while let Some((node, indent, above)) = open.pop() {
        if lines.len() >= MAX_TREE_LINES {
            lines.push("(the rest of the page is left out)".to_owned());
            return;
        }
        left = left.saturating_sub(1);
        let role = value_text(&node["role"]);
        if SKIPPED_ROLES.contains(&role.as_str()) {
            continue;
        }
        let is_ignored = node["ignored"].as_bool() == Some(true);
        let name = shortened(&value_text(&node["name"]), MAX_LINE_CHARS);
        let (mut below, mut said) = (indent, above.clone());
        if role == "StaticText" {
            if !is_ignored && !name.is_empty() && !above.contains(&name) {
                lines.push(format!("{}{name}", "  ".repeat(indent)));
            }
            continue;
        }
        if !is_ignored && !TRANSPARENT_ROLES.contains(&role.as_str()) {
            if role != "image" || !name.is_empty() {
                lines.push(element_line(node, &role, &name, indent, tab));
            }
            below = (indent + 1).min(MAX_INDENT);
            said = format!("{name} {}", value_text(&node["value"]));
        }
        if WHOLE_ROLES.contains(&role.as_str()) {
            continue;
        }
        let children = node["childIds"].as_array().into_iter().flatten();
        let children = children.filter_map(|id| by_id.get(id.as_str()?).copied());
        if left > 0 {
            open.extend(children.rev().map(|child| (child, below, said.clone())));
        }
    }
}

fn element_line(node: &Value, role: &str, name: &str, indent: usize, tab: &mut PageTab) -> String {
    let mut line = format!("{}- {role}", "  ".repeat(indent));
    if !name.is_empty() {
        line.push_str(&format!(" \"{name}\""));
    }
    let value = shortened(&value_text(&node["value"]), MAX_LINE_CHARS);
    if !value.is_empty() && value != name {
        line.push_str(&format!(" = \"{value}\""));
    }
    let mut is_used = USED_ROLES.contains(&role);
    let mut states: Vec<String> = Vec::new();
    for property in node["properties"].as_array().into_iter().flatten() {
        let value = value_text(&property["value"]);
        let what = property["name"].as_str().unwrap_or_default();
        match (what, value.as_str()) {
            ("focusable", "true") => is_used = true,
            ("checked" | "pressed" | "expanded", value) => states.push(format!("{what}: {value}")),
            ("disabled" | "selected" | "required" | "readonly" | "focused", "true") => states.push(what.to_owned()),
            ("level", value) => states.push(format!("level {value}")),
            ("url", url) if role == "link" => states.push(format!("to {}", shortened(url, 200))),
            _ => {}
        }
    }
    if !states.is_empty() {
        line.push_str(&format!(" ({})", states.join(", ")));
    }
    if let Some(id) = node["backendDOMNodeId"].as_u64().filter(|_| is_used) {
        line.push_str(&format!(" [e{}]", element_number(tab, id)));
    }
    line
}

/// Returns the number of an element's name, which it keeps as long as the document lives.
fn element_number(tab: &mut PageTab, id: u64) -> u32 {
    if let Some(known) = tab.elements.get(&id) {
        return *known;
    }
    tab.last_element += 1;
    tab.elements.insert(id, tab.last_element);
    tab.last_element
}

/// Returns the element with this name in a document whose tree was read.
pub(crate) fn find_element(tab: &PageTab, name: &str) -> Option<u64> {
    let name = name.trim().trim_matches(['[', ']']);
    let number: u32 = name.strip_prefix('e').unwrap_or(name).parse().ok()?;
    tab.elements.iter().find(|(_, known)| **known == number).map(|(id, _)| *id)
}
