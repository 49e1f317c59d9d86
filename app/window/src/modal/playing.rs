//! Keys of registers that are played: as if they were pressed one after the other, a few in each frame where there are
//! many, until one of them cannot do what it says. Escape ends it.

use super::super::Window;
use editor::vim::Stroke;
use eframe::egui;
use egui::{Event, Key};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A register that plays itself ends after so many keys.
const MOST: usize = 100_000;
/// So many registers play each other at most.
const DEEP: usize = 100;
/// What may be played in one frame.
const FRAME: Duration = Duration::from_millis(20);

/// What is being played: the register begun last comes first.
#[derive(Default)]
pub(crate) struct Playing {
    stack: Vec<Played>,
    count: usize,
}

struct Played {
    keys: Rc<[Stroke]>,
    next: usize,
    /// How often all of them come once more.
    left: usize,
}

impl Playing {
    /// Whether something is being played.
    pub(super) fn is_on(&self) -> bool {
        !self.stack.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Stroke> {
        self.settle();
        let top = self.stack.last_mut()?;
        let key = top.keys.get(top.next).cloned();
        top.next += 1;
        self.count += 1;
        key
    }

    /// Lets go of what has come to its end.
    fn settle(&mut self) {
        while let Some(top) = self.stack.last_mut() {
            if top.next < top.keys.len() {
                return;
            }
            if top.left > 0 && !top.keys.is_empty() {
                (top.next, top.left) = (0, top.left - 1);
                return;
            }
            self.stack.pop();
        }
    }
}

impl Window {
    /// Keys shall be played as often.
    pub(super) fn begin_play(&mut self, keys: Vec<Stroke>, times: usize) {
        let playing = &mut self.modal.playing;
        playing.settle();
        if playing.stack.len() < DEEP {
            playing.stack.push(Played { keys: keys.into(), next: 0, left: times.saturating_sub(1) });
        } else {
            self.modal.vim.failed = true;
        }
    }

    /// Plays what is to be played, as much as one frame bears.
    pub(super) fn play_on(&mut self, ctx: &egui::Context) {
        let begun = Instant::now();
        if !self.modal.playing.is_on() || self.modal.vim.plays {
            return;
        }
        self.modal.vim.plays = true;
        while let Some(stroke) = self.modal.playing.next() {
            self.modal.vim.failed = false;
            self.play(ctx, stroke);
            if self.modal.vim.failed {
                self.stop_playing();
            }
            if self.modal.playing.count >= MOST {
                self.stop_playing();
                self.toasts.say(format!("What was played ended after {MOST} keys."));
            }
            if begun.elapsed() > FRAME {
                break;
            }
        }
        self.modal.playing.settle();
        self.modal.vim.plays = false;
        if !self.modal.playing.is_on() {
            self.modal.playing.count = 0;
            self.vim_settle();
        } else {
            ctx.request_repaint();
        }
    }

    pub(crate) fn stop_playing(&mut self) {
        self.modal.playing = Playing::default();
    }

    /// Plays on, and gives the events that may be looked at now: keys wait until all is played, and Escape ends it.
    pub(crate) fn played(&mut self, ctx: &egui::Context, events: Vec<Event>) -> (Vec<Event>, Vec<Event>) {
        let is_key = |event: &Event| {
            matches!(event, Event::Key { .. } | Event::Text(_) | Event::Paste(_) | Event::Cut | Event::Copy)
        };
        let is_end = |event: &Event| matches!(event, Event::Key { key: Key::Escape, pressed: true, .. });
        if !self.modal.playing.is_on() {
            return (events, Vec::new());
        }
        if events.iter().any(is_end) {
            self.stop_playing();
            self.vim_settle();
            return (events, Vec::new());
        }
        self.play_on(ctx);
        if !self.modal.playing.is_on() {
            return (events, Vec::new());
        }
        let (keys, rest) = events.into_iter().partition(is_key);
        (rest, keys)
    }

    /// The words that were played into a line to type in, up to Enter; `None`: nothing is played.
    pub(super) fn played_line(&mut self) -> Option<String> {
        if !self.modal.vim.plays {
            return None;
        }
        let mut line = String::new();
        while let Some(stroke) = self.modal.playing.next() {
            match stroke {
                Stroke::Text(text) => line.push_str(&text),
                Stroke::Key(Key::Enter, _) => break,
                Stroke::Key(..) => {}
            }
        }
        Some(line)
    }

    /// Records what was typed into such a line.
    pub(crate) fn record_line(&mut self, line: &str) {
        line.chars().for_each(|letter| self.modal.vim.record(Stroke::Text(letter.to_string())));
        self.modal.vim.record(Stroke::Key(Key::Enter, egui::Modifiers::NONE));
    }
}
