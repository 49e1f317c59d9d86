//! Panes beside and behind one another (crate `egui_tiles`): which there are, which has the caret, and how they are
//! kept over a restart. How they are drawn is in `tabs.rs`.

use super::pane::{EditorPane, PaneId};
use crate::AppWindow;
use eframe::egui;
use egui_tiles::{Container, Linear, LinearDir, Tile, TileId, Tiles, Tree};
use engine::{Command, TabArrangement};
use std::collections::HashMap;
use store::DocId;

/// Closed tabs that can be had back.
const MAX_REOPENABLE_TABS: usize = 20;

/// All panes but the one with the caret, and where each stands.
pub(crate) struct PaneLayout {
    pub(crate) tree: Tree<PaneId>,
    pub(crate) others: HashMap<PaneId, EditorPane>,
    next: PaneId,
    closed: Vec<DocId>,
}

impl PaneLayout {
    /// Panes as they were kept: the one with the caret, and the rest.
    pub(crate) fn restore_panes(kept: Option<&TabArrangement>, here: usize) -> (EditorPane, PaneLayout) {
        let mut made = Vec::new();
        let mut tiles = Tiles::default();
        let root = kept.and_then(|kept| build(kept, &mut tiles, &mut made));
        let root = root.unwrap_or_else(|| {
            made.push(EditorPane::new(0, None));
            let pane = tiles.insert_pane(0);
            tiles.insert_tab_tile(vec![pane])
        });
        let here = made.remove(here.min(made.len() - 1));
        let next = made.len() as PaneId + 1;
        let others = made.into_iter().map(|pane| (pane.id, pane)).collect();
        let tree = Tree::new(egui::Id::unique("panes"), root, tiles);
        (here, PaneLayout { tree, others, next, closed: Vec::new() })
    }

    fn tile(&self, pane: PaneId) -> Option<TileId> {
        self.tree.tiles.iter().find(|(_, tile)| matches!(tile, Tile::Pane(id) if *id == pane)).map(|(id, _)| *id)
    }

    /// The tabs that hold a pane.
    fn group(&self, pane: PaneId) -> Option<TileId> {
        self.tree.tiles.parent_of(self.tile(pane)?)
    }

    /// All panes in the order in which one reads.
    pub(crate) fn reading_order(&self) -> Vec<PaneId> {
        fn walk(tiles: &Tiles<PaneId>, tile: TileId, order: &mut Vec<PaneId>) {
            match tiles.get(tile) {
                Some(Tile::Pane(pane)) => order.push(*pane),
                Some(Tile::Container(container)) => {
                    container.children().for_each(|child| walk(tiles, *child, order));
                }
                None => {}
            }
        }
        let mut order = Vec::new();
        if let Some(root) = self.tree.root {
            walk(&self.tree.tiles, root, &mut order);
        }
        order
    }

    /// The panes that are in front.
    pub(crate) fn in_sight(&self) -> Vec<PaneId> {
        let seen = self.tree.active_tiles().into_iter();
        seen.filter_map(|tile| self.tree.tiles.get_pane(&tile).copied()).collect()
    }

    /// The pane in front, of the tabs that hold this one.
    pub(crate) fn in_front_of(&self, pane: PaneId) -> Option<PaneId> {
        let Some(Container::Tabs(tabs)) = self.tree.tiles.get_container(self.group(pane)?) else { return None };
        self.tree.tiles.get_pane(&tabs.active?).copied()
    }

    fn reveal(&mut self, pane: PaneId) {
        self.tree.make_active(|_, tile| matches!(tile, Tile::Pane(id) if *id == pane));
    }

    /// Another pane in which a note is open.
    pub(crate) fn pane_with_note(&self, note: DocId) -> Option<PaneId> {
        self.others.values().find(|pane| pane.note == Some(note)).map(|pane| pane.id)
    }

    /// A pane of the same tabs in which a note is open.
    fn background_tab(&self, pane: PaneId, note: DocId) -> Option<PaneId> {
        let tabs = self.tree.tiles.get_container(self.group(pane)?)?;
        let panes = tabs.children().filter_map(|tile| self.tree.tiles.get_pane(tile));
        panes.copied().find(|pane| self.others.get(pane).is_some_and(|pane| pane.note == Some(note)))
    }

    fn fresh(&mut self, note: Option<DocId>) -> EditorPane {
        let id = self.next;
        self.next += 1;
        EditorPane::new(id, note)
    }

    /// A new tab right of the one that holds this pane.
    fn add_background_tab(&mut self, pane: PaneId, new: PaneId) {
        let tile = self.tree.tiles.insert_pane(new);
        let (Some(group), Some(own)) = (self.group(pane), self.tile(pane)) else { return };
        if let Some(Tile::Container(Container::Tabs(tabs))) = self.tree.tiles.get_mut(group) {
            let place = tabs.children.iter().position(|child| *child == own).map_or(tabs.children.len(), |at| at + 1);
            tabs.children.insert(place, tile);
        }
    }

    /// A new pane beside or below the tabs that hold this one.
    fn add_beside(&mut self, pane: PaneId, new: PaneId, dir: LinearDir) {
        let Some(group) = self.group(pane) else { return };
        let tiles = &mut self.tree.tiles;
        let tile = tiles.insert_pane(new);
        let tabs = tiles.insert_tab_tile(vec![tile]);
        let parent = tiles.parent_of(group);
        if let Some(Tile::Container(Container::Linear(linear))) = parent.and_then(|parent| tiles.get_mut(parent))
            && linear.dir == dir
            && let Some(at) = linear.children.iter().position(|child| *child == group)
        {
            let half = linear.shares[group] / 2.0;
            linear.shares.set_share(group, half);
            linear.shares.set_share(tabs, half);
            linear.children.insert(at + 1, tabs);
            return;
        }
        let split = tiles.insert_container(Linear::new(dir, vec![group, tabs]));
        match parent.and_then(|parent| tiles.get_mut(parent)) {
            Some(Tile::Container(parent)) => _ = parent.replace_child(group, split),
            Some(Tile::Pane(_)) | None => self.tree.root = Some(split),
        }
    }

    /// What is kept of the panes, and which one has the caret, with which note.
    pub(crate) fn saved_arrangement(&self, here: PaneId, note: Option<DocId>) -> (Option<TabArrangement>, usize) {
        let arrangement = self.tree.root.and_then(|root| self.arrangement(root, here, note));
        let place = self.reading_order().iter().position(|pane| *pane == here).unwrap_or(0);
        (arrangement.filter(TabArrangement::has_several_tabs), place)
    }

    fn arrangement(&self, tile: TileId, here: PaneId, own: Option<DocId>) -> Option<TabArrangement> {
        let tiles = &self.tree.tiles;
        let note = |pane: &PaneId| if *pane == here { own } else { self.others.get(pane).and_then(|pane| pane.note) };
        Some(match tiles.get(tile)? {
            Tile::Pane(pane) => TabArrangement::Tabs { notes: vec![note(pane)], shown: 0 },
            Tile::Container(Container::Linear(linear)) => {
                let parts = linear.children.iter();
                let parts =
                    parts.filter_map(|child| Some((linear.shares[*child], self.arrangement(*child, here, own)?)));
                let parts = parts.collect();
                match linear.dir {
                    LinearDir::Horizontal => TabArrangement::Row(parts),
                    LinearDir::Vertical => TabArrangement::Column(parts),
                }
            }
            Tile::Container(other) => {
                let children: Vec<TileId> = other.children().copied().collect();
                let active = if let Container::Tabs(tabs) = other { tabs.active } else { None };
                let shown = children.iter().position(|child| Some(*child) == active).unwrap_or(0);
                let notes = children.iter().filter_map(|child| tiles.get_pane(child)).map(note).collect();
                TabArrangement::Tabs { notes, shown }
            }
        })
    }
}

/// Makes tiles of what was kept; the panes in reading order.
fn build(kept: &TabArrangement, tiles: &mut Tiles<PaneId>, made: &mut Vec<EditorPane>) -> Option<TileId> {
    let (parts, dir) = match kept {
        TabArrangement::Tabs { notes, shown } => {
            let mut children = Vec::new();
            for note in notes {
                let id = made.len() as PaneId;
                made.push(EditorPane::new(id, *note));
                children.push(tiles.insert_pane(id));
            }
            let active = children.get(*shown).or(children.first()).copied()?;
            let mut tabs = egui_tiles::Tabs::new(children);
            tabs.set_active(active);
            return Some(tiles.insert_container(tabs));
        }
        TabArrangement::Row(parts) => (parts, LinearDir::Horizontal),
        TabArrangement::Column(parts) => (parts, LinearDir::Vertical),
    };
    let mut linear = Linear::new(dir, Vec::new());
    for (share, part) in parts {
        if let Some(child) = build(part, tiles, made) {
            linear.children.push(child);
            linear.shares.set_share(child, if share.is_finite() { share.clamp(0.01, 100.0) } else { 1.0 });
        }
    }
    (!linear.children.is_empty()).then(|| tiles.insert_container(linear))
}

impl AppWindow {
    /// The caret goes to another pane.
    pub(crate) fn go_to_pane(&mut self, id: PaneId) {
        self.panes.reveal(id);
        let Some(pane) = self.panes.others.remove(&id) else { return };
        let old = std::mem::replace(&mut self.active_pane, pane);
        self.panes.others.insert(old.id, old);
        self.has_chosen_note = true;
        self.active_pane.editor.focus = self.active_pane.editor.caret.is_some();
        // The note may have been let go, and it is now the one that was open last.
        if let Some(note) = self.active_pane.note
            && self.is_known(note)
        {
            self.send(Command::OpenNote { note });
        }
    }

    fn is_known(&self, note: DocId) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.session().locate_file(note).is_some())
    }

    /// The next tab, or the one before.
    pub(crate) fn turn_tabs(&mut self, back: bool) {
        let order = self.panes.reading_order();
        let Some(place) = order.iter().position(|pane| *pane == self.active_pane.id) else { return };
        let by = if back { order.len() - 1 } else { 1 };
        if let Some(pane) = order.get((place + by) % order.len()) {
            self.go_to_pane(*pane);
        }
    }

    /// A new tab, with a note or without one.
    pub(crate) fn new_tab(&mut self, note: Option<DocId>) {
        let pane = self.panes.fresh(None);
        let id = pane.id;
        self.panes.add_background_tab(self.active_pane.id, id);
        self.panes.others.insert(id, pane);
        self.go_to_pane(id);
        if let Some(note) = note {
            self.open(note);
        }
    }

    /// The same note once more, beside this pane or below it.
    pub(crate) fn split(&mut self, dir: LinearDir) {
        let mut pane = self.panes.fresh(None);
        let id = pane.id;
        pane.show_note(self.active_pane.note);
        self.panes.add_beside(self.active_pane.id, id, dir);
        self.panes.others.insert(id, pane);
        self.go_to_pane(id);
    }

    /// Shows the pane of the same tabs in which a note is open already.
    pub(crate) fn go_to_note(&mut self, note: DocId) -> bool {
        let pane = self.panes.background_tab(self.active_pane.id, note);
        if let Some(pane) = pane {
            self.go_to_pane(pane);
        }
        pane.is_some()
    }

    /// Closes a tab; the last one only loses its note.
    pub(crate) fn close_tab(&mut self, id: PaneId) {
        if id == self.active_pane.id {
            let order = self.panes.reading_order();
            let place = order.iter().position(|pane| *pane == id).unwrap_or(0);
            let group = self.panes.group(id);
            let near = |pane: &&PaneId| self.panes.group(**pane) == group;
            let next = order.get(place + 1).filter(near).or_else(|| {
                let before = place.checked_sub(1).and_then(|place| order.get(place));
                before.filter(near).or(order.get(place + 1)).or(before)
            });
            match next.copied() {
                Some(next) => self.go_to_pane(next),
                None => {
                    let note = self.active_pane.note;
                    self.active_pane.show_note(None);
                    self.was_closed(note);
                    return;
                }
            }
        }
        let Some(pane) = self.panes.others.remove(&id) else { return };
        if let Some(tile) = self.panes.tile(id) {
            self.panes.tree.remove_recursively(tile);
        }
        self.was_closed(pane.note);
    }

    /// A tab with this note was closed.
    fn was_closed(&mut self, note: Option<DocId>) {
        let Some(note) = note else { return };
        self.panes.closed.push(note);
        if self.panes.closed.len() > MAX_REOPENABLE_TABS {
            self.panes.closed.remove(0);
        }
        if self.active_pane.note == Some(note) || self.panes.pane_with_note(note).is_some() {
            return;
        }
        self.background_notes.retain(|kept| *kept != note);
        let is_open = self.driver.as_ref().is_some_and(|driver| driver.session().note(note).is_some());
        if is_open {
            self.send(Command::CloseNote { note });
        }
    }

    /// Lets go of the rows that the pointer holds. Whether there were some.
    pub(crate) fn release_dragged_rows(&mut self) -> bool {
        let panes = std::iter::once(&mut self.active_pane).chain(self.panes.others.values_mut());
        // Each of them, also behind one that held some.
        panes.map(|pane| pane.page.release_rows()).filter(|held| *held).count() > 0
    }

    /// Closes all tabs but the one with the caret.
    pub(crate) fn close_other_tabs(&mut self) {
        for pane in
            self.panes.reading_order().into_iter().filter(|pane| *pane != self.active_pane.id).collect::<Vec<_>>()
        {
            self.close_tab(pane);
        }
    }

    /// Opens the tab again that was closed last.
    pub(crate) fn reopen_tab(&mut self) {
        while let Some(note) = self.panes.closed.pop() {
            if self.is_known(note) {
                if self.active_pane.note.is_none() {
                    self.open(note);
                } else {
                    self.new_tab(Some(note));
                }
                return;
            }
        }
        self.toasts.show_message("No tab was closed.");
    }

    /// Sees to it that the notes in sight are read, and that the pane with the caret is one of them.
    pub(crate) fn save_panes(&mut self) {
        let seen = self.panes.in_sight();
        if !seen.contains(&self.active_pane.id)
            && let Some(front) = self.panes.in_front_of(self.active_pane.id)
        {
            self.go_to_pane(front);
        }
        let Some(session) = self.driver.as_ref().map(host::Driver::session) else { return };
        let settled = session.is_open() && session.volumes().all(|volume| volume.known && volume.scans > 0);
        let mut gone = Vec::new();
        let mut unread = Vec::new();
        for pane in self.panes.others.values() {
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
            if let Some(pane) = self.panes.others.get_mut(&pane) {
                pane.show_note(None);
            }
        }
        // What was opened last is the note with the caret.
        if let Some(note) = self.active_pane.note.filter(|note| read && self.is_known(*note)) {
            self.send(Command::OpenNote { note });
        }
    }
}
