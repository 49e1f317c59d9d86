//! Panes in splits and tabs (crate `egui_tiles`): the list of panes, the active one, and how they are saved.
//!
//! `tabs.rs` draws them.

use super::pane::EditorPane;
use eframe::egui;
use egui_tiles::{Container, Linear, LinearDir, Tile, TileId, Tiles, Tree};
use engine::TabArrangement;
use notebook::actions::PaneId;
use std::collections::HashMap;
use store::DocId;

/// Maximum number of closed tabs that can be reopened.
pub(crate) const MAX_REOPENABLE_TABS: usize = 20;

/// The arrangement of all panes, and the panes other than the active one.
pub(crate) struct PaneLayout {
    pub(crate) tree: Tree<PaneId>,
    pub(crate) others: HashMap<PaneId, EditorPane>,
    next: PaneId,
    pub(crate) closed: Vec<DocId>,
}

impl PaneLayout {
    /// Restores saved panes. Returns the active pane and the layout with the others.
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

    pub(crate) fn tile(&self, pane: PaneId) -> Option<TileId> {
        self.tree.tiles.iter().find(|(_, tile)| matches!(tile, Tile::Pane(id) if *id == pane)).map(|(id, _)| *id)
    }

    /// Returns the tab group that contains a pane.
    pub(crate) fn group(&self, pane: PaneId) -> Option<TileId> {
        self.tree.tiles.parent_of(self.tile(pane)?)
    }

    /// Returns all panes in reading order.
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

    /// Returns the visible panes.
    pub(crate) fn in_sight(&self) -> Vec<PaneId> {
        let seen = self.tree.active_tiles().into_iter();
        seen.filter_map(|tile| self.tree.tiles.get_pane(&tile).copied()).collect()
    }

    /// Returns the visible pane of the tab group that contains a pane.
    pub(crate) fn in_front_of(&self, pane: PaneId) -> Option<PaneId> {
        let Some(Container::Tabs(tabs)) = self.tree.tiles.get_container(self.group(pane)?) else { return None };
        self.tree.tiles.get_pane(&tabs.active?).copied()
    }

    pub(crate) fn reveal(&mut self, pane: PaneId) {
        self.tree.make_active(|_, tile| matches!(tile, Tile::Pane(id) if *id == pane));
    }

    /// Returns an inactive pane that shows a note.
    pub(crate) fn pane_with_note(&self, note: DocId) -> Option<PaneId> {
        self.others.values().find(|pane| pane.note == Some(note)).map(|pane| pane.id)
    }

    /// Returns a pane in the same tab group that shows a note.
    pub(crate) fn background_tab(&self, pane: PaneId, note: DocId) -> Option<PaneId> {
        let tabs = self.tree.tiles.get_container(self.group(pane)?)?;
        let panes = tabs.children().filter_map(|tile| self.tree.tiles.get_pane(tile));
        panes.copied().find(|pane| self.others.get(pane).is_some_and(|pane| pane.note == Some(note)))
    }

    pub(crate) fn fresh(&mut self, note: Option<DocId>) -> EditorPane {
        let id = self.next;
        self.next += 1;
        EditorPane::new(id, note)
    }

    /// Adds a tab to the right of a pane's tab.
    pub(crate) fn add_background_tab(&mut self, pane: PaneId, new: PaneId) {
        let tile = self.tree.tiles.insert_pane(new);
        let (Some(group), Some(own)) = (self.group(pane), self.tile(pane)) else { return };
        if let Some(Tile::Container(Container::Tabs(tabs))) = self.tree.tiles.get_mut(group) {
            let place = tabs.children.iter().position(|child| *child == own).map_or(tabs.children.len(), |at| at + 1);
            tabs.children.insert(place, tile);
        }
    }

    /// Adds a pane next to or below the tab group of another one.
    pub(crate) fn add_beside(&mut self, pane: PaneId, new: PaneId, dir: LinearDir) {
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

    /// Returns the arrangement to save, with the active pane and its note.
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

/// Builds tiles from a saved arrangement, and adds the panes to `made` in reading order.
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
