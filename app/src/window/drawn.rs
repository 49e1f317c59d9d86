//! A row as it was laid out: what to paint where, and the way back from a point to the source.

use crate::tokens::Colours;
use eframe::egui;
use egui::{Color32, CornerRadius, Galley, Pos2, Rect, Stroke, Vec2, vec2};
use std::ops::Range;
use std::sync::Arc;

/// From a character of laid-out text back to the byte of the source.
#[derive(Debug, Default)]
pub(super) struct Map {
    pub(super) runs: Vec<Run>,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) chars: usize,
    pub(super) source: Range<usize>,
    /// Whether the source stands there character by character.
    pub(super) exact: bool,
}

impl Map {
    /// The byte of `source` that the character came from.
    pub(super) fn source(&self, source: &str, chars: usize) -> usize {
        let index = self.runs.partition_point(|run| run.chars <= chars);
        let Some(run) = index.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return self.runs.first().map_or(0, |run| run.source.start);
        };
        let part = source.get(run.source.clone()).unwrap_or("");
        let skip = chars - run.chars;
        if !run.exact {
            return if skip == 0 { run.source.start } else { run.source.end };
        }
        run.source.start + part.char_indices().nth(skip).map_or(part.len(), |(at, _)| at)
    }
}

/// Something to paint, at an offset from the row's left top.
#[derive(Debug)]
pub(super) enum Part {
    Text { at: Vec2, galley: Arc<Galley>, map: Map, links: Vec<(Range<usize>, String)> },
    Fill { rect: Rect, colour: Color32, corner: CornerRadius },
    Task { rect: Rect, mark: usize, done: bool, label: String },
}

/// A laid-out row.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) height: f32,
    pub(super) parts: Vec<Part>,
    /// Its text without marks, for those who listen.
    pub(super) text: String,
}

impl Drawn {
    /// Paints it; `selected` puts the ground of a selection behind it.
    pub(super) fn paint(&self, painter: &egui::Painter, origin: Pos2, colours: &Colours, selected: bool) {
        for part in &self.parts {
            match part {
                Part::Text { at, galley, .. } => {
                    if selected {
                        for row in &galley.rows {
                            let rect = row.rect().translate(origin.to_vec2() + *at);
                            painter.rect_filled(rect, CornerRadius::ZERO, colours.accent_ground);
                        }
                    }
                    painter.galley(origin + *at, galley.clone(), colours.ink);
                }
                Part::Fill { rect, colour, corner } => {
                    painter.rect_filled(rect.translate(origin.to_vec2()), *corner, *colour);
                }
                Part::Task { rect, done, .. } => paint_task(painter, rect.translate(origin.to_vec2()), *done, colours),
            }
        }
    }

    /// The byte of `source` nearest to a point, and the link there.
    pub(super) fn at(&self, source: &str, point: Vec2) -> (usize, Option<&str>) {
        let mut best: Option<(f32, usize, Option<&str>)> = None;
        for part in &self.parts {
            let Part::Text { at, galley, map, links } = part else { continue };
            if map.runs.is_empty() {
                continue;
            }
            let rect = Rect::from_min_size(at.to_pos2(), galley.size());
            let distance = rect.distance_sq_to_pos(point.to_pos2());
            if best.as_ref().is_some_and(|(least, ..)| *least <= distance) {
                continue;
            }
            let chars = galley.cursor_from_pos(point - *at).index.0;
            let link = links.iter().find(|(range, _)| distance == 0.0 && range.contains(&chars));
            best = Some((distance, map.source(source, chars), link.map(|(_, target)| target.as_str())));
        }
        best.map_or((0, None), |(_, source, link)| (source, link))
    }
}

fn paint_task(painter: &egui::Painter, rect: Rect, done: bool, colours: &Colours) {
    let square = Rect::from_center_size(rect.center(), Vec2::splat(16.0));
    if done {
        painter.rect_filled(square, CornerRadius::same(4), colours.accent);
        let [a, b, c] = [vec2(4.0, 8.5), vec2(7.0, 11.5), vec2(12.0, 5.0)].map(|at| square.min + at);
        painter.line(vec![a, b, c], Stroke::new(2.0, colours.paper));
    } else {
        painter.rect(
            square,
            CornerRadius::same(4),
            colours.paper,
            Stroke::new(1.5, colours.muted),
            egui::StrokeKind::Inside,
        );
    }
}
