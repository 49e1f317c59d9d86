//! The field for the time at which the run of the next message ends at the latest.

use agent::deadline::DeadlineError;
use eframe::egui;
use egui::Ui;
use host::clock;
use ui::theme::{self, ThemeColors};

/// The field with the deadline of the next message's run.
#[derive(Default)]
pub(crate) struct DeadlineField {
    text: String,
}

impl DeadlineField {
    /// Draws the field.
    pub(super) fn show(&mut self, ui: &mut Ui) {
        let (colours, style) = (ThemeColors::of(ui), theme::small());
        let hint = "No deadline. For example: 20 min";
        let hint = egui::RichText::new(hint).font(style.font.clone()).color(colours.muted);
        let field = egui::TextEdit::singleline(&mut self.text).id_salt("deadline").font(style.font).hint_text(hint);
        let response = ui.add(field.desired_width(f32::INFINITY).margin(egui::Margin::symmetric(8, 4)));
        let about = "The run ends then, whatever it's doing: 20 min, or 2026-12-01T18:00";
        response.accessible_name("Deadline").on_hover_text(about);
    }

    /// Returns the deadline in milliseconds since 1970; `None` if none is typed.
    ///
    /// # Errors
    /// Returns an error if what is typed is no time.
    pub(crate) fn deadline(&self) -> Result<Option<i64>, DeadlineError> {
        let text = self.text.trim();
        if text.is_empty() { Ok(None) } else { clock::parse_deadline(text).map(Some) }
    }
}
