//! Display of search hits: location, and text with highlighted matches.

use egui::Color32;
use egui::text::LayoutJob;
use host::search::{NoteHit, PassageKind};
use std::ops::Range;
use text::markdown::plain_text;
use text::untrusted_text;
use ui::theme::{self, InterCut, ThemeColors};
use ui::widgets::format;

/// Returns the folder, heading and kind of a hit, as shown below its title.
pub fn hit_location(hit: &NoteHit) -> String {
    let folder = hit.path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.replace('/', " / "));
    let heading = if hit.heading == hit.title { "" } else { hit.heading.as_str() };
    let kind = match hit.kind {
        PassageKind::Prose => "",
        PassageKind::Code => "code",
        PassageKind::Output => "output",
        PassageKind::Run => "run",
        PassageKind::Memory => "memory",
    };
    [folder.as_str(), heading, kind].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ·  ")
}

/// Lays out a text with the found words in the accent color.
pub fn highlighted_text(
    text: &str,
    found: &[Range<usize>],
    points: f32,
    line: f32,
    colour: Color32,
    colours: &ThemeColors,
) -> LayoutJob {
    let mut job = LayoutJob::default();
    let plain = || format(theme::inter_font(InterCut::Regular, points), line, colour);
    let strong = || format(theme::inter_font(InterCut::SemiBold, points), line, colours.accent);
    let mut at = 0;
    for mark in found {
        job.append(&untrusted_text::escape_block(&text[at..mark.start]), 0.0, plain());
        job.append(&untrusted_text::escape_block(&text[mark.clone()]), 0.0, strong());
        at = mark.end;
    }
    job.append(&untrusted_text::escape_block(&text[at..]), 0.0, plain());
    job
}

/// Returns a hit with its passage as rendered text, without Markdown syntax.
pub fn readable_hit(hit: &NoteHit) -> NoteHit {
    let mut shown = hit.clone();
    if !matches!(hit.kind, PassageKind::Prose | PassageKind::Run | PassageKind::Memory) {
        return shown;
    }
    shown.why.nearest = None;
    match &hit.why.nearest {
        Some(near) if hit.text.is_char_boundary(near.start) && hit.text.is_char_boundary(near.end) => {
            let parts = [&hit.text[..near.start], &hit.text[near.clone()], &hit.text[near.end..]].map(plain_text);
            let from = parts[0].len() + usize::from(!parts[0].is_empty());
            shown.why.nearest = Some(from..from + parts[1].len());
            shown.text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
        }
        _ => shown.text = plain_text(&hit.text),
    }
    shown
}
