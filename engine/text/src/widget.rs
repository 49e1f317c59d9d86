//! Widgets: fenced blocks that contain a control and its value as YAML, and that run as the assignment of that value.
//!
//! ````markdown
//! ```widget
//! slider: threshold min: 0 max: 1 step: 0.05 value: 0.4
//! ```
//! ````

use crate::python_scope::is_variable_name;
use crate::sql_cell::text_literal;
use crate::task::CalendarDay;

use crate::yaml_edit::{YamlEditError, YamlReadError, YamlStep, parse_value, set_value};
use serde_json::{Map, Number, Value};

/// Maximum size of a widget's YAML.
const MAX_WIDGET_BYTES: usize = 65_536;
/// Maximum number of options of a select.
const MAX_SELECT_OPTIONS: usize = 1_000;
/// Maximum length of an invalid name in an error message.
const MAX_SHOWN_NAME_CHARS: usize = 100;
/// Maximum length of a widget's label.
const MAX_WIDGET_LABEL_CHARS: usize = 200;
/// Kinds of widgets. The kind is the key whose value names the variable.
const WIDGET_KINDS: [&str; 5] = ["slider", "select", "checkbox", "text", "date"];

/// A widget: a control that sets a variable of the note's cells.
#[derive(Clone, Debug, PartialEq)]
pub struct WidgetSpec {
    /// Name of the Python variable.
    pub name: String,
    /// Text next to the control; the variable's name if no label is given.
    pub label: String,
    /// The control and its value.
    pub control: WidgetControl,
}

/// A control and its value.
#[derive(Clone, Debug, PartialEq)]
pub enum WidgetControl {
    /// A number in a range.
    Slider {
        /// Minimum value.
        min: f64,
        /// Maximum value, above `min`.
        max: f64,
        /// Distance between two values, above 0.
        step: f64,
        /// The value: an integer if `min`, `step` and the value are written as integers.
        value: Number,
        /// Whether the values are integers.
        whole: bool,
    },
    /// A choice of texts, numbers or booleans.
    Select {
        /// The options, at least one.
        options: Vec<Value>,
        /// The chosen option.
        value: Value,
    },
    /// True or false.
    Checkbox {
        /// Whether it's checked.
        value: bool,
    },
    /// A text field.
    Text {
        /// The text.
        value: String,
    },
    /// A calendar day.
    Date {
        /// Year, month and day.
        value: (i64, i64, i64),
    },
}

/// Error that prevents a widget from being shown and run, as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WidgetError {
    /// The widget's YAML is too long.
    #[error("this widget is longer than {MAX_WIDGET_BYTES} bytes; make it shorter")]
    TooLong,
    /// The text isn't valid YAML.
    #[error("this widget isn't YAML: {0}")]
    Yaml(#[from] YamlReadError),
    /// The text isn't a mapping, or names no kind of widget, or several.
    #[error(
        "a widget begins with one of slider, select, checkbox, text or date and a name, such as `slider: threshold`"
    )]
    NoKind,
    /// The name isn't a valid variable name.
    #[error("`{0}` can't be the name of a Python variable; use letters, digits and underscores, and no keyword")]
    Name(String),
    /// The widget has a key that its kind doesn't support.
    #[error("a {kind} has no `{key}`; it has {known}")]
    UnknownKey {
        /// The kind of widget.
        kind: &'static str,
        /// The unsupported key.
        key: String,
        /// The supported keys.
        known: &'static str,
    },
    /// A key is missing, or its value is invalid.
    #[error("`{key}` of `{name}` must be {expected}")]
    Value {
        /// The widget's name.
        name: String,
        /// The affected key.
        key: &'static str,
        /// Description of valid values.
        expected: String,
    },
}

/// Error of setting a widget's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WidgetEditError {
    /// The text isn't a widget, or the value doesn't fit it.
    #[error(transparent)]
    Widget(#[from] WidgetError),
    /// The YAML can't be edited value by value.
    #[error("the widget's value can't be set: {0}")]
    Yaml(#[from] YamlEditError),
}

impl WidgetSpec {
    /// Parses a widget from the text between its fences.
    ///
    /// # Errors
    /// Returns an error if the text isn't a valid widget.
    pub fn parse(source: &str) -> Result<WidgetSpec, WidgetError> {
        if source.len() > MAX_WIDGET_BYTES {
            return Err(WidgetError::TooLong);
        }
        let Value::Object(keys) = parse_value(source)? else { return Err(WidgetError::NoKind) };
        let mut kinds = WIDGET_KINDS.into_iter().filter(|kind| keys.contains_key(*kind));
        let (Some(kind), None) = (kinds.next(), kinds.next()) else { return Err(WidgetError::NoKind) };
        let name = match &keys[kind] {
            Value::String(name) if is_variable_name(name) => name.clone(),
            Value::String(name) => return Err(WidgetError::Name(shortened(name))),
            other => return Err(WidgetError::Name(shortened(&other.to_string()))),
        };
        let known = match kind {
            "slider" => "min, max, step, value and label",
            "select" => "options, value and label",
            _ => "value and label",
        };
        let is_known = |key: &str| known.split([',', ' ']).any(|word| word == key && word != "and");
        if let Some(key) = keys.keys().find(|key| *key != kind && !is_known(key)) {
            return Err(WidgetError::UnknownKey { kind, key: shortened(key), known });
        }
        let fields = WidgetFields { name: &name, keys: &keys };
        let control = match kind {
            "slider" => fields.slider()?,
            "select" => fields.select()?,
            "checkbox" => match keys.get("value") {
                None => WidgetControl::Checkbox { value: false },
                Some(Value::Bool(value)) => WidgetControl::Checkbox { value: *value },
                Some(_) => return Err(fields.unfit("value", "true or false")),
            },
            "text" => match keys.get("value") {
                None | Some(Value::Null) => WidgetControl::Text { value: String::new() },
                Some(Value::String(value)) => WidgetControl::Text { value: value.clone() },
                Some(_) => return Err(fields.unfit("value", "a text; put it in quotes")),
            },
            _ => match keys.get("value").and_then(Value::as_str).and_then(parse_day) {
                Some(value) => WidgetControl::Date { value },
                None => return Err(fields.unfit("value", "a day such as 2026-12-31")),
            },
        };
        let label = match keys.get("label") {
            None | Some(Value::Null) => name.clone(),
            Some(Value::String(label)) if label.chars().count() <= MAX_WIDGET_LABEL_CHARS => label.clone(),
            Some(_) => return Err(fields.unfit("label", format!("a text of up to {MAX_WIDGET_LABEL_CHARS} letters"))),
        };
        Ok(WidgetSpec { name, label, control })
    }

    /// Returns the Python code that the widget runs as: one assignment of a literal.
    pub fn assignment(&self) -> String {
        let value = match &self.control {
            WidgetControl::Slider { value, whole, .. } => number_literal(value, *whole),
            WidgetControl::Select { value: Value::Bool(value), .. } | WidgetControl::Checkbox { value } => {
                if *value { "True" } else { "False" }.to_owned()
            }
            WidgetControl::Select { value: Value::Number(value), .. } => number_literal(value, !value.is_f64()),
            WidgetControl::Select { value, .. } => text_literal(value.as_str().unwrap_or_default()),
            WidgetControl::Text { value } => text_literal(value),
            // Don't bind `datetime`, which may be something else in the note.
            WidgetControl::Date { value: (year, month, day) } => {
                format!("__import__(\"datetime\").date({year}, {month}, {day})")
            }
        };
        format!("{} = {value}\n", self.name)
    }

    /// Returns the value as in the YAML.
    pub fn value(&self) -> Value {
        match &self.control {
            WidgetControl::Slider { value, .. } => Value::Number(value.clone()),
            WidgetControl::Select { value, .. } => value.clone(),
            WidgetControl::Checkbox { value } => Value::Bool(*value),
            WidgetControl::Text { value } => Value::String(value.clone()),
            WidgetControl::Date { value } => Value::String(day_text(*value)),
        }
    }

    /// Parses the user's input as a YAML value: a number for a slider, an option for a select.
    pub fn typed_value(&self, typed: &str) -> Value {
        match &self.control {
            WidgetControl::Text { .. } | WidgetControl::Date { .. } => Value::String(typed.to_owned()),
            WidgetControl::Select { options, .. } => {
                let fits = |option: &&Value| option_text(option) == typed;
                options.iter().find(fits).cloned().unwrap_or_else(|| Value::String(typed.to_owned()))
            }
            WidgetControl::Slider { .. } | WidgetControl::Checkbox { .. } => match typed {
                "yes" | "on" | "True" => Value::Bool(true),
                "no" | "off" | "False" => Value::Bool(false),
                _ => serde_json::from_str(typed).unwrap_or_else(|_| Value::String(typed.to_owned())),
            },
        }
    }

    /// Returns the slider's value nearest to a number: on a step, within its range. `None` for other widgets.
    pub fn slider_value(&self, wanted: f64) -> Option<Number> {
        let WidgetControl::Slider { min, max, step, whole, .. } = &self.control else { return None };
        let near = (min + ((wanted - min) / step).round() * step).clamp(*min, *max);
        // Round off errors of binary fractions.
        let near = format!("{near:.12}").parse().unwrap_or(near);
        #[allow(clippy::cast_possible_truncation, reason = "between the ends, which are written as whole numbers")]
        if *whole { Some(Number::from(near as i64)) } else { Number::from_f64(near) }
    }
}

/// Returns the text between a widget's fences with another value. The rest is unchanged.
///
/// # Errors
/// Returns an error if the text isn't a widget, the value doesn't fit it, or the text can't be edited value by value.
pub fn with_value(source: &str, value: &Value) -> Result<String, WidgetEditError> {
    let line_end = if source.contains("\r\n") { "\r\n" } else { "\n" };
    let mut new = set_value(source, &[YamlStep::from("value")], Some(value))?;
    if !new.ends_with('\n') {
        new.push_str(line_end);
    }
    WidgetSpec::parse(&new)?;
    Ok(new)
}

/// Returns an option as it is shown and typed.
pub fn option_text(option: &Value) -> String {
    option.as_str().map_or_else(|| option.to_string(), ToOwned::to_owned)
}

/// Formats a day as `2026-12-31`.
pub fn day_text((year, month, day): (i64, i64, i64)) -> String {
    format!("{year:04}-{month:02}-{day:02}")
}

/// Parses a day of the years 1 to 9999, the range that Python supports.
pub fn parse_day(text: &str) -> Option<(i64, i64, i64)> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| matches!(at, 4 | 7) || bytes[at].is_ascii_digit();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' || !(0..10).all(is_digit) {
        return None;
    }
    let date = (text[..4].parse().ok()?, text[5..7].parse().ok()?, text[8..].parse().ok()?);
    let (year, month, day) = date;
    (year >= 1 && CalendarDay::from_date(year, month, day).date() == date).then_some(date)
}

/// Keys of a widget that is being parsed.
struct WidgetFields<'a> {
    name: &'a str,
    keys: &'a Map<String, Value>,
}

impl WidgetFields<'_> {
    fn unfit(&self, key: &'static str, expected: impl Into<String>) -> WidgetError {
        WidgetError::Value { name: self.name.to_owned(), key, expected: expected.into() }
    }

    fn slider(&self) -> Result<WidgetControl, WidgetError> {
        let number = |key: &'static str, default: Option<i64>| match (self.keys.get(key), default) {
            (Some(Value::Number(number)), _) if number.as_f64().is_some_and(f64::is_finite) => Ok(number.clone()),
            (None, Some(default)) => Ok(Number::from(default)),
            _ => Err(self.unfit(key, "a number")),
        };
        let (min_number, max_number) = (number("min", Some(0))?, number("max", Some(100))?);
        let step_number = number("step", Some(1))?;
        let value = match self.keys.get("value") {
            Some(_) => number("value", None)?,
            None => min_number.clone(),
        };
        let float = |number: &Number| number.as_f64().unwrap_or_default();
        let (min, max, step) = (float(&min_number), float(&max_number), float(&step_number));
        if min >= max || !(max - min).is_finite() {
            return Err(self.unfit("max", "above `min`"));
        }
        if step <= 0.0 {
            return Err(self.unfit("step", "above 0"));
        }
        if !(min..=max).contains(&float(&value)) {
            return Err(self.unfit("value", format!("between {min_number} and {max_number}")));
        }
        let whole = [&min_number, &step_number, &value].iter().all(|number| number.as_i64().is_some());
        Ok(WidgetControl::Slider { min, max, step, value, whole })
    }

    fn select(&self) -> Result<WidgetControl, WidgetError> {
        let expected = || self.unfit("options", format!("a list of 1 to {MAX_SELECT_OPTIONS} texts or numbers"));
        let options = self.keys.get("options").and_then(Value::as_array).ok_or_else(expected)?;
        let simple = |option: &Value| option.is_string() || option.is_boolean() || option.is_number();
        if options.is_empty() || options.len() > MAX_SELECT_OPTIONS || !options.iter().all(simple) {
            return Err(expected());
        }
        let value = self.keys.get("value").unwrap_or(&options[0]).clone();
        if !options.contains(&value) {
            return Err(self.unfit("value", "one of the options"));
        }
        Ok(WidgetControl::Select { options: options.clone(), value })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_SHOWN_NAME_CHARS).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn number_literal(value: &Number, whole: bool) -> String {
    match value.as_f64().filter(|_| !whole) {
        // `{:?}` keeps the decimal point, so `1.0` stays a float.
        Some(value) => format!("{value:?}"),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python_scope::CellNames;
    use serde_json::json;

    fn assigned(source: &str) -> String {
        WidgetSpec::parse(source).map_or_else(|why| why.to_string(), |widget| widget.assignment())
    }

    #[test]
    fn every_kind_is_an_assignment() {
        for (source, code) in [
            ("slider: threshold\nmin: 0\nmax: 1\nstep: 0.05\nvalue: 0.4\n", "threshold = 0.4\n"),
            ("slider: n\nmin: 1\nmax: 9\n", "n = 1\n"),
            ("slider: n\nmin: 0\nmax: 9\nstep: 0.5\nvalue: 3\n", "n = 3.0\n"),
            ("slider: n\nmin: -1e300\nmax: 1e300\nstep: 1.5\nvalue: 1e299\n", "n = 1e299\n"),
            (
                "select: region\noptions: [north, \"so\\\"uth\", 3, 2.0, true]\nvalue: so\"uth\n",
                "region = \"so\\\"uth\"\n",
            ),
            ("select: k\noptions:\n  - 3\n  - 4\n", "k = 3\n"),
            ("checkbox: on\nvalue: true\n", "on = True\n"),
            ("checkbox: on\n", "on = False\n"),
            ("text: größe\nvalue: \"a\\n\\\\b\\\"\"\nlabel: Size\n", "größe = \"a\\n\\\\b\\\"\"\n"),
            ("text: t\n", "t = \"\"\n"),
            ("date: day\nvalue: 2024-02-29\n", "day = __import__(\"datetime\").date(2024, 2, 29)\n"),
        ] {
            let found = assigned(source);
            assert_eq!(found, code, "{source}");
            let names = CellNames::of(&found);
            assert!(!names.broken && names.surely.len() == 1, "{found}");
        }
        assert_eq!(WidgetSpec::parse("text: a\nlabel: A b\n").expect("fits").label, "A b");
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let many = format!("select: a\noptions: [{}]\n", "x, ".repeat(2_000));
        let deep = format!("select: a\noptions: {}\n", "[".repeat(30_000));
        let long = format!("text: a\nvalue: {}\n", "x".repeat(70_000));
        for (source, why) in [
            ("", "a widget begins with"),
            ("- slider\n", "a widget begins with"),
            ("slider: a\ntext: b\n", "a widget begins with"),
            ("slider: [\n", "isn't YAML"),
            ("slider: 3\n", "`3` can't be the name"),
            ("slider: lambda\n", "`lambda` can't be the name"),
            ("text: \"a = 1; b\"\n", "can't be the name"),
            ("text: \"a\\nb\"\n", "`a b` can't be the name"),
            ("text: a.b\n", "can't be the name"),
            ("text: 1a\n", "can't be the name"),
            ("text: None\n", "can't be the name"),
            ("slider: a\nmax: x\n", "`max` of `a` must be a number"),
            ("slider: a\nmax: .nan\n", "`max` of `a` must be a number"),
            ("slider: a\nmax: .inf\n", "`max` of `a` must be a number"),
            ("slider: a\nmin: 5\nmax: 5\n", "`max` of `a` must be above `min`"),
            ("slider: a\nmin: -1e308\nmax: 1e308\n", "`max` of `a` must be above `min`"),
            ("slider: a\nstep: 0\n", "`step` of `a` must be above 0"),
            ("slider: a\nvalue: 101\n", "`value` of `a` must be between 0 and 100"),
            ("slider: a\nvalue:\n", "`value` of `a` must be a number"),
            ("slider: a\nmaximum: 5\n", "a slider has no `maximum`; it has min, max, step, value and label"),
            ("text: a\nand: 5\n", "a text has no `and`"),
            ("select: a\noptions: []\n", "`options` of `a` must be a list of 1 to 1000"),
            ("select: a\noptions: [[1]]\n", "`options` of `a` must be a list of 1 to 1000"),
            (&many, "`options` of `a` must be a list of 1 to 1000"),
            (&deep, "isn't YAML"),
            (&long, "longer than"),
            ("select: a\noptions: [x]\nvalue: y\n", "`value` of `a` must be one of the options"),
            ("checkbox: a\nvalue: 1\n", "`value` of `a` must be true or false"),
            ("text: a\nvalue: 1\n", "`value` of `a` must be a text"),
            ("date: a\n", "`value` of `a` must be a day"),
            ("date: a\nvalue: 2023-02-29\n", "`value` of `a` must be a day"),
            ("date: a\nvalue: 0000-01-01\n", "`value` of `a` must be a day"),
            ("date: a\nvalue: 2023-1-1\n", "`value` of `a` must be a day"),
            ("date: a\nvalue: ää23-01-01\n", "`value` of `a` must be a day"),
        ] {
            let said = assigned(source);
            assert!(said.contains(why), "{}: {said}", &source[..source.len().min(80)]);
        }
    }

    #[test]
    fn a_value_is_set_and_the_rest_stays() {
        let slider = "slider: a # mine\nmin: 0\nmax: 1\nstep: 0.1\nvalue: 0.4 # now\n";
        assert_eq!(with_value(slider, &json!(0.5)).expect("fits"), slider.replace("0.4", "0.5"));
        assert!(with_value(slider, &json!(2)).is_err());
        assert!(with_value(slider, &json!("x")).is_err());
        assert_eq!(with_value("checkbox: a\r\n", &json!(true)).expect("fits"), "checkbox: a\r\nvalue: true\r\n");
        let odd = "it's\n```\n\"quoted\": yes";
        let new = with_value("text: a\n", &json!(odd)).expect("fits");
        assert_eq!(new.lines().count(), 2, "no line of a value can close the fence: {new}");
        assert_eq!(WidgetSpec::parse(&new).expect("fits").value(), json!(odd));
        let select = WidgetSpec::parse("select: a\noptions: [1, x, '1.5']\n").expect("fits");
        assert_eq!(
            ["1", "x", "1.5", "y"].map(|typed| select.typed_value(typed)),
            [json!(1), json!("x"), json!("1.5"), json!("y")]
        );
        let slider = WidgetSpec::parse(slider).expect("fits");
        let near = [0.32, 0.149, -5.0, 9.0].map(|wanted| slider.slider_value(wanted).and_then(|near| near.as_f64()));
        assert_eq!(near, [Some(0.3), Some(0.1), Some(0.0), Some(1.0)]);
        assert_eq!((slider.typed_value("0.7"), slider.typed_value("x")), (json!(0.7), json!("x")));
    }
}
