//! What a user set for this window, on its way to the settings: at once where it is a choice, after a moment where it
//! is dragged.

use super::AppWindow;
use eframe::egui;
use engine::{ColorTheme, Command, Settings};
use ui::theme;

/// Widths and sizes are kept once they have been still for this long, in seconds.
const SETTINGS_DEBOUNCE_SECONDS: f64 = 0.5;
/// The caret blinks for this long after the last key, in seconds; then nothing is drawn until something happens.
const CARET_BLINK_SECONDS: f64 = 8.0;

/// The window's side of the settings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WindowState {
    pub(super) theme: ColorTheme,
    pub(super) scale: f32,
    pub(super) contrast: bool,
    pub(super) calm: bool,
    pub(super) text: f32,
    pub(super) left: f32,
    pub(super) left_open: bool,
    pub(super) right: f32,
    pub(super) right_open: bool,
    pub(super) window: (f32, f32),
    /// Since when they differ from what is kept.
    since: Option<f64>,
    last_input: f64,
}

impl WindowState {
    /// As they are kept.
    pub(super) fn from_settings(settings: &Settings) -> WindowState {
        WindowState {
            theme: settings.theme,
            scale: settings.scale,
            contrast: settings.contrast,
            calm: settings.calm,
            text: settings.text,
            left: settings.left,
            left_open: settings.left_open,
            right: settings.right,
            right_open: settings.right_open,
            window: settings.window,
            since: None,
            last_input: 0.0,
        }
    }

    /// Takes over what was set.
    pub(super) fn load_settings(&mut self, settings: &Settings) {
        let last_input = self.last_input;
        *self = WindowState { last_input, ..WindowState::from_settings(settings) };
    }

    /// Puts theme and scale into force.
    pub(super) fn apply(&self, ctx: &egui::Context) {
        let mut settings = Settings::default();
        self.store_settings(&mut settings);
        theme::apply_settings(ctx, &settings);
    }

    /// The next theme in the round: system, light, dark.
    pub(super) fn next_theme(&mut self) {
        self.theme = match self.theme {
            ColorTheme::System => ColorTheme::Light,
            ColorTheme::Light => ColorTheme::Dark,
            ColorTheme::Dark => ColorTheme::System,
        };
    }

    /// One step larger or smaller, by a tenth.
    pub(super) fn step_text_scale(&mut self, by: f32) {
        self.scale = ((self.scale * 10.0).round() / 10.0 + by).clamp(0.5, 3.0);
    }

    /// Lets the caret blink while somebody is there, and rest otherwise.
    pub(super) fn blink(&mut self, ctx: &egui::Context) {
        let (now, any) = ctx.input(|input| (input.time, !input.events.is_empty()));
        if any {
            self.last_input = now;
        }
        let blinks = now - self.last_input < CARET_BLINK_SECONDS;
        if ctx.global_style().visuals.text_cursor.blink != blinks {
            ctx.all_styles_mut(|style| style.visuals.text_cursor.blink = blinks);
        }
    }

    pub(super) fn store_settings(&self, settings: &mut Settings) {
        settings.theme = self.theme;
        settings.scale = self.scale;
        (settings.contrast, settings.calm, settings.text) = (self.contrast, self.calm, self.text);
        (settings.left, settings.left_open) = (self.left, self.left_open);
        (settings.right, settings.right_open) = (self.right, self.right_open);
        settings.window = self.window;
    }
}

impl AppWindow {
    /// Keeps what was set.
    pub(super) fn save_window_state(&mut self, ctx: &egui::Context) {
        let inner = ctx.input(|input| input.viewport().inner_rect);
        if let Some(inner) = inner.filter(|inner| inner.width() > 100.0) {
            let size = inner.size() * ctx.zoom_factor();
            self.prefs.window = (size.x.round(), size.y.round());
        }
        let Some(driver) = &mut self.driver else { return };
        if !driver.session().is_open() {
            return;
        }
        let kept = driver.session().settings();
        let mut wanted = kept.clone();
        self.prefs.store_settings(&mut wanted);
        self.tree.store_settings(&mut wanted);
        (wanted.panes, wanted.pane) =
            self.panes.saved_arrangement(self.active_pane.id, self.active_pane.note.or(self.pending_note));
        let wanted = wanted.clamped();
        if wanted == *kept {
            self.prefs.since = None;
            return;
        }
        let choice = wanted.theme != kept.theme
            || wanted.scale != kept.scale
            || (wanted.contrast, wanted.calm, wanted.text) != (kept.contrast, kept.calm, kept.text)
            || (wanted.left_open, wanted.right_open) != (kept.left_open, kept.right_open);
        let now = ctx.input(|input| input.time);
        let since = *self.prefs.since.get_or_insert(now);
        if choice || now - since >= SETTINGS_DEBOUNCE_SECONDS {
            self.prefs.since = None;
            if let Err(reject) = driver.command(Command::Set { settings: Box::new(wanted) }) {
                self.toasts.show_message(reject.0);
            }
        } else {
            ctx.request_repaint_after(std::time::Duration::from_secs_f64(SETTINGS_DEBOUNCE_SECONDS));
        }
    }
}
