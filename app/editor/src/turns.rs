//! The order of what is done. egui reads the pointer before it reads keys, whichever came first: on a slow machine a
//! click and the text typed before it arrive in one frame, and the text would land where the click went. So a frame
//! gets either keys or the pointer's buttons, as they came, and the rest waits for the next.

use eframe::egui;
use egui::{Context, Event, RawInput, Ui};
use std::collections::VecDeque;

/// Events that wait for their frame.
#[derive(Default)]
pub struct Turns {
    waiting: VecDeque<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Keys,
    Pointer,
}

fn side(event: &Event) -> Option<Side> {
    match event {
        Event::Key { pressed: true, .. }
        | Event::Text(_)
        | Event::Paste(_)
        | Event::PasteImage(_)
        | Event::Cut
        | Event::Copy
        | Event::Ime(_) => Some(Side::Keys),
        Event::PointerButton { .. } => Some(Side::Pointer),
        _ => None,
    }
}

impl Turns {
    /// Puts events that came to their turn too early back to where they were.
    pub fn put_back(ctx: &Context, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        ctx.with_plugin(|turns: &mut Turns| {
            events.into_iter().rev().for_each(|event| turns.waiting.push_front(event));
        });
        ctx.request_repaint();
    }
}

impl egui::Plugin for Turns {
    fn debug_name(&self) -> &'static str {
        "turns"
    }

    fn input_hook(&mut self, _: &Context, input: &mut RawInput) {
        self.waiting.extend(input.events.drain(..));
        let mut turn = None;
        while let Some(event) = self.waiting.front() {
            let side = side(event);
            if side.is_some() && turn.is_some() && side != turn {
                break;
            }
            turn = turn.or(side);
            input.events.extend(self.waiting.pop_front());
        }
    }

    fn on_begin_pass(&mut self, ui: &mut Ui) {
        if !self.waiting.is_empty() {
            ui.ctx().request_repaint();
        }
    }
}
