//! Parses views from JSON. Unknown keys and values are rejected with a sentence that names the place.

use super::{
    AgentView, BUTTON_COMMANDS, ButtonAction, FieldInput, FormField, MAX_VIEW_BYTES, MAX_VIEW_DEPTH, MAX_VIEW_NODES,
    PlotKind, TextLook, TextSegment, ValueName, ValueSource, ViewNode, ViewParseError,
};
use serde_json::{Map, Value};

/// Maximum length of a text in bytes.
const MAX_VIEW_TEXT_BYTES: usize = 4_000;
/// Maximum length of a property's or variable's name in bytes.
const MAX_VIEW_NAME_BYTES: usize = 100;
/// Maximum number of entries of a value written in the view itself.
const MAX_VIEW_ROWS: usize = 500;
/// Maximum number of a form's fields, a table's columns, or a field's choices.
const MAX_VIEW_PARTS: usize = 50;

/// Reads the fields of a JSON object and rejects unknown ones.
struct ViewObject<'a> {
    at: &'a str,
    what: &'a str,
    fields: &'a Map<String, Value>,
}

type ReadResult<T> = Result<T, ViewParseError>;

impl<'a> ViewObject<'a> {
    fn from_json(value: &'a Value, at: &'a str, what: &'a str) -> ReadResult<ViewObject<'a>> {
        let fields = value.as_object().ok_or_else(|| format!("{at} is no object, but {what} is one"))?;
        Ok(ViewObject { at, what, fields })
    }

    /// Returns an error if the object has a key that isn't in `known`.
    fn reject_unknown_keys(&self, known: &[&str]) -> ReadResult<()> {
        match self.fields.keys().find(|key| !known.contains(&key.as_str())) {
            Some(other) => {
                let other: String = other.chars().take(40).collect();
                Err(format!("{}: {} has no \u{201c}{other}\u{201d}; it has {}", self.at, self.what, known.join(", "))
                    .into())
            }
            None => Ok(()),
        }
    }

    fn get(&self, key: &str) -> ReadResult<&'a Value> {
        self.fields.get(key).ok_or_else(|| format!("{}: {} needs \u{201c}{key}\u{201d}", self.at, self.what).into())
    }

    fn get_string(&self, key: &str) -> ReadResult<String> {
        parse_text(self.get(key)?, &format!("{}.{key}", self.at))
    }

    fn get_string_or(&self, key: &str, or: &str) -> ReadResult<String> {
        if self.fields.contains_key(key) { self.get_string(key) } else { Ok(or.to_owned()) }
    }

    fn get_number(&self, key: &str) -> ReadResult<f64> {
        let value = self.get(key)?.as_f64().filter(|number| number.is_finite() && number.abs() < 1e15);
        value.ok_or_else(|| format!("{}.{key} is no number", self.at).into())
    }

    fn get_list(&self, key: &str, most: usize) -> ReadResult<&'a [Value]> {
        let all = self.get(key)?.as_array().ok_or_else(|| format!("{}.{key} is no list", self.at))?;
        if all.len() > most {
            return Err(format!("{}.{key} has {} entries; {most} are the most", self.at, all.len()).into());
        }
        Ok(all)
    }

    fn get_strings(&self, key: &str) -> ReadResult<Vec<String>> {
        if !self.fields.contains_key(key) {
            return Ok(Vec::new());
        }
        let all = self.get_list(key, MAX_VIEW_PARTS)?;
        all.iter().enumerate().map(|(at, value)| parse_text(value, &format!("{}.{key}[{at}]", self.at))).collect()
    }
}

fn parse_text(value: &Value, at: &str) -> ReadResult<String> {
    let text = value.as_str().ok_or_else(|| format!("{at} is no text"))?;
    if text.len() > MAX_VIEW_TEXT_BYTES {
        return Err(format!("{at} is longer than {MAX_VIEW_TEXT_BYTES} bytes").into());
    }
    Ok(text.to_owned())
}

/// Parses the name of a property.
fn parse_property_name(text: &str, at: &str) -> ReadResult<String> {
    let name = text.trim();
    if name.is_empty() || name.len() > MAX_VIEW_NAME_BYTES || name.contains(['\n', '\r', '{', '}']) {
        return Err(format!("{at} names no property").into());
    }
    Ok(name.to_owned())
}

/// Parses the name of a variable. Anything that could be more than a name is rejected.
fn parse_variable_name(text: &str, at: &str) -> ReadResult<String> {
    let name = text.trim();
    let letters = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if !letters
        || name.is_empty()
        || name.len() > MAX_VIEW_NAME_BYTES
        || name.starts_with(|c: char| c.is_numeric() || c == '_')
    {
        return Err(format!("{at} names no variable").into());
    }
    Ok(name.to_owned())
}

pub(super) fn parse_view(source: &str) -> ReadResult<AgentView> {
    if source.len() > MAX_VIEW_BYTES {
        return Err(format!("a view has at most {} kB", MAX_VIEW_BYTES >> 10).into());
    }
    let value: Value = serde_json::from_str(source).map_err(|error| format!("it isn't valid JSON: {error}"))?;
    let whole = ViewObject::from_json(&value, "it", "a view")?;
    whole.reject_unknown_keys(&["title", "view"])?;
    let title = whole.get_string_or("title", "")?;
    let mut nodes = 0;
    let root = parse_node(whole.get("view")?, "view", 1, &mut nodes)?;
    Ok(AgentView { title: title.replace(['\n', '\r'], " "), root })
}

fn parse_node(value: &Value, at: &str, depth: usize, nodes: &mut usize) -> ReadResult<ViewNode> {
    *nodes += 1;
    if *nodes > MAX_VIEW_NODES {
        return Err(format!("a view has at most {MAX_VIEW_NODES} nodes").into());
    }
    if depth > MAX_VIEW_DEPTH {
        return Err(format!("{at}: nodes stand inside at most {MAX_VIEW_DEPTH} others").into());
    }
    let kind = ViewObject::from_json(value, at, "a node")?.get_string("type")?;
    let what = match kind.as_str() {
        "form" | "text" | "table" | "plot" | "slider" | "button" | "column" | "row" => format!("a {kind}"),
        _ => {
            let kind: String = kind.chars().take(40).collect();
            let known = "column, row, text, table, plot, form, slider, button";
            return Err(format!("{at}: there is no \u{201c}{kind}\u{201d}; there are {known}").into());
        }
    };
    let object = ViewObject::from_json(value, at, &what)?;
    Ok(match kind.as_str() {
        "column" | "row" => {
            object.reject_unknown_keys(&["type", "children"])?;
            let children = object.get_list("children", MAX_VIEW_NODES)?.iter().enumerate();
            let child = |(index, child): (usize, &Value)| {
                parse_node(child, &format!("{at}.children[{index}]"), depth + 1, nodes)
            };
            let children = children.map(child).collect::<ReadResult<Vec<ViewNode>>>()?;
            if kind == "row" { ViewNode::Row(children) } else { ViewNode::Column(children) }
        }
        "text" => {
            object.reject_unknown_keys(&["type", "text", "look"])?;
            let look = match object.get_string_or("look", "body")?.as_str() {
                "heading" => TextLook::Heading,
                "body" => TextLook::Body,
                "caption" => TextLook::Caption,
                _ => return Err(format!("{at}.look is heading, body or caption").into()),
            };
            ViewNode::Text { pieces: parse_segments(&object.get_string("text")?, &format!("{at}.text"))?, look }
        }
        "table" => {
            object.reject_unknown_keys(&["type", "rows", "columns"])?;
            ViewNode::Table {
                rows: parse_source(object.get("rows")?, &format!("{at}.rows"))?,
                columns: object.get_strings("columns")?,
            }
        }
        "plot" => {
            object.reject_unknown_keys(&["type", "y", "x", "kind", "title"])?;
            let kind = match object.get_string_or("kind", "line")?.as_str() {
                "line" => PlotKind::Line,
                "bar" => PlotKind::Bar,
                "points" => PlotKind::Points,
                _ => return Err(format!("{at}.kind is line, bar or points").into()),
            };
            let x = object.fields.get("x").map(|x| parse_source(x, &format!("{at}.x"))).transpose()?;
            let y = parse_source(object.get("y")?, &format!("{at}.y"))?;
            ViewNode::Plot { kind, x, y, title: object.get_string_or("title", "")? }
        }
        "form" => {
            object.reject_unknown_keys(&["type", "title", "fields"])?;
            let fields = object.get_list("fields", MAX_VIEW_PARTS)?.iter().enumerate();
            let fields = fields
                .map(|(index, value)| parse_field(value, &format!("{at}.fields[{index}]")))
                .collect::<ReadResult<_>>()?;
            ViewNode::Form { title: object.get_string_or("title", "")?, fields }
        }
        "slider" => {
            object.reject_unknown_keys(&["type", "property", "label", "from", "to", "step"])?;
            let property = parse_property_name(&object.get_string("property")?, &format!("{at}.property"))?;
            let (from, to) = (object.get_number("from")?, object.get_number("to")?);
            let step =
                if object.fields.contains_key("step") { object.get_number("step")? } else { (to - from) / 100.0 };
            if from >= to || step <= 0.0 || (to - from) / step > 1e6 {
                return Err(format!(
                    "{at}: a slider goes up from \u{201c}from\u{201d} to \u{201c}to\u{201d} by a step"
                )
                .into());
            }
            ViewNode::Slider { label: object.get_string_or("label", &property)?, property, from, to, step }
        }
        _ => {
            object.reject_unknown_keys(&["type", "label", "action"])?;
            let label = object.get_string("label")?.replace(['\n', '\r'], " ");
            if label.trim().is_empty() {
                return Err(format!("{at}: a button needs a label").into());
            }
            ViewNode::Button { label, action: parse_action(object.get("action")?, &format!("{at}.action"))? }
        }
    })
}

fn parse_field(value: &Value, at: &str) -> ReadResult<FormField> {
    let object = ViewObject::from_json(value, at, "a field")?;
    object.reject_unknown_keys(&["property", "label", "input", "choices"])?;
    let property = parse_property_name(&object.get_string("property")?, &format!("{at}.property"))?;
    let choices = object.get_strings("choices")?;
    let input = match object.get_string_or("input", if choices.is_empty() { "text" } else { "choice" })?.as_str() {
        "text" => FieldInput::Text,
        "number" => FieldInput::Number,
        "check" => FieldInput::Check,
        "choice" if !choices.is_empty() => FieldInput::Choice(choices),
        "choice" => return Err(format!("{at}: a choice needs \u{201c}choices\u{201d}").into()),
        _ => return Err(format!("{at}.input is text, number, check or choice").into()),
    };
    Ok(FormField { label: object.get_string_or("label", &property)?, property, input })
}

fn parse_action(value: &Value, at: &str) -> ReadResult<ButtonAction> {
    let object = ViewObject::from_json(value, at, "an action")?;
    if object.fields.contains_key("command") {
        object.reject_unknown_keys(&["command"])?;
        let id = object.get_string("command")?;
        let known = BUTTON_COMMANDS.into_iter().find(|command| command.id == id);
        let listed = || BUTTON_COMMANDS.map(|command| command.id).join(", ");
        let command = known.ok_or_else(|| format!("{at}: a button commands {} and nothing else", listed()))?;
        return Ok(ButtonAction::Command(command));
    }
    object.reject_unknown_keys(&["tool", "arguments"])?;
    let name = object.get_string("tool")?;
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
    if !plain || name.is_empty() || name.len() > 64 {
        return Err(format!("{at}.tool is no name of a tool").into());
    }
    let arguments = match object.fields.get("arguments") {
        None => Map::new(),
        Some(value) => value.as_object().cloned().ok_or_else(|| format!("{at}.arguments is no object"))?,
    };
    Ok(ButtonAction::Tool { name, arguments })
}

fn parse_source(value: &Value, at: &str) -> ReadResult<ValueSource> {
    if let Value::Array(all) = value {
        if all.len() > MAX_VIEW_ROWS {
            return Err(format!("{at} has {} entries; {MAX_VIEW_ROWS} are the most", all.len()).into());
        }
        return Ok(ValueSource::Values(value.clone()));
    }
    let object = ViewObject::from_json(value, at, "what is shown")?;
    if object.fields.contains_key("property") {
        object.reject_unknown_keys(&["property"])?;
        return Ok(ValueSource::Bound(ValueName::Property(parse_property_name(&object.get_string("property")?, at)?)));
    }
    object.reject_unknown_keys(&["variable"])?;
    Ok(ValueSource::Bound(ValueName::Variable(parse_variable_name(&object.get_string("variable")?, at)?)))
}

/// Parses a text with `{property:NAME}` and `{variable:NAME}` in it. Other braces are literal.
fn parse_segments(text: &str, at: &str) -> ReadResult<Vec<TextSegment>> {
    let mut pieces: Vec<TextSegment> = Vec::new();
    let push = |pieces: &mut Vec<TextSegment>, words: &str| match pieces.last_mut() {
        Some(TextSegment::Words(last)) => last.push_str(words),
        _ if words.is_empty() => {}
        _ => pieces.push(TextSegment::Words(words.to_owned())),
    };
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        push(&mut pieces, before);
        let bound = behind.split_once('}').and_then(|(name, after)| Some((name.split_once(':')?, after)));
        match bound {
            Some((("property", name), after)) => {
                pieces.push(TextSegment::Bound(ValueName::Property(parse_property_name(name, at)?)));
                rest = after;
            }
            Some((("variable", name), after)) => {
                pieces.push(TextSegment::Bound(ValueName::Variable(parse_variable_name(name, at)?)));
                rest = after;
            }
            _ => {
                push(&mut pieces, "{");
                rest = behind;
            }
        }
    }
    push(&mut pieces, rest);
    Ok(pieces)
}
