//! The beginning of a note in a card, while the pointer rests on a link to it.

use crate::panels::tree;
use crate::{AppWindow, WindowOverlay, handlers::link_navigation};
use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Area, Id, Order, Pos2, vec2};
use engine::{Command, NotePhase};
use store::DocId;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{floating_frame, set_accessible_name};

/// The pointer rests for this long, in seconds.
const HOVER_DELAY_SECONDS: f64 = 0.3;
/// Lines of the note that are shown.
const MAX_LINK_PREVIEW_LINES: usize = 10;
const LINK_PREVIEW_WIDTH: f32 = 400.0;

/// The link under the pointer.
#[derive(Default)]
pub(crate) struct LinkHover {
    link: Option<(String, Pos2, f64)>,
    /// The note that is kept open to be shown.
    held: Option<DocId>,
}

impl AppWindow {
    /// Looks what the pointer rests on, and draws the card.
    pub(crate) fn update_link_hover(&mut self, ctx: &egui::Context) {
        let now = ctx.input(|input| input.time);
        let over = self
            .active_pane
            .page
            .over
            .take()
            .filter(|_| matches!(self.overlay, WindowOverlay::None) && self.view.is_none());
        let Some((link, at)) = over.filter(|(link, _)| {
            !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with(editor::render::embeds::TAG)
        }) else {
            self.hover.link = None;
            return self.release_hovered_note();
        };
        let (at, since) = match &self.hover.link {
            Some((known, at, since)) if *known == link => (*at, *since),
            Some(_) | None => {
                self.release_hovered_note();
                self.hover.link = Some((link.clone(), at, now));
                (at, now)
            }
        };
        if now - since < HOVER_DELAY_SECONDS {
            ctx.request_repaint_after(std::time::Duration::from_secs_f64(HOVER_DELAY_SECONDS - (now - since)));
            return;
        }
        let Some(target) = self
            .session()
            .zip(self.active_pane.note)
            .and_then(|(session, note)| link_navigation::link_target(session, note, &link))
        else {
            return;
        };
        if Some(target) == self.active_pane.note {
            return;
        }
        if self.hover.held.is_none() {
            let Some(driver) = &mut self.driver else { return };
            if driver.command(Command::HoldNote { note: target }).is_err() {
                return; // an attachment
            }
            self.hover.held = Some(target);
        }
        let Some(session) = self.session() else { return };
        let Some(note) = session.note(target).filter(|note| note.phase == NotePhase::Ready) else { return };
        let length = (0..4).map(|less| note.length().min(4_000) - less.min(note.length()));
        let text = length.into_iter().find_map(|length| note.slice(0, length)).unwrap_or_default();
        let path = session.locate_file(target).map_or("", |(_, path)| path);
        let name = tree::shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned();
        let part = link.split_once('#').map(|(_, part)| part.to_owned());
        let from = part
            .and_then(|part| link_navigation::heading_offset(&text::outline::Outline::of(&text), &part))
            .unwrap_or(0);
        card(ctx, at, &name, &beginning(&text[from..]));
    }

    fn release_hovered_note(&mut self) {
        if let Some(note) = self.hover.held.take()
            && let Some(driver) = &mut self.driver
        {
            let _ = driver.command(Command::ReleaseNote { note }); // it may be closed by now
        }
    }
}

/// The first lines of a note as plain words.
fn beginning(text: &str) -> Vec<String> {
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

fn card(ctx: &egui::Context, at: Pos2, name: &str, lines: &[String]) {
    let dark = ctx.global_style().visuals.dark_mode;
    let colours = ThemeColors::for_dark_mode(dark);
    let area = Area::new(Id::unique("hover card")).order(Order::Tooltip).interactable(false);
    area.fixed_pos(at + vec2(0.0, space::L)).constrain(true).show(ctx, |ui| {
        let frame = floating_frame(colours, dark).inner_margin(egui::Margin::symmetric(16, 12));
        let response = frame.show(ui, |ui| {
            ui.set_max_width(LINK_PREVIEW_WIDTH);
            let mut job = LayoutJob::default();
            let title = theme::heading(3);
            job.append(name, 0.0, ui::widgets::format(title.font, title.line, colours.ink));
            let small = theme::small();
            for line in lines {
                let text = format!("\n{line}");
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
