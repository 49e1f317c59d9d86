//! Short words at the lower right: what was refused, and what happened elsewhere. They go by themselves.

use super::controls::{floating, named};
use crate::tokens::{self, Colours, space};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Area, Id, Order, Sense, vec2};

/// How long one stays, in seconds.
const STAYS: f64 = 4.0;
/// How many are kept.
const MOST: usize = 4;

/// The toasts that are there.
#[derive(Default)]
pub(super) struct Toasts {
    all: Vec<(String, Option<f64>)>,
}

impl Toasts {
    /// Adds one, unless it says what the last one says.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        let text = text.into();
        match self.all.iter_mut().find(|(old, _)| *old == text) {
            Some((_, since)) => *since = None,
            None => self.all.push((text, None)),
        }
        if self.all.len() > MOST {
            self.all.remove(0);
        }
    }

    /// Draws them and lets go of the old ones.
    pub(super) fn show(&mut self, ctx: &egui::Context, colours: &'static Colours, dark: bool) {
        if self.all.is_empty() {
            return;
        }
        let now = ctx.input(|input| input.time);
        let mut closed = None;
        self.all.retain_mut(|(_, since)| now - *since.get_or_insert(now) < STAYS);
        let bottom = vec2(-space::L, -(tokens::size::STATUS + space::L));
        Area::new(Id::unique("toasts")).order(Order::Tooltip).anchor(Align2::RIGHT_BOTTOM, bottom).show(ctx, |ui| {
            for (index, (text, _)) in self.all.iter().enumerate() {
                let frame = floating(colours, dark).inner_margin(egui::Margin::symmetric(16, 12));
                let response = frame
                    .show(ui, |ui| {
                        ui.set_max_width(360.0);
                        let style = tokens::small();
                        let job = egui::text::LayoutJob::simple(text.clone(), style.font, colours.ink, 360.0);
                        ui.label(job);
                    })
                    .response
                    .interact(Sense::click());
                named(&response, Role::Button, &format!("Dismiss: {text}"));
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
            self.all.iter().filter_map(|(_, since)| *since).map(|since| since + STAYS - now).fold(STAYS, f64::min);
        ctx.request_repaint_after(std::time::Duration::from_secs_f64(next.max(0.0) + 0.01));
    }
}
