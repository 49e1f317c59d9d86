//! How a hit of a search is shown: where it stands, and its words with what was found marked.

use egui::Color32;
use egui::text::LayoutJob;
use host::search::NoteHit;
use std::ops::Range;
use text::untrusted_text;
use ui::theme::{self, InterCut, ThemeColors};
use ui::widgets::format;

/// The folder, heading and kind of a hit, as shown below its title.
pub fn hit_location(hit: &NoteHit) -> String {
    let folder = hit.path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.replace('/', " / "));
    let heading = if hit.heading == hit.title { "" } else { hit.heading.as_str() };
    let kind = match hit.kind {
        host::search::PassageKind::Prose => "",
        host::search::PassageKind::Code => "code",
        host::search::PassageKind::Output => "output",
        host::search::PassageKind::Run => "run",
        host::search::PassageKind::Memory => "memory",
    };
    [folder.as_str(), heading, kind].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ·  ")
}

/// A text with the words that were found in the accent colour.
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
