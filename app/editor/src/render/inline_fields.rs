//! Inline fields such as `[due:: 2026-11-20]`, drawn less prominently than the text.

use eframe::egui;
use egui::epaint::text::ByteIndex;
use egui::text::LayoutJob;
use std::ops::Range;
use ui::theme::ThemeColors;

/// Draws the inline fields of a line in `muted`.
pub(super) fn quiet(job: &mut LayoutJob, colours: &ThemeColors) {
    for field in fields(&job.text) {
        let mut sections = Vec::with_capacity(job.sections.len() + 2);
        for section in job.sections.drain(..) {
            let (start, end) = (section.byte_range.start.0, section.byte_range.end.0);
            let cuts = [start, field.start.clamp(start, end), field.end.clamp(start, end), end];
            for (index, cut) in cuts.windows(2).enumerate().filter(|(_, cut)| cut[0] < cut[1]) {
                let mut part = section.clone();
                part.byte_range = ByteIndex(cut[0])..ByteIndex(cut[1]);
                if cut[0] > start {
                    part.leading_space = 0.0;
                }
                if index == 1 && part.format.color == colours.ink {
                    part.format.color = colours.muted;
                }
                sections.push(part);
            }
        }
        job.sections = sections;
    }
}

/// Returns the ranges of inline fields in a text: a name, two colons and a value in brackets or parentheses.
fn fields(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(colons) = text[from..].find("::").map(|at| from + at) {
        from = colons + 2;
        let Some(open) = text[..colons].rfind(['[', '(']) else { continue };
        let name = &text[open + 1..colons];
        let close = if text[open..].starts_with('[') { ']' } else { ')' };
        let Some(end) = text[from..].find([close, '\n']).map(|at| from + at) else { continue };
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        if !name.trim().is_empty() && name.chars().all(plain) && text[end..].starts_with(close) {
            found.push(open..end + 1);
            from = end;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let found = |text: &'static str| fields(text).into_iter().map(|range| &text[range]).collect::<Vec<&str>>();
        assert_eq!(found("Sow [due:: 2026-11-20] and (in:: a week)"), ["[due:: 2026-11-20]", "(in:: a week)"]);
        assert_eq!(found("a::b [x] c:: [a:: b\nc] (std::vec)"), ["(std::vec)"]);
        assert!(found("é:: [:: x] ::").is_empty());
    }
}
