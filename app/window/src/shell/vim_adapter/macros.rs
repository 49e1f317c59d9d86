//! Plays macros: recorded keys, as if pressed one after another.
//!
//! A limited number of keys is played per frame, until one of them fails. Escape stops the playback.

use crate::app_window::AppWindow;
use crate::shell::input_state::InputState;
use crate::shell::vim_adapter::vim_state::{MacroFrame, MacroPlayback};
use editor::vim::VimStroke;
use eframe::egui;
use egui::{Event, Key};
use std::time::{Duration, Instant};

/// Maximum number of played keys, which stops a macro that runs itself.
const MAX_MACRO_KEYS: usize = 100_000;
/// Maximum nesting of macros.
const MAX_MACRO_DEPTH: usize = 100;
/// Time per frame spent on playing keys.
const MACRO_FRAME_BUDGET: Duration = Duration::from_millis(20);

impl InputState {
    /// Starts playing keys a number of times.
    pub(super) fn start_macro(&mut self, keys: Vec<VimStroke>, times: usize) {
        let playing = &mut self.vim.playing;
        playing.pop_finished_macros();
        if playing.stack.len() < MAX_MACRO_DEPTH {
            playing.stack.push(MacroFrame { keys: keys.into(), next: 0, left: times.saturating_sub(1) });
        } else {
            self.vim.vim.failed = true;
        }
    }

    pub(crate) fn stop_macros(&mut self) {
        self.vim.playing = MacroPlayback::default();
    }

    /// Returns the text that the macro types into an input line, up to Enter; `None` if no macro is playing.
    pub(super) fn next_macro_line(&mut self) -> Option<String> {
        if !self.vim.vim.plays {
            return None;
        }
        let mut line = String::new();
        while let Some(stroke) = self.vim.playing.next() {
            match stroke {
                VimStroke::Text(text) => line.push_str(&text),
                VimStroke::Key(Key::Enter, _) => break,
                VimStroke::Key(..) => {}
            }
        }
        Some(line)
    }

    /// Records the text typed into an input line.
    pub(crate) fn record_line(&mut self, line: &str) {
        line.chars().for_each(|letter| self.vim.vim.record(VimStroke::Text(letter.to_string())));
        self.vim.vim.record(VimStroke::Key(Key::Enter, egui::Modifiers::NONE));
    }
}

impl AppWindow {
    /// Plays the pending keys, as many as fit in one frame.
    pub(super) fn continue_macro(&mut self, ctx: &egui::Context) {
        let begun = Instant::now();
        if !self.input.vim.playing.is_playing() || self.input.vim.vim.plays {
            return;
        }
        self.input.vim.vim.plays = true;
        while let Some(stroke) = self.input.vim.playing.next() {
            self.input.vim.vim.failed = false;
            self.replay_stroke(ctx, stroke);
            if self.input.vim.vim.failed {
                self.input.stop_macros();
            }
            if self.input.vim.playing.count >= MAX_MACRO_KEYS {
                self.input.stop_macros();
                self.notices.toasts.show_message(format!("The macro stopped after {MAX_MACRO_KEYS} keys."));
            }
            if begun.elapsed() > MACRO_FRAME_BUDGET {
                break;
            }
        }
        self.input.vim.playing.pop_finished_macros();
        self.input.vim.vim.plays = false;
        if !self.input.vim.playing.is_playing() {
            self.input.vim.playing.count = 0;
            self.input.finish_vim_action(&self.host, &mut self.panes);
        } else {
            ctx.request_repaint();
        }
    }

    /// Continues playback and returns the events to process: keys wait until playback ends, and Escape stops it.
    pub(crate) fn filter_input_events(&mut self, ctx: &egui::Context, events: Vec<Event>) -> (Vec<Event>, Vec<Event>) {
        let is_key = |event: &Event| {
            matches!(event, Event::Key { .. } | Event::Text(_) | Event::Paste(_) | Event::Cut | Event::Copy)
        };
        let is_end = |event: &Event| matches!(event, Event::Key { key: Key::Escape, pressed: true, .. });
        if !self.input.vim.playing.is_playing() {
            return (events, Vec::new());
        }
        if events.iter().any(is_end) {
            self.input.stop_macros();
            self.input.finish_vim_action(&self.host, &mut self.panes);
            return (events, Vec::new());
        }
        self.continue_macro(ctx);
        if !self.input.vim.playing.is_playing() {
            return (events, Vec::new());
        }
        let (keys, rest) = events.into_iter().partition(is_key);
        (rest, keys)
    }
}
