//! Shows a preview card for the link under the pointer.

use crate::overlays::hover::{beginning, card, hint};
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use engine::{Command, NotePhase};
use notebook::link_targets::{heading_offset, link_target};
use ui::text::shown_name;

/// How long the pointer rests on a link before the card is shown, in seconds.
const HOVER_DELAY_SECONDS: f64 = 0.3;

impl InputState {
    /// Updates the hovered link, and draws the card.
    pub(crate) fn update_link_hover(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        overlay: &mut WindowOverlay,
        ctx: &egui::Context,
    ) {
        let now = ctx.input(|input| input.time);
        let over =
            panes.active.page.over.take().filter(|_| matches!(overlay, WindowOverlay::None) && panes.view.is_none());
        let Some((link, at)) = over.filter(|(link, _)| {
            !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with(editor::render::embeds::TAG)
        }) else {
            self.hover.link = None;
            return self.release_hovered_note(host);
        };
        let (at, since) = match &self.hover.link {
            Some((known, at, since)) if *known == link => (*at, *since),
            Some(_) | None => {
                self.release_hovered_note(host);
                self.hover.link = Some((link.clone(), at, now));
                (at, now)
            }
        };
        if now - since < HOVER_DELAY_SECONDS {
            ctx.request_repaint_after(std::time::Duration::from_secs_f64(HOVER_DELAY_SECONDS - (now - since)));
            return;
        }
        let Some(note) = panes.active.note else { return };
        let Some(target) = link_target(host.session(), note, &link) else {
            if panes.active.page.unresolved_links.contains(host.session(), note, &link) {
                let path = link.split_once('#').map_or(link.as_str(), |(path, _)| path);
                let name = text::outline::percent_decode(path);
                hint(ctx, at, &format!("Create “{}”", text::links::without_md_extension(&name)));
            }
            return;
        };
        if Some(target) == panes.active.note {
            return;
        }
        if self.hover.held.is_none() {
            if host.driver.run_command(Command::HoldNote { note: target }).is_err() {
                return; // an attachment
            }
            self.hover.held = Some(target);
        }
        let session = host.session();
        let Some(note) = session.note(target).filter(|note| note.phase == NotePhase::Ready) else { return };
        let length = (0..4).map(|less| note.length().min(4_000) - less.min(note.length()));
        let text = length.into_iter().find_map(|length| note.slice(0, length)).unwrap_or_default();
        let path = session.locate_file(target).map_or("", |(_, path)| path);
        let name = shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned();
        let part = link.split_once('#').map(|(_, part)| part.to_owned());
        let from = part.and_then(|part| heading_offset(&text::outline::Outline::of(&text), &part)).unwrap_or(0);
        card(ctx, at, &name, &beginning(&text[from..]));
    }

    fn release_hovered_note(&mut self, host: &mut HostLink) {
        if let Some(note) = self.hover.held.take() {
            let _ = host.driver.run_command(Command::ReleaseNote { note }); // it may be closed by now
        }
    }
}
