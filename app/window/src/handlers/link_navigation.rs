//! Follows links: to the web, another note, a heading or a block. A missing note can be created.

use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::dock_state::DockState;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use eframe::egui;
use notebook::actions::PendingJump;
use notebook::link_targets::{MAX_SHOWN_ADDRESS_CHARS, OutsideLink, heading_offset, link_target, outside_link};
use store::{DocId, FileKind};

impl PaneState {
    /// Follows a link of the open note.
    pub(crate) fn follow_link(
        &mut self,
        host: &mut HostLink,
        dock: &mut DockState,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        (ctx, link): (&egui::Context, &str),
    ) {
        if let Some(tag) = link.strip_prefix(editor::render::embeds::TAG) {
            overlay.open_search_for(host, &format!("tag:{tag}"));
            return;
        }
        match outside_link(link) {
            Some(OutsideLink::Web) => return ctx.open_url(egui::OpenUrl::new_tab(link)),
            Some(OutsideLink::Program) => {
                // A click alone starts no program: the link's words may promise something else.
                let address: String = link.chars().take(MAX_SHOWN_ADDRESS_CHARS).collect();
                let advice = "To open it, choose “Open in another program” in the link's menu.";
                return notices.toasts.show_message(format!("{address} starts another program. {advice}"));
            }
            None => {}
        }
        let (path, part) = link.split_once('#').unwrap_or((link, ""));
        if self.active.note.is_none() {
            return;
        }
        match self.linked_file(host, link) {
            Some((target, FileKind::Note | FileKind::Script)) => self.open_at(host, notices, target, part),
            Some((target, FileKind::Collection)) => {
                self.open(host, notices, target);
                self.active.collection.begin_with(part);
            }
            Some((target, FileKind::Attachment)) => self.open(host, notices, target),
            None if host.session().agents().find_by_address(path).is_some() => {
                self.follow_address(host, dock, notices, prefs, path, part);
            }
            None => self.create_linked_note(host, overlay, notices, path),
        }
    }

    /// Follows a link of the open note in a new tab, if it leads to a note or a collection.
    pub(crate) fn follow_link_beside(
        &mut self,
        host: &mut HostLink,
        dock: &mut DockState,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        (ctx, link): (&egui::Context, &str),
    ) {
        match self.linked_file(host, link) {
            Some((target, kind @ (FileKind::Note | FileKind::Script | FileKind::Collection))) => {
                if !self.go_to_note(host, notices, target) {
                    self.new_tab(host, notices, Some(target));
                }
                if kind != FileKind::Collection {
                    let part = link.split_once('#').map_or("", |(_, part)| part);
                    self.open_at(host, notices, target, part);
                }
            }
            Some((_, FileKind::Attachment)) | None => {
                self.follow_link(host, dock, overlay, notices, prefs, (ctx, link));
            }
        }
    }

    /// Returns the file that a link of the open note leads to.
    fn linked_file(&self, host: &HostLink, link: &str) -> Option<(DocId, FileKind)> {
        let session = host.session();
        let target = link_target(session, self.active.note?, link)?;
        let (volume, path) = session.locate_file(target)?;
        Some((target, session.volume(volume)?.files.get(path)?.kind))
    }

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
