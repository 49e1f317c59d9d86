//! Opens, splits, turns and closes tabs.

use crate::actions::PaneId;
use crate::app_window::AppWindow;
use crate::shell::panes::MAX_REOPENABLE_TABS;
use egui_tiles::LinearDir;
use engine::Command;
use store::DocId;

impl AppWindow {
    /// The caret goes to another pane.
    pub(crate) fn go_to_pane(&mut self, id: PaneId) {
        self.panes.layout.reveal(id);
        let Some(pane) = self.panes.layout.others.remove(&id) else { return };
        let old = std::mem::replace(&mut self.panes.active, pane);
        self.panes.layout.others.insert(old.id, old);
        self.panes.has_chosen_note = true;
        self.panes.active.editor.focus = self.panes.active.editor.caret.is_some();
        // The note may have been closed; now it's the last open one.
        if let Some(note) = self.panes.active.note
            && self.is_known(note)
        {
            self.send(Command::OpenNote { note });
        }
    }

    fn is_known(&self, note: DocId) -> bool {
        self.host.session().locate_file(note).is_some()
    }

    /// The next tab, or the one before.
    pub(crate) fn turn_tabs(&mut self, back: bool) {
        let order = self.panes.layout.reading_order();
        let Some(place) = order.iter().position(|pane| *pane == self.panes.active.id) else { return };
        let by = if back { order.len() - 1 } else { 1 };
        if let Some(pane) = order.get((place + by) % order.len()) {
            self.go_to_pane(*pane);
        }
    }

    /// A new tab, with a note or without one.
    pub(crate) fn new_tab(&mut self, note: Option<DocId>) {
        let pane = self.panes.layout.fresh(None);
        let id = pane.id;
        self.panes.layout.add_background_tab(self.panes.active.id, id);
        self.panes.layout.others.insert(id, pane);
        self.go_to_pane(id);
        if let Some(note) = note {
            self.open(note);
        }
    }

    /// Opens the same note in another pane, next to this one or below.
    pub(crate) fn split(&mut self, dir: LinearDir) {
        let mut pane = self.panes.layout.fresh(None);
        let id = pane.id;
        pane.show_note(self.panes.active.note);
        self.panes.layout.add_beside(self.panes.active.id, id, dir);
        self.panes.layout.others.insert(id, pane);
        self.go_to_pane(id);
    }

    /// Shows the pane of the same tabs in which a note is open already.
    pub(crate) fn go_to_note(&mut self, note: DocId) -> bool {
        let pane = self.panes.layout.background_tab(self.panes.active.id, note);
        if let Some(pane) = pane {
            self.go_to_pane(pane);
        }
        pane.is_some()
    }

    /// Closes a tab; the last one only loses its note.
    pub(crate) fn close_tab(&mut self, id: PaneId) {
        if id == self.panes.active.id {
            let order = self.panes.layout.reading_order();
            let place = order.iter().position(|pane| *pane == id).unwrap_or(0);
            let group = self.panes.layout.group(id);
            let near = |pane: &&PaneId| self.panes.layout.group(**pane) == group;
            let next = order.get(place + 1).filter(near).or_else(|| {
                let before = place.checked_sub(1).and_then(|place| order.get(place));
                before.filter(near).or(order.get(place + 1)).or(before)
            });
            match next.copied() {
                Some(next) => self.go_to_pane(next),
                None => {
                    let note = self.panes.active.note;
                    self.panes.active.show_note(None);
                    self.was_closed(note);
                    return;
                }
            }
        }
        let Some(pane) = self.panes.layout.others.remove(&id) else { return };
        if let Some(tile) = self.panes.layout.tile(id) {
            self.panes.layout.tree.remove_recursively(tile);
        }
        self.was_closed(pane.note);
    }

    /// A tab with this note was closed.
    fn was_closed(&mut self, note: Option<DocId>) {
        let Some(note) = note else { return };
        self.panes.layout.closed.push(note);
        if self.panes.layout.closed.len() > MAX_REOPENABLE_TABS {
            self.panes.layout.closed.remove(0);
        }
        if self.panes.active.note == Some(note) || self.panes.layout.pane_with_note(note).is_some() {
            return;
        }
        self.panes.background_notes.retain(|kept| *kept != note);
        let is_open = self.host.session().note(note).is_some();
        if is_open {
            self.send(Command::CloseNote { note });
        }
    }

    /// Lets go of the rows that the pointer holds. Whether there were some.
    pub(crate) fn release_dragged_rows(&mut self) -> bool {
        let panes = std::iter::once(&mut self.panes.active).chain(self.panes.layout.others.values_mut());
        // Each of them, also behind one that held some.
        panes.map(|pane| pane.page.release_rows()).filter(|held| *held).count() > 0
    }

    /// Closes all tabs but the one with the caret.
    pub(crate) fn close_other_tabs(&mut self) {
        for pane in self
            .panes
            .layout
            .reading_order()
            .into_iter()
            .filter(|pane| *pane != self.panes.active.id)
            .collect::<Vec<_>>()
        {
            self.close_tab(pane);
        }
    }

    /// Opens the tab again that was closed last.
    pub(crate) fn reopen_tab(&mut self) {
        while let Some(note) = self.panes.layout.closed.pop() {
            if self.is_known(note) {
                if self.panes.active.note.is_none() {
                    self.open(note);
                } else {
                    self.new_tab(Some(note));
                }
                return;
            }
        }
        self.notices.toasts.show_message("No tab was closed.");
    }

    /// Sees to it that the notes in sight are read, and that the pane with the caret is one of them.
    pub(crate) fn save_panes(&mut self) {
        let seen = self.panes.layout.in_sight();
        if !seen.contains(&self.panes.active.id)
            && let Some(front) = self.panes.layout.in_front_of(self.panes.active.id)
        {
            self.go_to_pane(front);
        }
        let session = self.host.session();
        let settled = session.is_open() && session.volumes().all(|volume| volume.known && volume.scans > 0);
        let mut gone = Vec::new();
        let mut unread = Vec::new();
        for pane in self.panes.layout.others.values() {
            let Some(note) = pane.note else { continue };
            if session.locate_file(note).is_none() && session.note(note).is_none() {
                if settled {
                    gone.push(pane.id);
                }
            } else if session.note(note).is_none() && seen.contains(&pane.id) {
                unread.push((pane.id, note));
            }
        }
        let read = !unread.is_empty();
        for (pane, note) in unread {
            if !self.send(Command::OpenNote { note }) {
                gone.push(pane);
            }
        }
        for pane in gone {
            if let Some(pane) = self.panes.layout.others.get_mut(&pane) {
                pane.show_note(None);
            }
        }
        // What was opened last is the note with the caret.
        if let Some(note) = self.panes.active.note.filter(|note| read && self.is_known(*note)) {
            self.send(Command::OpenNote { note });
        }
    }
}
