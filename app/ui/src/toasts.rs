//! Toasts at the lower right: short messages about rejections and remote events. They disappear by themselves.

use super::widgets::{append_text, floating_frame, set_accessible_name};
use crate::theme::{self, ThemeColors, space};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Area, Id, Order, Sense, vec2};
use engine::commands::CommandId;

/// How long a short toast is shown, in seconds.
const TOAST_SECONDS: f64 = 4.0;
/// Maximum additional time for reading a longer toast, in seconds.
const MAX_READING_SECONDS: f64 = 12.0;
/// Maximum length of a short toast, and how much more is read in a second, both in characters.
const SHORT_TOAST_CHARS: usize = 60;
const CHARS_PER_SECOND: f64 = 20.0;
/// Additional time for a toast with an action, in seconds.
const ACTION_TOAST_SECONDS: f64 = 8.0;
/// Minimum width of a toast's action, in points.
const MIN_ACTION_WIDTH: f32 = 60.0;
/// Maximum number of toasts.
const MAX_TOASTS: usize = 4;

struct Toast {
    /// Identifies its widgets, so that a press on one isn't lost when an older toast goes before the release.
    number: u64,
    text: String,
    since: Option<f64>,
    /// The label of an action, and its command from the command table.
    offer: Option<(&'static str, CommandId)>,
}

impl Toast {
    fn stays(&self) -> f64 {
        let rest = self.text.chars().count().saturating_sub(SHORT_TOAST_CHARS);
        let reading = f64::from(u32::try_from(rest).unwrap_or(u32::MAX)) / CHARS_PER_SECOND;
        let action = if self.offer.is_some() { ACTION_TOAST_SECONDS } else { 0.0 };
        TOAST_SECONDS + action + reading.min(MAX_READING_SECONDS)
    }
}

/// The visible toasts.
#[derive(Default)]
pub struct ToastStack {
    all: Vec<Toast>,
    /// The number of toasts so far.
    count: u64,
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
            None => {
                self.count += 1;
                self.all.push(Toast { number: self.count, text, since: None, offer });
            }
        }
        if self.all.len() > MAX_TOASTS {
            self.all.remove(0);
        }
    }

    /// Draws the toasts above the lowest `foot` points, and removes expired ones. Returns the command that was chosen.
    pub fn show(
        &mut self,
        ctx: &egui::Context,
        colours: &'static ThemeColors,
        dark: bool,
        foot: f32,
    ) -> Option<CommandId> {
        if self.all.is_empty() {
            return None;
        }
        let mut chosen = None;
        let now = ctx.input(|input| input.time);
        let mut closed = None;
        self.all.retain_mut(|toast| now - *toast.since.get_or_insert(now) < toast.stays());
        let bottom = vec2(-space::L, -(foot + space::L));
        Area::new(Id::unique("toasts")).order(Order::Tooltip).anchor(Align2::RIGHT_BOTTOM, bottom).show(ctx, |ui| {
            for (index, Toast { number, text, offer, .. }) in self.all.iter().enumerate() {
                let frame = floating_frame(colours, dark).inner_margin(egui::Margin::symmetric(16, 12));
                let response = frame
                    .show(ui, |ui| {
                        ui.set_max_width(360.0);
                        let mut job = egui::text::LayoutJob::default();
                        job.wrap.max_width = 360.0;
                        append_text(&mut job, text, &theme::small(), colours.ink);
                        ui.label(job);
                        if let Some((word, command)) = offer {
                            let wide = super::widgets::word_width(ui, word).max(MIN_ACTION_WIDTH);
                            let (rect, _) =
                                ui.allocate_exact_size(vec2(wide, theme::size::MIN_CLICK_HEIGHT), Sense::hover());
                            let id = Id::unique("toasts").with(("action", number));
                            if super::widgets::word_button(ui, rect, id, word, word).clicked() {
                                (chosen, closed) = (Some(*command), Some(index));
                            }
                        }
                    })
                    .response;
                let id = Id::unique("toasts").with(("message", number));
                let sense = if offer.is_none() { Sense::click() } else { Sense::hover() };
                let response = ui.interact(response.rect, id, sense);
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

#[cfg(test)]
mod tests {
    use super::*;
    use egui::{Event, PointerButton, RawInput};

    /// Draws a frame at `time` seconds with a pointer event.
    fn frame(ctx: &egui::Context, toasts: &mut ToastStack, time: f64, events: Vec<Event>) -> Option<CommandId> {
        let mut chosen = None;
        let input = RawInput { time: Some(time), events, ..RawInput::default() };
        let mut output = ctx.run_ui(input, |ui| {
            let colours = ThemeColors::of(ui);
            chosen = chosen.or(toasts.show(ui.ctx(), colours, false, 0.0));
        });
        // The test paints nothing.
        output.textures_delta.clear();
        chosen
    }

    #[test]
    fn a_long_toast_stays_for_longer() {
        let ctx = egui::Context::default();
        theme::install_theme(&ctx);
        let mut toasts = ToastStack::default();
        toasts.show_message("Copied the image.");
        toasts.show_message("Daily notes go to Daily, and templates are in Templates. ".repeat(3));
        for (time, count) in [(0.0, 2), (3.9, 2), (4.1, 1), (9.0, 1), (10.0, 0)] {
            frame(&ctx, &mut toasts, time, vec![]);
            assert_eq!(toasts.all.len(), count, "after {time} s");
        }
    }

    #[test]
    fn a_press_is_not_lost_when_an_older_toast_goes() {
        let ctx = egui::Context::default();
        theme::install_theme(&ctx);
        let mut toasts = ToastStack::default();
        toasts.show_message("Opened other");
        frame(&ctx, &mut toasts, 0.0, vec![]);
        toasts.show_with_action("Closed other.", "Undo", CommandId::VolumeReopen);
        frame(&ctx, &mut toasts, 3.0, vec![]);
        // More than one frame: they are placed by the size that they had.
        frame(&ctx, &mut toasts, 3.4, vec![]);
        frame(&ctx, &mut toasts, 3.5, vec![]);
        let undo = ctx.read_response(Id::unique("toasts").with(("action", 2_u64))).expect("Undo is offered");
        let pos = undo.rect.center();
        let press = |pressed| Event::PointerButton {
            pos,
            button: PointerButton::Primary,
            pressed,
            modifiers: egui::Modifiers::NONE,
        };
        frame(&ctx, &mut toasts, 3.6, vec![Event::PointerMoved(pos)]);
        assert_eq!(frame(&ctx, &mut toasts, 3.8, vec![press(true)]), None);
        assert_eq!(frame(&ctx, &mut toasts, 4.1, vec![]), None);
        assert_eq!(frame(&ctx, &mut toasts, 4.12, vec![]), None);
        assert_eq!(toasts.all.len(), 1, "the older toast has gone");
        assert_eq!(frame(&ctx, &mut toasts, 4.2, vec![press(false)]), Some(CommandId::VolumeReopen));
        assert_eq!(toasts.all.len(), 0);
    }
}
