//! Forms of tool servers at the terminal, field by field. Questions go to standard error, so that output stays what the
//! command returns.

use crate::run_cells::read_line;
use agent::server_form::{FormAnswer, FormFieldKind, UserForm, UserFormField};
use serde_json::{Map, Value};
use std::io::{self, Read, Write};
use text::untrusted_text;

/// Asks for a field. `None` at the end of input; the inner `None` leaves the field to its default.
fn read_field(
    field: &UserFormField,
    input: &mut dyn Read,
    errors: &mut dyn Write,
) -> io::Result<Option<Option<Value>>> {
    if let FormFieldKind::Choice(values) | FormFieldKind::Choices(values) = &field.kind {
        for (at, (_, title)) in values.iter().enumerate() {
            writeln!(errors, "  {}. {}", at + 1, untrusted_text::escape_line(title))?;
        }
    }
    let default = field.default.as_ref().map(|value| format!(" [{value}]")).unwrap_or_default();
    let prompt = untrusted_text::escape_line(&format!("{}{default}: ", field.title)).into_owned();
    loop {
        errors.write_all(prompt.as_bytes())?;
        errors.flush()?;
        let Some(line) = read_line(input)? else { return Ok(None) };
        let line = line.trim();
        match field.entered_value(line) {
            _ if line.is_empty() && (field.default.is_some() || !field.is_needed) => return Ok(Some(None)),
            Some(value) if !line.is_empty() => return Ok(Some(Some(value))),
            _ => writeln!(errors, "That doesn't fit; try again, or press Ctrl+D to close the form.")?,
        }
    }
}

/// Asks for the fields of a form, and whether to send them; or whether to open its page. The end of input closes the
/// form.
///
/// # Errors
/// Input or output fails.
pub(crate) fn read_form(form: &UserForm, input: &mut dyn Read, errors: &mut dyn Write) -> io::Result<FormAnswer> {
    let (server, message) = (untrusted_text::escape_line(&form.server), untrusted_text::escape_block(&form.message));
    writeln!(errors, "{server} asks you:\n{message}")?;
    if let Some(page) = form.page_address() {
        let (address, site) = (untrusted_text::escape_line(&page.text), page.site.display_text());
        writeln!(errors, "It wants you to open this page of {}:\n{address}", untrusted_text::escape_line(&site))?;
    }
    let mut filled = Map::new();
    for field in &form.fields {
        match read_field(field, input, errors)? {
            Some(Some(value)) => drop(filled.insert(field.name.clone(), value)),
            Some(None) => {}
            None => return Ok(FormAnswer::Closed),
        }
    }
    let question: &[u8] = if form.page.is_some() { b"Open it? [y/N] " } else { b"Send this? [y/N] " };
    errors.write_all(question)?;
    errors.flush()?;
    Ok(match read_line(input)?.as_deref().map(str::trim) {
        Some("y" | "Y" | "yes") => FormAnswer::Filled(filled),
        Some(_) => FormAnswer::Declined,
        None => FormAnswer::Closed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_is_read_field_by_field() {
        let properties = json!({"age": {"type": "integer"}, "mood": {"type": "string", "enum": ["a", "b"]},
            "name": {"type": "string", "default": "Ada"}});
        let schema = json!({"properties": properties, "required": ["age", "mood"]});
        let form = UserForm::from_schema("own", "Who?", &schema).expect("a form");
        let read = |lines: &str| read_form(&form, &mut lines.as_bytes(), &mut Vec::new()).expect("read");
        let filled = json!({"age": 7, "mood": "b"}).as_object().cloned().expect("an object");
        assert_eq!(read("old\n7\n2\n\ny\n"), FormAnswer::Filled(filled), "what doesn't fit is asked for again");
        assert_eq!(read("7\n2\n\nno\n"), FormAnswer::Declined);
        assert_eq!(read("7\n"), FormAnswer::Closed);
    }
}
