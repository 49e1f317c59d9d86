//! Follows links: to the web, another note, a heading or a block. A missing note can be created.

use crate::app_window::AppWindow;
use crate::shell::dock_state::DockState;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use eframe::egui;
use notebook::actions::PendingJump;
use notebook::link_targets::{OutsideLink, heading_offset, link_target, outside_link};
use store::{DocId, FileKind};

/// Maximum length of an address in a message, in characters.
const MAX_SHOWN_ADDRESS_CHARS: usize = 200;

impl AppWindow {
    /// Follows a link of the open note.
    pub(crate) fn follow_link(&mut self, ctx: &egui::Context, link: &str) {
        if let Some(tag) = link.strip_prefix(editor::render::embeds::TAG) {
            self.overlay.open_search_for(&self.host, &format!("tag:{tag}"));
            return;
        }
        match outside_link(link) {
            Some(OutsideLink::Web) => return ctx.open_url(egui::OpenUrl::new_tab(link)),
            Some(OutsideLink::Program) => {
                // A click alone starts no program: the link's words may promise something else.
                let address: String = link.chars().take(MAX_SHOWN_ADDRESS_CHARS).collect();
                let advice = "To open it, choose “Open in another program” in the link's menu.";
                return self.notices.toasts.show_message(format!("{address} starts another program. {advice}"));
            }
            None => {}
        }
        let (path, part) = link.split_once('#').unwrap_or((link, ""));
        let (target, file) = {
            let session = self.host.session();
            let Some(note) = self.panes.active.note else { return };
            let target = link_target(session, note, link);
            let row = target.and_then(|target| {
                let (volume, path) = session.locate_file(target)?;
                session.volume(volume)?.files.get(path).map(|row| row.kind)
            });
            (target, row)
        };
        match (target, file) {
            (Some(target), Some(FileKind::Note | FileKind::Script)) => {
                self.panes.open_at(&mut self.host, &mut self.notices, target, part)
            }
            (Some(target), Some(FileKind::Collection)) => {
                self.panes.open(&mut self.host, &mut self.notices, target);
                self.panes.active.collection.begin_with(part);
            }
            (Some(target), Some(FileKind::Attachment)) => self.panes.open(&mut self.host, &mut self.notices, target),
            _ if self.host.session().agents().find_by_address(path).is_some() => {
                self.panes.follow_address(
                    &mut self.host,
                    &mut self.dock,
                    &mut self.notices,
                    &mut self.prefs,
                    path,
                    part,
                );
            }
            _ => self.panes.create_linked_note(&mut self.host, &mut self.overlay, &mut self.notices, path),
        }
    }
}

impl AppWindow {
    /// Follows a link of the open note in a new tab, if it leads to a note or a collection.
    pub(crate) fn follow_link_beside(&mut self, ctx: &egui::Context, link: &str) {
        let session = self.host.session();
        let target = self.panes.active.note.and_then(|note| link_target(session, note, link));
        let kind = target.and_then(|target| {
            let (volume, path) = session.locate_file(target)?;
            session.volume(volume)?.files.get(path).map(|row| row.kind)
        });
        match (target, kind) {
            (Some(target), Some(FileKind::Note | FileKind::Script | FileKind::Collection)) => {
                if !self.panes.go_to_note(&mut self.host, &mut self.notices, target) {
                    self.panes.new_tab(&mut self.host, &mut self.notices, Some(target));
                }
                if kind != Some(FileKind::Collection) {
                    let part = link.split_once('#').map_or("", |(_, part)| part);
                    self.panes.open_at(&mut self.host, &mut self.notices, target, part);
                }
            }
            _ => self.follow_link(ctx, link),
        }
    }
}

impl PaneState {
    /// Shows the step of a run, or the message of a session, that an address names.
    pub(crate) fn follow_address(
        &mut self,
        host: &mut HostLink,
        dock: &mut DockState,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        address: &str,
        part: &str,
    ) {
        if let Some(doc) = host.session().agents().find_by_address(address) {
            dock.show_found(host, self, notices, prefs, doc, part.trim());
        }
    }

    /// Shows a note, scrolled to a heading or block.
    pub(crate) fn open_at(&mut self, host: &mut HostLink, notices: &mut NoticeState, note: DocId, part: &str) {
        self.open(host, notices, note);
        let session = host.session();
        let volume = session.locate_file(note).and_then(|(volume, _)| session.volume(volume));
        let outline = volume.and_then(|volume| volume.links.outline(note)).cloned();
        // Search results link to blocks by their IDs.
        match (outline.and_then(|outline| heading_offset(&outline, part)), PendingJump::from_place(note, part)) {
            (Some(at), _) => self.active.page.point_out(at),
            (None, Some(aim)) => self.pending_jump = Some(aim),
            (None, None) if part.is_empty() => {}
            (None, None) => notices.toasts.show_message(format!("The note has no heading or block called “{part}”.")),
        }
    }
}
