//! Opens, splits, switches and closes tabs.

use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::panes::MAX_REOPENABLE_TABS;
use egui_tiles::LinearDir;
use engine::Command;
use notebook::actions::PaneId;
use store::DocId;

impl PaneState {
    /// Activates another pane.
    pub(crate) fn go_to_pane(&mut self, host: &mut HostLink, notices: &mut NoticeState, id: PaneId) {
        self.layout.reveal(id);
        let Some(pane) = self.layout.others.remove(&id) else { return };
        let old = std::mem::replace(&mut self.active, pane);
        self.layout.others.insert(old.id, old);
        self.has_chosen_note = true;
        self.active.editor.focus = self.active.editor.caret.is_some();
        // `OpenNote` makes this the last opened note, and opens it if it was closed.
        if let Some(note) = self.active.note
            && host.is_known(note)
            && !host.is_attachment(note)
        {
            host.send(Command::OpenNote { note }, notices);
        }
    }

    /// Activates the next or previous tab.
    pub(crate) fn turn_tabs(&mut self, host: &mut HostLink, notices: &mut NoticeState, back: bool) {
        let order = self.layout.reading_order();
        let Some(place) = order.iter().position(|pane| *pane == self.active.id) else { return };
        let by = if back { order.len() - 1 } else { 1 };
        if let Some(pane) = order.get((place + by) % order.len()) {
            self.go_to_pane(host, notices, *pane);
        }
    }

    /// Opens a new tab, with a note or empty.
    pub(crate) fn new_tab(&mut self, host: &mut HostLink, notices: &mut NoticeState, note: Option<DocId>) {
        let pane = self.layout.fresh(None);
        let id = pane.id;
        self.layout.add_background_tab(self.active.id, id);
        self.layout.others.insert(id, pane);
        self.go_to_pane(host, notices, id);
        if let Some(note) = note {
            self.open(host, notices, note);
        }
    }

    /// Opens the same note in another pane, to the right or below.
    pub(crate) fn split(&mut self, host: &mut HostLink, notices: &mut NoticeState, dir: LinearDir) {
        let mut pane = self.layout.fresh(None);
        let id = pane.id;
        pane.show_note(self.active.note);
        self.layout.add_beside(self.active.id, id, dir);
        self.layout.others.insert(id, pane);
        self.go_to_pane(host, notices, id);
    }

    /// Activates the tab of the same group in which a note is already open. Returns whether there is one.
    pub(crate) fn go_to_note(&mut self, host: &mut HostLink, notices: &mut NoticeState, note: DocId) -> bool {
        let pane = self.layout.background_tab(self.active.id, note);
        if let Some(pane) = pane {
            self.go_to_pane(host, notices, pane);
        }
        pane.is_some()
    }

    /// Closes a tab. The last one stays, without a note.
    pub(crate) fn close_tab(&mut self, host: &mut HostLink, notices: &mut NoticeState, id: PaneId) {
        if id == self.active.id {
            let order = self.layout.reading_order();
            let place = order.iter().position(|pane| *pane == id).unwrap_or(0);
            let group = self.layout.group(id);
            let near = |pane: &&PaneId| self.layout.group(**pane) == group;
            let next = order.get(place + 1).filter(near).or_else(|| {
                let before = place.checked_sub(1).and_then(|place| order.get(place));
                before.filter(near).or(order.get(place + 1)).or(before)
            });
            match next.copied() {
                Some(next) => self.go_to_pane(host, notices, next),
                None => {
                    let note = self.active.note;
                    self.active.show_note(None);
                    self.was_closed(host, notices, note);
                    return;
                }
            }
        }
        let Some(pane) = self.layout.others.remove(&id) else { return };
        if let Some(tile) = self.layout.tile(id) {
            self.layout.tree.remove_recursively(tile);
        }
        self.was_closed(host, notices, pane.note);
    }

    /// Remembers a closed tab's note for reopening, and closes the note if no other tab shows it.
    fn was_closed(&mut self, host: &mut HostLink, notices: &mut NoticeState, note: Option<DocId>) {
        let Some(note) = note else { return };
        self.layout.closed.push(note);
        if self.layout.closed.len() > MAX_REOPENABLE_TABS {
            self.layout.closed.remove(0);
        }
        if self.active.note == Some(note) || self.layout.pane_with_note(note).is_some() {
            return;
        }
        self.background_notes.retain(|kept| *kept != note);
        let is_open = host.session().note(note).is_some();
        if is_open {
            host.send(Command::CloseNote { note }, notices);
        }
    }

    /// Releases the rows that the pointer drags. Returns whether there were any.
    pub(crate) fn release_dragged_rows(&mut self) -> bool {
        let panes = std::iter::once(&mut self.active).chain(self.layout.others.values_mut());
        // `count` visits every pane, even after one with dragged rows.
        panes.map(|pane| pane.page.release_rows()).filter(|held| *held).count() > 0
    }

    /// Closes all tabs except the active one.
    pub(crate) fn close_other_tabs(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        for pane in self.layout.reading_order().into_iter().filter(|pane| *pane != self.active.id).collect::<Vec<_>>() {
            self.close_tab(host, notices, pane);
        }
    }

    /// Reopens the last closed tab.
    pub(crate) fn reopen_tab(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        while let Some(note) = self.layout.closed.pop() {
            if host.is_known(note) {
                if self.active.note.is_none() {
                    self.open(host, notices, note);
                } else {
                    self.new_tab(host, notices, Some(note));
                }
                return;
            }
        }
        notices.toasts.show_message("No tab was closed.");
    }

    /// Loads the notes of visible panes, and makes sure that the active pane is visible.
    pub(crate) fn save_panes(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        let seen = self.layout.in_sight();
        if !seen.contains(&self.active.id)
            && let Some(front) = self.layout.in_front_of(self.active.id)
        {
            self.go_to_pane(host, notices, front);
        }
        let session = host.session();
        let settled = session.is_open() && session.volumes().all(|volume| volume.known && volume.scans > 0);
        let mut gone = Vec::new();
        let mut unread = Vec::new();
        for pane in self.layout.others.values() {
            let Some(note) = pane.note else { continue };
            if session.locate_file(note).is_none() && session.note(note).is_none() {
                if settled {
                    gone.push(pane.id);
                }
            } else if session.note(note).is_none() && seen.contains(&pane.id) && !host.is_attachment(note) {
                unread.push((pane.id, note));
            }
        }
        let read = !unread.is_empty();
        for (pane, note) in unread {
            if !host.send(Command::OpenNote { note }, notices) {
                gone.push(pane);
            }
        }
        for pane in gone {
            if let Some(pane) = self.layout.others.get_mut(&pane) {
                pane.show_note(None);
            }
        }
        // The last opened note must be the active one.
        if let Some(note) = self.active.note.filter(|note| read && host.is_known(*note) && !host.is_attachment(*note)) {
            host.send(Command::OpenNote { note }, notices);
        }
    }
}

impl HostLink {
    fn is_known(&self, note: DocId) -> bool {
        self.session().locate_file(note).is_some()
    }
}
