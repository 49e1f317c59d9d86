//! Keeps input events in order. egui handles the pointer before keys, whichever came first. On a slow machine, a click
//! and text typed before it can arrive in one frame, and the text would go where the click went. Each frame therefore
//! gets either keys or pointer buttons, in their order, and the other events wait for the next frame.

use eframe::egui;
use egui::{Context, Event, RawInput, Ui};
use std::collections::VecDeque;

/// Queue of events that wait for a later frame.
#[derive(Default)]
pub struct InputOrder {
    waiting: VecDeque<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InputKind {
    Keys,
    Pointer,
}

fn side(event: &Event) -> Option<InputKind> {
    match event {
        Event::Key { pressed: true, .. }
        | Event::Text(_)
        | Event::Paste(_)
        | Event::PasteImage(_)
        | Event::Cut
        | Event::Copy
        | Event::Ime(_) => Some(InputKind::Keys),
        Event::PointerButton { .. } => Some(InputKind::Pointer),
        _ => None,
    }
}

impl InputOrder {
    /// Returns events to the front of the queue if they were delivered too early.
    pub fn requeue_events(ctx: &Context, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        ctx.with_plugin(|turns: &mut InputOrder| {
            events.into_iter().rev().for_each(|event| turns.waiting.push_front(event));
        });
        ctx.request_repaint();
    }
}

impl egui::Plugin for InputOrder {
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
