//! A card with the beginning of a note, shown while the pointer rests on a link to it.

use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Area, Id, Order, Pos2, vec2};
use store::DocId;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{floating_frame, set_accessible_name};

/// Maximum number of the note's lines in the card.
const MAX_LINK_PREVIEW_LINES: usize = 10;
const LINK_PREVIEW_WIDTH: f32 = 400.0;

/// The link under the pointer.
#[derive(Default)]
pub(crate) struct LinkHover {
    pub(crate) link: Option<(String, Pos2, f64)>,
    /// The note that is kept open for the preview.
    pub(crate) held: Option<DocId>,
}

/// Returns the first lines of a note as plain text.
pub(crate) fn beginning(text: &str) -> Vec<String> {
    let body = text::outline::front_matter_range(text).map_or(text, |front| {
        let rest = &text[front.end..];
        rest.split_once('\n').map_or("", |(_, rest)| rest)
    });
    let plain = |line: &str| {
        let line = line.trim().trim_start_matches(['#', '>']).trim();
        let line = line.replace("- [ ] ", "☐ ").replace("- [x] ", "☑ ").replace("**", "").replace('`', "");
        let line = line.replace("[[", "").replace("]]", "");
        line.strip_prefix("- ").map_or(line.clone(), |item| format!("• {item}"))
    };
    body.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINK_PREVIEW_LINES).map(plain).collect()
}

/// Draws a one-line hint that says what a click does.
pub(crate) fn hint(ctx: &egui::Context, at: Pos2, text: &str) {
    let dark = ctx.global_style().visuals.dark_mode;
    let colours = ThemeColors::for_dark_mode(dark);
    let area = Area::new(Id::unique("hover card")).order(Order::Tooltip).interactable(false);
    area.fixed_pos(at + vec2(0.0, space::L)).constrain(true).show(ctx, |ui| {
        let frame = floating_frame(colours, dark).inner_margin(egui::Margin::symmetric(12, 8));
        frame.show(ui, |ui| {
            ui.set_max_width(LINK_PREVIEW_WIDTH);
            let shown = text::untrusted_text::escape_line(text);
            ui.label(egui::RichText::new(shown).font(theme::small().font).color(colours.ink));
        });
    });
}

pub(crate) fn card(ctx: &egui::Context, at: Pos2, name: &str, lines: &[String]) {
    let dark = ctx.global_style().visuals.dark_mode;
    let colours = ThemeColors::for_dark_mode(dark);
    let area = Area::new(Id::unique("hover card")).order(Order::Tooltip).interactable(false);
    area.fixed_pos(at + vec2(0.0, space::L)).constrain(true).show(ctx, |ui| {
        let frame = floating_frame(colours, dark).inner_margin(egui::Margin::symmetric(16, 12));
        let response = frame.show(ui, |ui| {
            ui.set_max_width(LINK_PREVIEW_WIDTH);
            let mut job = LayoutJob::default();
            let title = theme::heading(3);
            job.append(
                &text::untrusted_text::escape_line(name),
                0.0,
                ui::widgets::format(title.font, title.line, colours.ink),
            );
            let small = theme::small();
            for line in lines {
                let text = format!("\n{}", text::untrusted_text::escape_line(line));
                job.append(&text, 0.0, ui::widgets::format(small.font.clone(), small.line, colours.muted));
            }
            job.wrap.max_width = LINK_PREVIEW_WIDTH;
            job.wrap.max_rows = MAX_LINK_PREVIEW_LINES + 2;
            ui.label(job);
        });
        set_accessible_name(&response.response, Role::Tooltip, &format!("Preview of {name}"));
    });
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn the_beginning_is_plain() {
        let text = "---\na: 1\n---\n# Head\n\n- [ ] do\n- an **item** of [[x]]\n> said\n";
        assert_eq!(beginning(text), ["Head", "☐ do", "• an item of x", "said"]);
    }
}
