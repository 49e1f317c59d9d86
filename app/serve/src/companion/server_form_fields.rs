//! Forms of tool servers on the phone's pages: a field for each value, and what the user enters there. A page that a
//! server asks the user to open is a link with its whole address.

use super::companion_session::CheckedForm;
use crate::pending_approval::PendingApproval;
use crate::problem::ProblemDetails;
use agent::server_form::{FormCall, FormFieldKind, UserFormField};
use agent::tool_catalog::BuiltInTool;
use maud::{Markup, html};
use serde_json::{Map, Value};

/// How the names of these fields begin; a number follows.
const FIELD_PREFIX: &str = "answer-";
/// Maximum length of a text in characters, so that it's within the limit in bytes.
const MAX_TEXT_CHARS: usize = 1_000;

/// Returns the form that an approval is about, if it's about one.
pub(super) fn asked_form(approval: &PendingApproval) -> Option<FormCall> {
    let arguments = approval.parameters.as_object()?;
    let is_form = BuiltInTool::McpForm.is_named(&approval.action_type);
    is_form.then(|| FormCall::from_arguments(arguments).ok()).flatten()
}

fn shown_answer(answer: Option<&Value>) -> String {
    match answer {
        None | Some(Value::Null) => String::new(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Some(other) => other.to_string(),
    }
}

/// Shows a list from which one is chosen, or none.
fn choice(id: &str, name: &str, values: &[(String, String)], chosen: &str) -> Markup {
    html! {
        select id=(id) name=(name) {
            option value="" {}
            @for (value, title) in values { option value=(value) selected[value == chosen] { (title) } }
        }
    }
}

fn field_input(id: &str, name: &str, field: &UserFormField, answer: &str) -> Markup {
    match &field.kind {
        FormFieldKind::Choice(values) => choice(id, name, values, answer),
        FormFieldKind::Flag => {
            let values = [("yes".to_owned(), "Yes".to_owned()), ("no".to_owned(), "No".to_owned())];
            choice(id, name, &values, answer)
        }
        FormFieldKind::Choices(_) | FormFieldKind::Text | FormFieldKind::Number | FormFieldKind::Integer => html! {
            input id=(id) name=(name) value=(answer) maxlength=(MAX_TEXT_CHARS) autocomplete="off";
        },
    }
}

/// Shows the fields of a form, with the answers that there are.
pub(super) fn form_fields(approval: &str, call: &FormCall) -> Markup {
    let rows = call.form.fields.iter().enumerate().map(|(at, field)| {
        let (name, answer) = (format!("{FIELD_PREFIX}{at}"), shown_answer(call.answers.get(&field.name)));
        let id = format!("{name}-{approval}");
        let takes = match &field.kind {
            kind @ FormFieldKind::Choices(_) => format!(" ({})", kind.describe()),
            _ if field.is_needed => String::new(),
            _ => " (optional)".to_owned(),
        };
        html! {
            label for=(id) { (field.title) (takes) }
            (field_input(&id, &name, field, &answer))
        }
    });
    html! {
        p { (call.form.message) }
        @if let Some(page) = call.form.page_address() {
            p { "Open this page of " (page.site.display_text()) ", then press Continue:" }
            p { a href=(page.text) target="_blank" rel="noopener noreferrer" { (page.text) } }
        }
        @for row in rows { (row) }
    }
}

/// Reads what the user has entered.
pub(super) fn entered_answers(call: &FormCall, form: &CheckedForm) -> Result<Map<String, Value>, ProblemDetails> {
    let mut answers = Map::new();
    for (at, field) in call.form.fields.iter().enumerate() {
        let text = form.text(&format!("{FIELD_PREFIX}{at}")).trim();
        if text.is_empty() {
            // What the user has emptied isn't sent, although the server has a default for it.
            answers.extend(field.default.is_some().then(|| (field.name.clone(), Value::Null)));
            continue;
        }
        let wrong = || ProblemDetails::unprocessable(format!("{} takes {}.", field.title, field.kind.describe()));
        answers.insert(field.name.clone(), field.entered_value(text).ok_or_else(wrong)?);
    }
    Ok(answers)
}
