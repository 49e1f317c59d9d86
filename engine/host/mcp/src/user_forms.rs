//! What a server may ask its client for. Forms that a server asks the user to fill in (elicitation), for programs that
//! have a user to ask.
#![expect(deprecated, reason = "servers of the protocol before 2026-07-28 ask for models in this way")]

use crate::project_root::ProjectRoot;
use crate::sampling::ActiveCalls;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, Implementation, ListRootsResult, ProtocolVersion,
    RootsCapabilities,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Maximum number of fields of a form.
const MAX_FORM_FIELDS: usize = 50;
/// Maximum length of a text of a form in bytes.
const MAX_FORM_TEXT_BYTES: usize = 4_000;

/// What a field of a form takes.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    /// Name of the value in the answer.
    pub name: String,
    /// What the user reads.
    pub title: String,
    /// What it takes.
    pub kind: FormFieldKind,
    /// What it has if the user changes nothing.
    pub default: Option<Value>,
    /// Whether it must have a value.
    pub is_needed: bool,
}

/// What a server asks the user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserForm {
    /// Name of the server.
    pub server: String,
    /// What the server says.
    pub message: String,
    /// What it wants to know.
    pub fields: Vec<FormField>,
}

/// What the user does with a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// The values, by name. What is missing gets its default.
    Filled(Map<String, Value>),
    /// The user says no.
    Declined,
    /// The user closes it.
    Closed,
}

/// Somebody who can fill in forms.
pub trait FormUser: Send + Sync + 'static {
    /// Shows a form, and waits for the answer.
    fn fill_in(&self, form: &UserForm) -> FormAnswer;
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
        let value = |one: &Value| Some((one["const"].as_str()?.to_owned(), short(&one["title"])));
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

impl FormField {
    fn new(name: &str, schema: &Value, is_needed: bool) -> Option<FormField> {
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
        let field = FormField { name: name.to_owned(), title, kind, default: None, is_needed };
        let default = Some(schema["default"].clone()).filter(|value| field.takes(value));
        Some(FormField { default, ..field })
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
}

impl UserForm {
    fn new(server: &str, message: &str, schema: &Value) -> Option<UserForm> {
        let properties = schema["properties"].as_object()?;
        if properties.len() > MAX_FORM_FIELDS {
            return None;
        }
        let needed = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let field = |(name, schema): (&String, &Value)| {
            FormField::new(name, schema, needed.iter().any(|needed| needed == name.as_str()))
        };
        let fields = properties.iter().map(field).collect::<Option<Vec<FormField>>>()?;
        let message = short(&Value::from(message));
        Some(UserForm { server: server.to_owned(), message, fields })
    }

    /// Completes an answer with defaults; `None` if a value is missing or wrong.
    fn completed(&self, mut filled: Map<String, Value>) -> Option<Map<String, Value>> {
        let mut answer = Map::new();
        for field in &self.fields {
            match filled.remove(&field.name).or_else(|| field.default.clone()) {
                Some(value) if field.takes(&value) => drop(answer.insert(field.name.clone(), value)),
                None if !field.is_needed => {}
                Some(_) | None => return None,
            }
        }
        filled.is_empty().then_some(answer)
    }
}

/// Those whom servers may ask.
#[derive(Clone, Default)]
pub(crate) struct ServerUsers {
    /// Who fills in forms; `None` if nobody does.
    pub(crate) forms: Option<Arc<dyn FormUser>>,
    /// Whether runs have models that may answer.
    pub(crate) has_models: bool,
}

/// This program as a client of one server.
pub(crate) struct McpClientSide {
    server: String,
    users: ServerUsers,
    calls: ActiveCalls,
    /// The server's root; `None` if it gets none.
    root: Option<ProjectRoot>,
}

impl McpClientSide {
    pub(crate) fn new(
        server: &str,
        users: ServerUsers,
        calls: ActiveCalls,
        root: Option<ProjectRoot>,
    ) -> McpClientSide {
        McpClientSide { server: server.to_owned(), users, calls, root }
    }
}

impl ClientHandler for McpClientSide {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("tracebook", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = self.users.forms.is_some().then(Default::default);
        capabilities.sampling = self.users.has_models.then(Default::default);
        capabilities.roots = self.root.is_some().then(|| {
            let mut roots = RootsCapabilities::default();
            roots.list_changed = Some(true);
            roots
        });
        // Later versions have no handshake.
        ClientConfig::new(capabilities, me).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.root.as_ref().map(ProjectRoot::listed).unwrap_or_default())
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.users.has_models {
            return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
        }
        self.calls.create_message(params, context.ct.cancelled()).await
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let unusable = || ErrorData::invalid_params("the form has fields that can't be shown", None);
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return Err(ErrorData::invalid_params("only forms can be shown", None));
        };
        let Some(forms) = self.users.forms.clone() else { return Ok(ElicitResult::new(ElicitationAction::Decline)) };
        let schema = serde_json::to_value(&requested_schema).map_err(|_| unusable())?;
        let form = UserForm::new(&self.server, &message, &schema).ok_or_else(unusable)?;
        let shown = form.clone();
        let answer = tokio::task::spawn_blocking(move || forms.fill_in(&shown)).await;
        match answer.unwrap_or(FormAnswer::Closed) {
            FormAnswer::Filled(filled) => {
                let answer = form.completed(filled);
                let answer = answer.ok_or_else(|| ErrorData::internal_error("the form is not filled in", None))?;
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(answer)))
            }
            FormAnswer::Declined => Ok(ElicitResult::new(ElicitationAction::Decline)),
            FormAnswer::Closed => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_gets_defaults_and_must_fit() {
        let properties = json!({
            "name": {"type": "string", "title": "Name", "default": "Ada"},
            "age": {"type": "integer", "default": "old"},
            "mood": {"type": "string", "enum": ["a", "b"], "enumNames": ["Good", "Bad"]},
            "some": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}},
        });
        let schema = json!({"type": "object", "properties": properties, "required": ["mood"]});
        let form = UserForm::new("s", "Hi\u{7}", &schema).expect("a form");
        assert_eq!(form.message, "Hi");
        let answer = |filled: Value| form.completed(filled.as_object().expect("an object").clone());
        assert_eq!(answer(json!({"mood": "a"})), json!({"name": "Ada", "mood": "a"}).as_object().cloned());
        assert!(answer(json!({"mood": "a", "some": ["x"], "age": 7})).is_some());
        for wrong in [
            json!({}),
            json!({"mood": "c"}),
            json!({"mood": "a", "age": 1.5}),
            json!({"mood": "a", "some": ["y"]}),
            json!({"mood": "a", "name": 7}),
            json!({"mood": "a", "other": 1}),
        ] {
            assert_eq!(answer(wrong.clone()), None, "{wrong}");
        }
        assert!(UserForm::new("s", "x", &json!({"properties": {"a": {"type": "object"}}})).is_none());
    }
}
