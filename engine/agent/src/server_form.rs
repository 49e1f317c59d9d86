//! Forms that MCP servers ask the user to fill in, and pages that they ask the user to open (elicitation). In a run,
//! the user decides about the arguments of a call of [`BuiltInTool::McpForm`]: the form, which stays as it is, and the
//! answers, which the user gives.

use crate::secrets::InstallationKeys;
use crate::server_page::{PageAddressError, read_page_address};
use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use crate::web_address::WebAddress;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::RunApproval;
use text::untrusted_text;

/// Maximum number of forms in a run.
pub const MAX_FORM_REQUESTS: usize = 10;
/// Maximum number of fields of a form.
pub const MAX_FORM_FIELDS: usize = 50;
/// Maximum length of a text of a form, and of an answer, in bytes.
pub const MAX_FORM_TEXT_BYTES: usize = 4_000;
/// Maximum size of a form with all its choices, as JSON in bytes.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// Maximum length of what the title of an approval shows of a server's message, in bytes.
const MAX_TITLE_BYTES: usize = 200;
/// Words in the names of fields that take secrets. The protocol forbids such fields, so a server that has one is either
/// careless or a thief.
const SECRET_WORDS: [&str; 9] =
    ["password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "api key", "private key"];

/// What a field of a form takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormFieldKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// Yes or no.
    Flag,
    /// One of these values; each has a title.
    Choice(Vec<(String, String)>),
    /// Some of these values; each has a title.
    Choices(Vec<(String, String)>),
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserFormField {
    /// Name of the value in the answer.
    pub name: String,
    /// The field's label.
    pub title: String,
    /// The values that the field accepts.
    pub kind: FormFieldKind,
    /// What it has if the user changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether it must have a value.
    #[serde(rename = "required")]
    pub is_needed: bool,
}

/// What a server asks the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserForm {
    /// Name of the server.
    pub server: String,
    /// The server's message above the fields.
    pub message: String,
    /// What it wants to know.
    pub fields: Vec<UserFormField>,
    /// Address of the page that the user is asked to open instead of filling in fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

/// What the user does with a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormAnswer {
    /// The values, by name. What is missing gets its default, and what is `null` gets none.
    Filled(Map<String, Value>),
    /// The user says no.
    Declined,
    /// The user closes it, or nobody answers in time.
    Closed,
}

/// A form with its answers: the arguments of the call that the user decides about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormCall {
    /// The form.
    #[serde(flatten)]
    pub form: UserForm,
    /// The answers by the names of their fields; defaults, until the user gives others.
    pub answers: Map<String, Value>,
}

/// Why a form isn't shown, or isn't sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserFormError {
    /// A form that has other fields than those of the protocol.
    #[error("the form has fields that can't be shown")]
    Fields,
    /// The form is too large.
    #[error("the form has more than {MAX_FORM_FIELDS} fields, or more than {} kB", MAX_FORM_BYTES / 1024)]
    TooLarge,
    /// A field has no answer.
    #[error("{0} has no answer; fill it in, or deny the form")]
    Missing(String),
    /// An answer doesn't fit its field.
    #[error("the answer for {title} doesn't fit: it takes {takes}")]
    Unfit {
        /// The field's name.
        title: String,
        /// Describes the values that the field accepts.
        takes: String,
    },
    /// An answer for a field that isn't there.
    #[error("the form has no field {0}")]
    UnknownField(String),
    /// The page may not be opened.
    #[error("the page can't be opened: {0}")]
    Page(#[from] PageAddressError),
    /// Something else than the answers was changed.
    #[error("only the answers of a form can be changed")]
    Changed,
    /// Arguments that make no form.
    #[error("the form can't be read: {0}")]
    Arguments(String),
}

fn short(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let text: String = text.chars().filter(|letter| !letter.is_control() || *letter == '\n').collect();
    text[..text.floor_char_boundary(MAX_FORM_TEXT_BYTES)].to_owned()
}

/// Returns the values of a choice with their titles.
fn choice_values(schema: &Value) -> Option<Vec<(String, String)>> {
    let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    if let Some(titled) = titled {
        let value = |one: &Value| {
            let (value, title) = (one["const"].as_str()?.to_owned(), short(&one["title"]));
            let title = if title.is_empty() { short(&one["const"]) } else { title };
            Some((value, title))
        };
        return titled.iter().map(value).collect();
    }
    let values = schema["enum"].as_array()?;
    let name = |(at, value): (usize, &Value)| {
        let value = value.as_str()?.to_owned();
        let title = schema["enumNames"][at].as_str().map_or_else(|| value.clone(), |_| short(&schema["enumNames"][at]));
        Some((value, title))
    };
    values.iter().enumerate().map(name).collect()
}

impl FormFieldKind {
    /// Says what the field takes, as a part of a sentence.
    pub fn describe(&self) -> String {
        let list = |values: &[(String, String)]| {
            let one = |(value, title): &(String, String)| match value == title {
                true => value.clone(),
                false => format!("{value} ({title})"),
            };
            values.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        match self {
            FormFieldKind::Text => "a text".to_owned(),
            FormFieldKind::Number => "a number".to_owned(),
            FormFieldKind::Integer => "a whole number".to_owned(),
            FormFieldKind::Flag => "true or false".to_owned(),
            FormFieldKind::Choice(values) => format!("one of: {}", list(values)),
            FormFieldKind::Choices(values) => format!("some of: {}", list(values)),
        }
    }
}

impl UserFormField {
    fn new(name: &str, schema: &Value, is_needed: bool) -> Option<UserFormField> {
        let kind = match schema["type"].as_str()? {
            "string" => choice_values(schema).map_or(FormFieldKind::Text, FormFieldKind::Choice),
            "number" => FormFieldKind::Number,
            "integer" => FormFieldKind::Integer,
            "boolean" => FormFieldKind::Flag,
            "array" => FormFieldKind::Choices(choice_values(&schema["items"])?),
            _ => return None,
        };
        let title = [&schema["title"], &schema["description"]].into_iter().find(|text| text.is_string());
        let title = title.map_or_else(|| name.to_owned(), short);
        let field = UserFormField { name: name.to_owned(), title, kind, default: None, is_needed };
        let default = Some(schema["default"].clone()).filter(|value| field.takes(value));
        Some(UserFormField { default, ..field })
    }

    /// Returns whether the field can have this value.
    pub fn takes(&self, value: &Value) -> bool {
        let among = |values: &[(String, String)], value: &Value| {
            value.as_str().is_some_and(|value| values.iter().any(|(known, _)| known == value))
        };
        match &self.kind {
            FormFieldKind::Text => value.as_str().is_some_and(|text| text.len() <= MAX_FORM_TEXT_BYTES),
            FormFieldKind::Number => value.is_number(),
            FormFieldKind::Integer => value.is_i64() || value.is_u64(),
            FormFieldKind::Flag => value.is_boolean(),
            FormFieldKind::Choice(values) => among(values, value),
            FormFieldKind::Choices(values) => {
                value.as_array().is_some_and(|all| all.iter().all(|value| among(values, value)))
            }
        }
    }

    /// Reads what a person has entered: a text, a number, yes or no, or choices by value, title or number. `None` if it
    /// doesn't fit.
    pub fn entered_value(&self, line: &str) -> Option<Value> {
        let chosen = |values: &[(String, String)], word: &str| {
            let number = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let named = values.iter().find(|(value, title)| value == word || title == word);
            named.or_else(|| values.get(number?)).map(|(value, _)| Value::from(value.clone()))
        };
        let value = match &self.kind {
            FormFieldKind::Text => Value::from(line),
            FormFieldKind::Number => json!(line.parse::<f64>().ok().filter(|number| number.is_finite())?),
            FormFieldKind::Integer => json!(line.parse::<i64>().ok()?),
            FormFieldKind::Flag => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => return None,
            },
            FormFieldKind::Choice(values) => chosen(values, line)?,
            FormFieldKind::Choices(values) => {
                let words = line.split(',').map(str::trim).filter(|word| !word.is_empty());
                Value::Array(words.map(|word| chosen(values, word)).collect::<Option<Vec<Value>>>()?)
            }
        };
        self.takes(&value).then_some(value)
    }
}

impl UserForm {
    /// Reads a form from the schema of what a server wants to know.
    ///
    /// # Errors
    /// Returns an error if it has fields that can't be shown, or is too large.
    pub fn from_schema(server: &str, message: &str, schema: &Value) -> Result<UserForm, UserFormError> {
        let properties = schema["properties"].as_object().ok_or(UserFormError::Fields)?;
        if properties.len() > MAX_FORM_FIELDS || schema.to_string().len() > MAX_FORM_BYTES {
            return Err(UserFormError::TooLarge);
        }
        let needed = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let field = |(name, schema): (&String, &Value)| {
            UserFormField::new(name, schema, needed.iter().any(|needed| needed == name.as_str()))
        };
        let fields = properties.iter().map(field).collect::<Option<Vec<UserFormField>>>();
        let (server, message) = (server.to_owned(), short(&Value::from(message)));
        Ok(UserForm { server, message, fields: fields.ok_or(UserFormError::Fields)?, page: None })
    }

    /// Makes what stands for a page that a server wants the user to open: it has no fields.
    ///
    /// # Errors
    /// Returns an error if the page may not be opened.
    pub fn for_page(server: &str, message: &str, address: &str) -> Result<UserForm, UserFormError> {
        let page = Some(read_page_address(address)?.text);
        Ok(UserForm { server: server.to_owned(), message: short(&Value::from(message)), fields: Vec::new(), page })
    }

    /// Returns the page that the user is asked to open, if it may be opened.
    pub fn page_address(&self) -> Option<WebAddress> {
        self.page.as_deref().and_then(|page| read_page_address(page).ok())
    }

    /// Returns the schema of the form, as a server would send it.
    pub fn schema(&self) -> Value {
        let titled = |values: &[(String, String)]| -> Vec<Value> {
            values.iter().map(|(value, title)| json!({"const": value, "title": title})).collect()
        };
        let property = |field: &UserFormField| {
            let mut schema = match &field.kind {
                FormFieldKind::Text => json!({"type": "string"}),
                FormFieldKind::Number => json!({"type": "number"}),
                FormFieldKind::Integer => json!({"type": "integer"}),
                FormFieldKind::Flag => json!({"type": "boolean"}),
                FormFieldKind::Choice(values) => json!({"type": "string", "oneOf": titled(values)}),
                FormFieldKind::Choices(values) => json!({"type": "array", "items": {"anyOf": titled(values)}}),
            };
            schema["title"] = json!(field.title);
            if let Some(default) = &field.default {
                schema["default"] = default.clone();
            }
            (field.name.clone(), schema)
        };
        let properties: Map<String, Value> = self.fields.iter().map(property).collect();
        let needed: Vec<&str> =
            self.fields.iter().filter(|field| field.is_needed).map(|field| field.name.as_str()).collect();
        json!({"type": "object", "properties": properties, "required": needed})
    }

    /// Completes an answer with defaults. A value of `null` leaves an optional field empty, although it has a default.
    ///
    /// # Errors
    /// Returns the first value that is missing or wrong, or why the page may not be opened.
    pub fn completed(&self, mut filled: Map<String, Value>) -> Result<Map<String, Value>, UserFormError> {
        self.page.as_deref().map(read_page_address).transpose()?;
        let mut answer = Map::new();
        for field in &self.fields {
            match filled.remove(&field.name).or_else(|| field.default.clone()) {
                Some(value) if field.takes(&value) => drop(answer.insert(field.name.clone(), value)),
                Some(Value::Null) | None if !field.is_needed => {}
                Some(Value::Null) | None => return Err(UserFormError::Missing(field.name.clone())),
                Some(_) => {
                    return Err(UserFormError::Unfit { title: field.name.clone(), takes: field.kind.describe() });
                }
            }
        }
        match filled.into_iter().next() {
            Some((unknown, _)) => Err(UserFormError::UnknownField(unknown)),
            None => Ok(answer),
        }
    }

    /// Returns whether a field seems to take a secret.
    pub fn asks_for_secret(&self) -> bool {
        let is_secret = |text: &str| {
            let text = text.to_lowercase().replace(['_', '-'], " ");
            SECRET_WORDS.iter().any(|word| text.contains(word))
        };
        self.fields.iter().any(|field| is_secret(&field.name) || is_secret(&field.title))
    }

    /// Masks the program's own keys, before the user sees the form. A default that holds one is dropped, so that no
    /// mask is sent as an answer.
    #[must_use]
    pub fn masked(mut self, own: &InstallationKeys) -> UserForm {
        own.mask_in_place(&mut self.message);
        self.page.iter_mut().for_each(|page| own.mask_in_place(page));
        for field in &mut self.fields {
            own.mask_in_place(&mut field.name);
            own.mask_in_place(&mut field.title);
            if let FormFieldKind::Choice(choices) | FormFieldKind::Choices(choices) = &mut field.kind {
                for (value, title) in choices {
                    own.mask_in_place(value);
                    own.mask_in_place(title);
                }
            }
            field.default = field.default.take().filter(|default| {
                let mut masked = default.clone();
                own.mask_value(&mut masked);
                masked == *default
            });
        }
        self
    }
}

impl FormCall {
    /// Makes the call that stands for a form, with the form's defaults as answers.
    pub fn new(form: UserForm) -> FormCall {
        let default = |field: &UserFormField| Some((field.name.clone(), field.default.clone()?));
        let answers = form.fields.iter().filter_map(default).collect();
        FormCall { form, answers }
    }

    /// Reads the call from the arguments that the user sees.
    ///
    /// # Errors
    /// Returns an error if they make no form.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<FormCall, UserFormError> {
        serde_json::from_value(Value::Object(arguments.clone()))
            .map_err(|error| UserFormError::Arguments(error.to_string()))
    }

    /// Returns the arguments: the form and the answers.
    pub fn arguments(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(_) | Err(_) => Map::new(), // a struct with names for keys is always an object
        }
    }
}

/// Returns the form that an approval is about, if it's about one.
pub fn form_of(approval: &RunApproval) -> Option<UserForm> {
    let is_form = BuiltInTool::McpForm.is_named(&approval.tool);
    is_form.then(|| FormCall::from_arguments(&approval.arguments).ok()).flatten().map(|call| call.form)
}

/// Returns the arguments of a call of [`BuiltInTool::McpForm`] with other answers.
#[must_use]
pub fn with_answers(arguments: &Map<String, Value>, answers: Map<String, Value>) -> Map<String, Value> {
    let mut arguments = arguments.clone();
    arguments.insert("answers".to_owned(), Value::Object(answers));
    arguments
}

/// Returns what the server gets: the answers of what was decided, completed with defaults.
///
/// # Errors
/// Returns an error if something else than the answers differs from what was asked, or an answer is missing or wrong.
pub fn decided_answers(
    asked: &Map<String, Value>,
    decided: &Map<String, Value>,
) -> Result<Map<String, Value>, UserFormError> {
    let (asked, decided) = (FormCall::from_arguments(asked)?, FormCall::from_arguments(decided)?);
    if asked.form != decided.form {
        return Err(UserFormError::Changed);
    }
    asked.form.completed(decided.answers)
}

/// Returns the title of the approval for a form. It always says who asks.
pub fn form_title(arguments: &Map<String, Value>) -> String {
    let Ok(FormCall { form, .. }) = FormCall::from_arguments(arguments) else {
        return "A tool server asks you something".to_owned();
    };
    let line = form.message.lines().next().unwrap_or_default();
    let line = &line[..line.floor_char_boundary(MAX_TITLE_BYTES)];
    let what = match form.page_address() {
        Some(page) => format!("asks you to open {}", page.site.display_text()),
        None if form.asks_for_secret() => "asks you for a secret".to_owned(),
        None => "asks you".to_owned(),
    };
    format!("The tool server {} {what}: {line}", form.server)
}

/// Returns why a form waits, as a part of a sentence.
pub fn form_reason(form: &UserForm) -> String {
    if let Some(page) = form.page_address() {
        return format!("the page is {}; what you enter there goes to {}", page.text, page.site.display_text());
    }
    match form.asks_for_secret() {
        true => format!("servers may not ask for secrets in forms; what you enter goes to {}", form.server),
        false => format!("what you enter goes to {}, and stays in the run", form.server),
    }
}

/// Returns the text of a form: the message, and each field with what it takes and its answer. Escaped for display.
pub fn form_text(arguments: &Map<String, Value>) -> Option<String> {
    let FormCall { form, answers } = FormCall::from_arguments(arguments).ok()?;
    let mut lines = vec![untrusted_text::escape_block(&form.message).into_owned()];
    lines.extend(form.page.as_deref().map(|page| format!("page: {}", untrusted_text::escape_line(page))));
    for field in &form.fields {
        let title = if field.title == field.name { String::new() } else { format!(" ({})", field.title) };
        let needed = if field.is_needed { "" } else { ", or nothing" };
        let answer = answers.get(&field.name).map(|value| format!(" = {value}")).unwrap_or_default();
        let line = format!("{}{title}: {}{needed}{answer}", field.name, field.kind.describe());
        lines.push(untrusted_text::escape_line(&line).into_owned());
    }
    Some(lines.join("\n"))
}

/// Returns the tool that stands for a form of a server, for policy and records.
pub fn form_tool() -> ToolSpec {
    let text = || json!({"type": "string"});
    let properties = json!({
        "server": text(),
        "message": text(),
        "fields": {"type": "array", "items": {"type": "object"}, "maxItems": MAX_FORM_FIELDS},
        "answers": {"type": "object"},
        "page": text(),
    });
    ToolSpec {
        name: BuiltInTool::McpForm.to_string(),
        description: "What a tool server wants the user to answer.".to_owned(),
        parameters: json!({"type": "object", "properties": properties, "additionalProperties": false,
            "required": ["server", "message", "fields", "answers"]}),
        risk: ToolRisk::Medium,
        permissions: ToolPermissions::default(),
        idempotent: false,
        source: ToolSource::BuiltIn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> UserForm {
        let properties = json!({
            "name": {"type": "string", "title": "Name", "default": "Ada"},
            "age": {"type": "integer", "default": "old"},
            "mood": {"type": "string", "enum": ["a", "b"], "enumNames": ["Good", "Bad"]},
            "some": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}, {"const": "z"}]}},
        });
        let schema = json!({"type": "object", "properties": properties, "required": ["mood"]});
        UserForm::from_schema("s", "Hi\u{7}", &schema).expect("a form")
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn an_answer_gets_defaults_and_must_fit() {
        let form = form();
        assert_eq!(form.message, "Hi");
        let answer = |filled: Value| form.completed(object(filled));
        assert_eq!(answer(json!({"mood": "a"})), Ok(object(json!({"name": "Ada", "mood": "a"}))));
        assert!(answer(json!({"mood": "a", "some": ["x"], "age": 7})).is_ok());
        assert_eq!(answer(json!({"mood": "a", "name": null})), Ok(object(json!({"mood": "a"}))));
        for missing in [json!({}), json!({"mood": null})] {
            assert_eq!(answer(missing), Err(UserFormError::Missing("mood".to_owned())));
        }
        assert_eq!(answer(json!({"mood": "a", "x": 1})), Err(UserFormError::UnknownField("x".to_owned())));
        for wrong in [
            json!({"mood": "c"}),
            json!({"mood": "a", "age": 1.5}),
            json!({"mood": "a", "some": ["y"]}),
            json!({"mood": "a", "name": 7}),
            json!({"mood": "a", "name": "x".repeat(MAX_FORM_TEXT_BYTES + 1)}),
        ] {
            assert!(matches!(answer(wrong.clone()), Err(UserFormError::Unfit { .. })), "{wrong}");
        }
        let refused = |schema: Value| UserForm::from_schema("s", "x", &schema);
        assert_eq!(refused(json!({"properties": {"a": {"type": "object"}}})), Err(UserFormError::Fields));
        let long = json!({"properties": {"a": {"type": "string", "enum": vec!["x".repeat(1_000); 100]}}});
        assert_eq!(refused(long), Err(UserFormError::TooLarge));
    }

    #[test]
    fn a_decision_changes_answers_and_nothing_else() {
        assert_eq!(UserForm::from_schema("s", "Hi", &form().schema()), Ok(form()));
        let asked = FormCall::new(form()).arguments();
        assert_eq!(asked["answers"], json!({"name": "Ada"}));
        assert_eq!(FormCall::from_arguments(&asked).map(|call| call.form), Ok(form()));
        assert_eq!(crate::tool_call_parser::check_arguments(&form_tool(), &asked), Ok(()));
        assert_eq!(decided_answers(&asked, &asked), Err(UserFormError::Missing("mood".to_owned())));
        let filled = with_answers(&asked, object(json!({"mood": "b"})));
        assert_eq!(decided_answers(&asked, &filled), Ok(object(json!({"name": "Ada", "mood": "b"}))));
        let mut other = filled;
        other.insert("server".to_owned(), json!("t"));
        assert_eq!(decided_answers(&asked, &other), Err(UserFormError::Changed));
        let shown = form_text(&asked).expect("a text");
        assert!(shown.contains("name (Name): a text, or nothing = \"Ada\"\n"), "{shown}");
        assert!(shown.contains("mood: one of: a (Good), b (Bad)\n"), "{shown}");
    }

    #[test]
    fn own_keys_are_masked_wherever_they_stand() {
        let own = InstallationKeys::new(["plain-looking-own-key".to_owned()]);
        let key = "it is plain-looking-own-key";
        let properties = json!({
            key: {"type": "string", "title": key},
            "a": {"type": "string", "default": key},
            "b": {"type": "string", "default": "Bonn"},
            "c": {"type": "string", "enum": [key], "enumNames": [key]},
            "d": {"type": "array", "items": {"enum": [key]}, "default": [key]},
        });
        let form = UserForm::from_schema("s", key, &json!({"properties": properties})).expect("a form").masked(&own);
        let shown = serde_json::to_string(&form).expect("JSON");
        assert!(!shown.contains("plain-looking") && shown.contains("it is "), "{shown}");
        // No mask becomes an answer by itself.
        assert_eq!(FormCall::new(form).answers, object(json!({"b": "Bonn"})));
    }

    #[test]
    fn the_title_says_who_asks_and_for_secrets() {
        let title = |properties: Value| {
            let form = UserForm::from_schema("own", "Sign in", &json!({ "properties": properties })).expect("a form");
            form_title(&FormCall::new(form).arguments())
        };
        assert_eq!(title(json!({"city": {"type": "string"}})), "The tool server own asks you: Sign in");
        let secret = "The tool server own asks you for a secret: Sign in";
        assert_eq!(title(json!({"user_password": {"type": "string"}})), secret);
        assert_eq!(title(json!({"x": {"type": "string", "title": "Your API-Key"}})), secret);
    }

    #[test]
    fn a_page_is_opened_as_it_was_shown() {
        let address = "https://accounts.example.com/in?id=7";
        let page = UserForm::for_page("own", "Sign in", address).expect("a page");
        let asked = FormCall::new(page.clone()).arguments();
        assert_eq!(form_title(&asked), "The tool server own asks you to open https://accounts.example.com: Sign in");
        assert!(form_reason(&page).contains(address) && form_text(&asked).expect("a text").contains(address));
        assert_eq!(crate::tool_call_parser::check_arguments(&form_tool(), &asked), Ok(()));
        assert_eq!(decided_answers(&asked, &asked), Ok(Map::new()));
        let with = |page: &str| {
            let mut other = asked.clone();
            other.insert("page".to_owned(), json!(page));
            other
        };
        assert_eq!(decided_answers(&asked, &with("https://example.org/")), Err(UserFormError::Changed));
        // What comes from another device was not checked here.
        let forged = with("javascript:alert(1)");
        assert!(matches!(decided_answers(&forged, &forged), Err(UserFormError::Page(_))));
        assert!(UserForm::for_page("own", "Sign in", "http://accounts.example.com/").is_err());
    }

    #[test]
    fn what_is_entered_becomes_a_value() {
        let field = |kind: FormFieldKind| UserFormField {
            name: "x".to_owned(),
            title: "X".to_owned(),
            kind,
            default: None,
            is_needed: true,
        };
        let values = || vec![("s".to_owned(), "Small".to_owned()), ("l".to_owned(), "Large".to_owned())];
        for (kind, line, value) in [
            (FormFieldKind::Text, "7", Some(json!("7"))),
            (FormFieldKind::Number, "1.5", Some(json!(1.5))),
            (FormFieldKind::Number, "NaN", None),
            (FormFieldKind::Integer, "1.5", None),
            (FormFieldKind::Flag, "yes", Some(json!(true))),
            (FormFieldKind::Flag, "maybe", None),
            (FormFieldKind::Choice(values()), "Large", Some(json!("l"))),
            (FormFieldKind::Choice(values()), "3", None),
            (FormFieldKind::Choices(values()), "2, s", Some(json!(["l", "s"]))),
        ] {
            assert_eq!(field(kind).entered_value(line), value, "{line}");
        }
    }
}
