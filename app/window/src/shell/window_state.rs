//! The window's own settings, before they are saved: choices at once, dragged sizes after a moment.

use eframe::egui;
use engine::{ColorTheme, ReducedMotion, Settings};
use host::fs::user_texts::UserTexts;
use ui::theme;

/// Minimum window width for both side panels. A narrower window shows only one.
const MIN_TWO_PANEL_WINDOW_WIDTH: f32 = 900.0;

/// How long the caret blinks after the last input, in seconds. Afterwards, nothing is drawn until something happens.
const CARET_BLINK_SECONDS: f64 = 8.0;

/// The settings that the window changes itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WindowState {
    pub(crate) theme: ColorTheme,
    /// Name of a theme of the user's own; empty for none.
    pub(crate) custom_theme: String,
    pub(crate) scale: f32,
    pub(crate) contrast: bool,
    pub(crate) calm: ReducedMotion,
    pub(crate) text: f32,
    pub(crate) left: f32,
    pub(crate) left_open: bool,
    pub(crate) right: f32,
    pub(crate) right_open: bool,
    pub(crate) window: (f32, f32),
    /// Left and top edge of the window in pixels of the screen.
    pub(crate) place: Option<(f32, f32)>,
    /// Time since which the values differ from the saved ones.
    pub(crate) since: Option<f64>,
    last_input: f64,
}

impl WindowState {
    /// Creates the state from the saved settings.
    pub(crate) fn from_settings(settings: &Settings) -> WindowState {
        WindowState {
            theme: settings.theme,
            custom_theme: settings.custom_theme.clone(),
            scale: settings.scale,
            contrast: settings.contrast,
            calm: settings.reduce_motion,
            text: settings.text_scale,
            left: settings.left_panel_width,
            left_open: settings.left_open,
            right: settings.right_panel_width,
            right_open: settings.right_open,
            window: settings.window,
            place: settings.window_place,
            since: None,
            last_input: 0.0,
        }
    }

    /// Updates the state from changed settings.
    pub(crate) fn load_settings(&mut self, settings: &Settings) {
        let last_input = self.last_input;
        *self = WindowState { last_input, ..WindowState::from_settings(settings) };
    }

    /// Applies the theme and scale. A theme of the user's own that isn't there, or is wrong, is not applied.
    pub(crate) fn apply(&self, ctx: &egui::Context, texts: &UserTexts) {
        let custom = texts.themes.get(&self.custom_theme);
        theme::use_custom_theme(ctx, custom);
        let mut settings = Settings::default();
        self.store_settings(&mut settings);
        theme::apply_settings(ctx, &settings);
    }

    /// Returns whether the left side can't be seen: a narrow window has room for only one of the two sides.
    pub(crate) fn hides_left(&self, ctx: &egui::Context) -> bool {
        self.right_open && ctx.content_rect().width() < MIN_TWO_PANEL_WINDOW_WIDTH
    }

    /// Opens the left side, and closes the right one if both have no room.
    pub(crate) fn open_left(&mut self, ctx: &egui::Context) {
        (self.left_open, self.right_open) = (true, self.right_open && !self.hides_left(ctx));
    }

    /// Switches to the next theme in the order system, light, dark.
    pub(crate) fn next_theme(&mut self) {
        self.theme = match self.theme {
            ColorTheme::System => ColorTheme::Light,
            ColorTheme::Light => ColorTheme::Dark,
            ColorTheme::Dark => ColorTheme::System,
        };
    }

    /// Changes the interface scale by one step of a tenth.
    pub(crate) fn step_text_scale(&mut self, by: f32) {
        self.scale = ((self.scale * 10.0).round() / 10.0 + by).clamp(0.5, 3.0);
    }

    /// Blinks the caret while the user is active, and stops otherwise.
    pub(crate) fn blink(&mut self, ctx: &egui::Context) {
        let (now, any) = ctx.input(|input| (input.time, !input.events.is_empty()));
        if any {
            self.last_input = now;
        }
        let blinks = now - self.last_input < CARET_BLINK_SECONDS;
        if ctx.global_style().visuals.text_cursor.blink != blinks {
            ctx.all_styles_mut(|style| style.visuals.text_cursor.blink = blinks);
        }
    }

    pub(crate) fn store_settings(&self, settings: &mut Settings) {
        settings.theme = self.theme;
        settings.custom_theme.clone_from(&self.custom_theme);
        settings.scale = self.scale;
        (settings.contrast, settings.reduce_motion, settings.text_scale) = (self.contrast, self.calm, self.text);
        (settings.left_panel_width, settings.left_open) = (self.left, self.left_open);
        (settings.right_panel_width, settings.right_open) = (self.right, self.right_open);
        (settings.window, settings.window_place) = (self.window, self.place);
    }
}

/// Size of the part of a window's top left corner that must be on a screen, in pixels.
const VISIBLE_CORNER: egui::Vec2 = egui::vec2(120.0, 40.0);

/// Returns whether a window at this place can be seen and moved.
pub(crate) fn is_on_screen(place: egui::Pos2, screens: &[egui::Rect]) -> bool {
    let corner = egui::Rect::from_min_size(place, VISIBLE_CORNER);
    screens.iter().any(|screen| screen.contains_rect(corner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_returns_to_its_place_only_on_a_screen() {
        let screen = |left: f32| egui::Rect::from_min_size(egui::pos2(left, 0.0), egui::vec2(1920.0, 1080.0));
        let both = [screen(0.0), screen(1920.0)];
        assert!(is_on_screen(egui::pos2(2500.0, 100.0), &both));
        assert!(!is_on_screen(egui::pos2(2500.0, 100.0), &both[..1]));
        assert!(!is_on_screen(egui::pos2(100.0, -200.0), &both) && !is_on_screen(egui::pos2(100.0, 100.0), &[]));
    }
}
