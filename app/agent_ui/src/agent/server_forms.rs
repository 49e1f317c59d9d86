//! Forms of tool servers on approval cards: a field for each value, with buttons that send or decline them. Pages that
//! servers ask the user to open: the whole address, with a button that opens it.

use super::approvals::line;
use agent::server_form::{FormCall, FormFieldKind, UserForm, UserFormField, with_answers};
use anyhow::anyhow;
use eframe::egui;
use egui::Ui;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::RunApproval;
use text::untrusted_text::escape_line;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{check_box, radio_button, text_button};

/// Maximum height of the fields; more of them scroll.
const MAX_FIELDS_HEIGHT: f32 = 260.0;

/// What the user has entered in the form of an approval.
#[derive(Default)]
pub(super) struct FormDraft {
    /// Id of the approval; another one begins again.
    approval: String,
    /// The form, if its arguments can be read.
    form: Option<UserForm>,
    /// The values that aren't typed, by field.
    values: Map<String, Value>,
    /// The texts and numbers as they are typed, by field.
    typed: BTreeMap<String, String>,
    /// Why the form wasn't sent.
    trouble: Option<String>,
}

/// What the user does with a form.
pub(super) enum FormDecision {
    /// Sends it: the arguments of the call with the answers.
    Send(Map<String, Value>),
    /// Says no.
    Decline,
}

fn is_typed(field: &UserFormField) -> bool {
    match field.kind {
        FormFieldKind::Text | FormFieldKind::Number | FormFieldKind::Integer => true,
        FormFieldKind::Flag | FormFieldKind::Choice(_) | FormFieldKind::Choices(_) => false,
    }
}

impl FormDraft {
    /// Begins with the answers that the approval has.
    fn begin(approval: &RunApproval) -> FormDraft {
        let mut draft = FormDraft { approval: approval.id.clone(), ..FormDraft::default() };
        let Ok(FormCall { form, answers }) = FormCall::from_arguments(&approval.arguments) else { return draft };
        for field in &form.fields {
            let Some(answer) = answers.get(&field.name) else { continue };
            if is_typed(field) {
                let text = answer.as_str().map_or_else(|| answer.to_string(), ToOwned::to_owned);
                draft.typed.insert(field.name.clone(), text);
            } else {
                draft.values.insert(field.name.clone(), answer.clone());
            }
        }
        draft.form = Some(form);
        draft
    }

    /// Returns the answers, or why they can't be sent.
    fn answers(&self, form: &UserForm) -> anyhow::Result<Map<String, Value>> {
        let mut answers = self.values.clone();
        for field in form.fields.iter().filter(|field| is_typed(field)) {
            let text = self.typed.get(&field.name).map(|text| text.trim()).unwrap_or_default();
            if text.is_empty() {
                // What the user has emptied isn't sent, although the server has a default for it.
                answers.extend(field.default.is_some().then(|| (field.name.clone(), Value::Null)));
                continue;
            }
            let value = field.entered_value(text);
            let value = value.ok_or_else(|| anyhow!("{} takes {}.", field.title, field.kind.describe()))?;
            answers.insert(field.name.clone(), value);
        }
        // What the session would refuse is said before the form is sent.
        form.completed(answers.clone()).map_err(|why| anyhow!("{why}."))?;
        Ok(answers)
    }

    /// Draws the form of an approval. Returns what the user decides.
    pub(super) fn show(&mut self, ui: &mut Ui, approval: &RunApproval) -> Option<FormDecision> {
        if self.approval != approval.id {
            *self = FormDraft::begin(approval);
        }
        let colours = ThemeColors::of(ui);
        let form = self.form.take();
        if let Some(form) = &form {
            line(ui, &form.message, &theme::small(), colours.ink);
            form.page.iter().for_each(|page| line(ui, page, &theme::small(), colours.ink));
            egui::ScrollArea::vertical().id_salt("fields of a form").max_height(MAX_FIELDS_HEIGHT).show(ui, |ui| {
                for field in &form.fields {
                    self.show_field(ui, field);
                }
            });
        }
        if let Some(trouble) = &self.trouble {
            line(ui, trouble, &theme::caption(), colours.bad);
        }
        let mut decision = None;
        ui.horizontal_wrapped(|ui| {
            if let Some(form) = &form
                && text_button(ui, if form.page.is_some() { "Open page" } else { "Send answers" }, true).clicked()
            {
                match self.answers(form) {
                    Ok(answers) => {
                        decision = Some(FormDecision::Send(with_answers(&approval.arguments, answers)));
                        let page = form.page_address();
                        page.iter().for_each(|page| ui.ctx().open_url(egui::OpenUrl::new_tab(&page.text)));
                    }
                    Err(why) => self.trouble = Some(why.to_string()),
                }
            }
            if text_button(ui, "Decline", false).clicked() {
                decision = Some(FormDecision::Decline);
            }
        });
        self.form = form;
        decision
    }

    fn show_field(&mut self, ui: &mut Ui, field: &UserFormField) {
        let colours = ThemeColors::of(ui);
        let title = escape_line(&field.title).into_owned();
        ui.add_space(space::XS);
        if field.kind != FormFieldKind::Flag {
            let needed = if field.is_needed { "required" } else { "optional" };
            let caption = egui::RichText::new(format!("{title} ({needed})"));
            ui.label(caption.font(theme::caption().font).color(colours.muted));
        }
        let name = &field.name;
        match &field.kind {
            FormFieldKind::Text | FormFieldKind::Number | FormFieldKind::Integer => {
                let text = egui::TextEdit::singleline(self.typed.entry(name.clone()).or_default())
                    .id_salt(("form field", name))
                    .font(theme::small().font)
                    .desired_width(f32::INFINITY);
                text.show(ui).response.response.accessible_name(title);
            }
            FormFieldKind::Flag => {
                let mut is_on = self.values.get(name).and_then(Value::as_bool).unwrap_or(false);
                let is_open = field.is_needed && !self.values.contains_key(name);
                if check_box(ui, &mut is_on, title).changed() || is_open {
                    self.values.insert(name.clone(), Value::Bool(is_on));
                }
            }
            FormFieldKind::Choice(values) => {
                let chosen = self.values.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
                for (value, label) in values {
                    let is_chosen = chosen.as_deref() == Some(value.as_str());
                    if radio_button(ui, is_chosen, escape_line(label)).clicked() {
                        self.values.insert(name.clone(), Value::from(value.clone()));
                    }
                }
            }
            FormFieldKind::Choices(values) => {
                let mut chosen = self.values.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
                for (value, label) in values {
                    let mut is_on = chosen.iter().any(|one| one == value.as_str());
                    if check_box(ui, &mut is_on, escape_line(label)).changed() {
                        chosen.retain(|one| one != value.as_str());
                        chosen.extend(is_on.then(|| Value::from(value.clone())));
                        self.values.insert(name.clone(), Value::Array(chosen.clone()));
                    }
                }
            }
        }
    }
}
