//! Toasts at the lower right: short messages about rejections and remote events. They disappear by themselves.

use super::widgets::{floating_frame, set_accessible_name};
use crate::theme::{self, ThemeColors, space};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Area, Id, Order, Sense, vec2};
use engine::commands::CommandId;

/// How long a toast is shown, in seconds.
const TOAST_SECONDS: f64 = 4.0;
/// Additional time for a toast with an action, in seconds.
const ACTION_TOAST_SECONDS: f64 = 8.0;
/// Maximum number of toasts.
const MAX_TOASTS: usize = 4;

struct Toast {
    text: String,
    since: Option<f64>,
    /// The label of an action, and its command from the command table.
    offer: Option<(&'static str, CommandId)>,
}

impl Toast {
    fn stays(&self) -> f64 {
        if self.offer.is_some() { TOAST_SECONDS + ACTION_TOAST_SECONDS } else { TOAST_SECONDS }
    }
}

/// The visible toasts.
#[derive(Default)]
pub struct ToastStack {
    all: Vec<Toast>,
}

impl ToastStack {
    /// Adds a toast. If one with the same text is visible, it's shown for longer instead.
    pub fn show_message(&mut self, text: impl Into<String>) {
        self.add(text.into(), None);
    }

    /// Adds a toast with an action that runs a command from the command table.
    pub fn show_with_action(&mut self, text: impl Into<String>, word: &'static str, command: CommandId) {
        self.add(text.into(), Some((word, command)));
    }

    fn add(&mut self, text: String, offer: Option<(&'static str, CommandId)>) {
        // The text may quote a file name or a server's message.
        let text = text::untrusted_text::escape_block(&text).into_owned();
        // A command such as “Undo” refers to the latest action, so older messages no longer offer it.
        for old in &mut self.all {
            old.offer = old.offer.filter(|(_, known)| offer.is_none_or(|(_, command)| *known != command));
        }
        match self.all.iter_mut().find(|old| old.text == text) {
            Some(old) => old.since = None,
            None => self.all.push(Toast { text, since: None, offer }),
        }
        if self.all.len() > MAX_TOASTS {
            self.all.remove(0);
        }
    }

    /// Draws the toasts, and removes expired ones. Returns the command that was chosen.
    pub fn show(&mut self, ctx: &egui::Context, colours: &'static ThemeColors, dark: bool) -> Option<CommandId> {
        if self.all.is_empty() {
            return None;
        }
        let mut chosen = None;
        let now = ctx.input(|input| input.time);
        let mut closed = None;
        self.all.retain_mut(|toast| now - *toast.since.get_or_insert(now) < toast.stays());
        let bottom = vec2(-space::L, -(theme::size::STATUS_BAR_HEIGHT + space::L));
        Area::new(Id::unique("toasts")).order(Order::Tooltip).anchor(Align2::RIGHT_BOTTOM, bottom).show(ctx, |ui| {
            for (index, Toast { text, offer, .. }) in self.all.iter().enumerate() {
                let frame = floating_frame(colours, dark).inner_margin(egui::Margin::symmetric(16, 12));
                let response = frame
                    .show(ui, |ui| {
                        ui.set_max_width(360.0);
                        let style = theme::small();
                        let job = egui::text::LayoutJob::simple(text.clone(), style.font, colours.ink, 360.0);
                        ui.label(job);
                        if let Some((word, command)) = offer {
                            let (rect, _) = ui.allocate_exact_size(vec2(60.0, 24.0), Sense::hover());
                            let id = ui.scope_id().with(("toast", index));
                            if super::widgets::word_button(ui, rect, id, word, word).clicked() {
                                (chosen, closed) = (Some(*command), Some(index));
                            }
                        }
                    })
                    .response;
                let response = if offer.is_none() { response.interact(Sense::click()) } else { response };
                set_accessible_name(&response, Role::Button, &format!("Dismiss: {text}"));
                if response.clicked() {
                    closed = Some(index);
                }
                ui.add_space(space::S);
            }
        });
        if let Some(index) = closed {
            self.all.remove(index);
        }
        let next =
            self.all.iter().filter_map(|toast| Some(toast.since? + toast.stays() - now)).fold(TOAST_SECONDS, f64::min);
        ctx.request_repaint_after(std::time::Duration::from_secs_f64(next.max(0.0) + 0.01));
        chosen
    }
}
