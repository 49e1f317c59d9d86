//! Fields for the arguments of the prompt that a message calls, and why the message can't be sent without them.

use agent::server_material::{self, PromptCall, ServerMaterialError, ServerOffer, ServerPrompt, ServerPromptArgument};
use eframe::egui;
use egui::{Key, Ui};
use std::collections::BTreeMap;
use text::untrusted_text::escape_line;
use ui::theme::{self, ThemeColors, space};

/// Maximum height of the fields; more of them scroll.
const MAX_FIELDS_HEIGHT: f32 = 180.0;

/// What the user has entered for a prompt.
#[derive(Default)]
pub(super) struct PromptFields {
    /// The prompt that the values are for, as it's called.
    call: String,
    values: BTreeMap<String, String>,
    /// Why the message wasn't sent, and the message.
    trouble: Option<(String, String)>,
}

/// Returns the arguments that the text of the message doesn't give.
fn open_arguments<'p>(
    prompt: &'p ServerPrompt,
    call: &'p PromptCall,
) -> impl Iterator<Item = &'p ServerPromptArgument> {
    prompt.arguments.iter().filter(|argument| call.arguments.iter().all(|(name, _)| *name != argument.name))
}

impl PromptFields {
    /// Draws a field for each argument that the message doesn't give. Returns whether Enter was pressed in one.
    pub(super) fn show(&mut self, ui: &mut Ui, text: &str, offers: &[ServerOffer]) -> bool {
        let colours = ThemeColors::of(ui);
        if let Some((why, of)) = &self.trouble
            && of == text
        {
            let why = egui::RichText::new(escape_line(why)).font(theme::small().font).color(colours.bad);
            ui.add(egui::Label::new(why).wrap());
        }
        let Some((prompt, call)) = server_material::called_prompt(text, offers) else { return false };
        let name = server_material::prompt_call(&call.server, &call.prompt);
        if self.call != name {
            self.values.clear();
            self.call = name;
        }
        let mut is_sent = false;
        let values = &mut self.values;
        egui::ScrollArea::vertical().id_salt("arguments of a prompt").max_height(MAX_FIELDS_HEIGHT).show(ui, |ui| {
            for argument in open_arguments(prompt, &call) {
                let title = escape_line(&argument.name).into_owned();
                let needed = if argument.is_needed { "required" } else { "optional" };
                let caption = egui::RichText::new(format!("{title} ({needed})"));
                ui.add_space(space::XS);
                ui.label(caption.font(theme::caption().font).color(colours.muted));
                let hint = egui::RichText::new(escape_line(&argument.description)).color(colours.muted);
                let field = egui::TextEdit::singleline(values.entry(argument.name.clone()).or_default())
                    .id_salt(&argument.name)
                    .font(theme::small().font)
                    .hint_text(hint)
                    .desired_width(f32::INFINITY);
                let response = field.show(ui).response.response.accessible_name(format!("Argument {title}"));
                is_sent |= response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            }
        });
        is_sent
    }

    /// Writes the entered arguments into the message. Returns whether the message can be sent then; what is missing is
    /// shown.
    pub(super) fn complete(&mut self, text: &mut String, offers: &[ServerOffer]) -> bool {
        let Some((prompt, call)) = server_material::called_prompt(text, offers) else { return true };
        let entered = |argument: &ServerPromptArgument| {
            let value = self.values.get(&argument.name).filter(|value| !value.is_empty())?;
            Some(format!(" {}", server_material::prompt_argument(&argument.name, value)))
        };
        let entered: String = open_arguments(prompt, &call).filter_map(entered).collect();
        text.insert_str(call.end, &entered);
        let servers: Vec<&str> = offers.iter().map(|offer| offer.server.as_str()).collect();
        match server_material::requested_material(text, &servers, offers) {
            Err(why @ ServerMaterialError::MissingArguments { .. }) => {
                self.trouble = Some((why.to_string(), text.clone()));
                false
            }
            // Everything else is checked when the message is taken, by what the servers offer then.
            Ok(_) | Err(_) => {
                *self = PromptFields::default();
                true
            }
        }
    }
}
