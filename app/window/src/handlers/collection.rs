//! Edits collections, undoes those edits, and creates collections.

use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use collection::{CollectionChange, apply_change};
use eframe::egui;
use engine::{Command, Note};
use notebook::actions::CollectionEdit;
use notebook::collection::{CollectionPage, MAX_COLLECTION_UNDO_STEPS, query_worker};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use store::DocId;

impl PaneState {
    /// Returns whether the active pane shows a collection rather than its text.
    pub(crate) fn shows_collection(&self, host: &HostLink) -> bool {
        let place = self.active.note.and_then(|note| host.session().locate_file(note));
        place.is_some_and(|(_, path)| collection::is_collection(path)) && !self.active.collection.as_text
    }

    /// Returns whether a collection has the keyboard focus or would get it, so that undo applies to it.
    pub(crate) fn in_collection(&self, host: &HostLink) -> bool {
        self.shows_collection(host) || self.active.page.insets.focused()
    }

    /// Returns the collection that a command applies to: the page itself, or one in the note.
    ///
    /// In a note, it's the collection with the keyboard focus, the one at the caret, or the first visible one.
    fn meant(&mut self, host: &HostLink) -> Option<&mut CollectionPage> {
        if self.shows_collection(host) {
            Some(&mut self.active.collection)
        } else {
            self.active.page.insets.command_target()
        }
    }

    /// Returns whether there's a collection that a command could apply to.
    pub(crate) fn has_collection(&mut self, host: &HostLink) -> bool {
        self.view.is_none() && self.meant(host).is_some()
    }

    /// Switches to the collection's next or previous view.
    pub(crate) fn turn_view(&mut self, host: &HostLink, notices: &mut NoticeState, back: bool) {
        let free = self.view.is_none();
        match self.meant(host).filter(|_| free).map(|collection| collection.turn_view(back)) {
            None => notices.toasts.show_message("No collection is shown here."),
            Some(None) => notices.toasts.show_message("Can't read this collection."),
            Some(Some(0 | 1)) => notices.toasts.show_message("This collection has one view."),
            Some(Some(_)) => {}
        }
    }

    /// Performs an edit in a collection.
    pub(crate) fn apply_collection_edit(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        collection: DocId,
        deed: CollectionEdit,
    ) {
        match deed {
            CollectionEdit::Change { note, edits } => {
                if host.send(Command::EditAll { note, edits }, notices) {
                    self.did(host, notices, collection, note);
                }
            }
            CollectionEdit::Set { file, key, value } => {
                let held = self.collection_undo.held.contains(&file);
                if !held && !host.send(Command::HoldNote { note: file }, notices) {
                    return;
                }
                if !held {
                    self.collection_undo.held.push(file);
                }
                if host.send(Command::SetProperty { note: file, key: key.clone(), value: value.clone() }, notices) {
                    self.did(host, notices, collection, file);
                    let session = host.session();
                    let volume = session.locate_file(file).and_then(|(volume, _)| session.volume(volume));
                    if let Some(volume) = volume {
                        query_worker::apply_optimistically(ctx, volume, file, &key, value.as_ref());
                    }
                }
            }
            CollectionEdit::New { volume, folder, properties } => {
                self.new_in_collection(host, overlay, notices, volume, folder, &properties)
            }
            CollectionEdit::Text => self.active.collection.as_text = !self.active.collection.as_text,
        }
    }

    fn did(&mut self, host: &mut HostLink, notices: &mut NoticeState, collection: DocId, note: DocId) {
        self.collection_undo.undone.clear();
        self.collection_undo.done.push((collection, note));
        if self.collection_undo.done.len() > MAX_COLLECTION_UNDO_STEPS {
            self.collection_undo.done.remove(0);
        }
        let needed: HashSet<DocId> = self.collection_undo.done.iter().map(|(_, note)| *note).collect();
        let (keep, free) = self.collection_undo.held.iter().copied().partition(|note| needed.contains(note));
        self.collection_undo.held = keep;
        free.into_iter().for_each(|note: DocId| _ = host.send(Command::ReleaseNote { note }, notices));
    }

    /// Undoes or redoes the last edit in the visible collection.
    pub(crate) fn undo_collection_edit(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        redo: bool,
    ) {
        let (from, to) = match redo {
            false => (&mut self.collection_undo.done, &mut self.collection_undo.undone),
            true => (&mut self.collection_undo.undone, &mut self.collection_undo.done),
        };
        let Some(place) = from.iter().rposition(|(collection, _)| Some(*collection) == self.active.note) else {
            notices.toasts.show_message(if redo { "Nothing to redo." } else { "Nothing to undo." });
            return;
        };
        let (collection, note) = from.remove(place);
        to.push((collection, note));
        if !host.send(if redo { Command::Redo { note } } else { Command::Undo { note } }, notices) || note == collection
        {
            return;
        }
        // Shows the note's new content in the table at once.
        let session = host.session();
        let volume = session.locate_file(note).and_then(|(volume, _)| session.volume(volume));
        if let (Some(volume), Some(text)) = (volume, session.note(note).map(Note::text)) {
            let now = text::outline::Outline::of(&text).properties;
            let was = volume.links.outline(note).map(|outline| outline.properties.clone()).unwrap_or_default();
            let keys: HashSet<&String> = now.keys().chain(was.keys()).collect();
            for key in keys {
                query_worker::apply_optimistically(ctx, volume, note, key, now.get(key));
            }
        }
    }

    /// Creates a collection next to the open note.
    pub(crate) fn new_collection(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
    ) {
        let session = host.session();
        let own = self.active.note.and_then(|note| session.locate_file(note));
        let (volume, folder) = match own {
            Some((volume, path)) => (Some(volume), path.rsplit_once('/').map_or("", |(folder, _)| folder)),
            None => (session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id), ""),
        };
        let Some(volume) = volume.and_then(|volume| session.volume(volume)) else {
            notices.toasts.show_message("Open a folder first. A collection is a file in a folder.");
            return;
        };
        let inside = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut names =
            std::iter::once("Untitled".to_owned()).chain((2..).map(|count: u32| format!("Untitled {count}")));
        let path = names.find_map(|name| {
            let path = format!("{inside}{name}.base");
            (!volume.files.contains_key(&path)).then_some(path)
        });
        let Some(path) = path else { return };
        let asked = match folder {
            "" => "file.ext == \"md\"".to_owned(),
            folder => format!("file.inFolder({})", serde_json::Value::from(folder)),
        };
        let made = apply_change("", &CollectionChange::AddCondition(None, asked)).and_then(|text| {
            apply_change(&text, &CollectionChange::Columns(0, vec!["file.name".to_owned(), "tags".to_owned()]))
        });
        let (volume, text) = (volume.id, made.unwrap_or_default());
        if host.send(Command::NewNote { volume, path: path.clone(), text }, notices) {
            let file = host.file_at(volume, &path);
            if let Some(file) = file {
                self.new_tab(host, notices, Some(file));
                overlay.ask_rename(host, file);
            }
        }
    }

    /// Creates a note that matches a view of a collection.
    fn new_in_collection(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        volume: DocId,
        folder: Option<String>,
        properties: &Map<String, Value>,
    ) {
        let found = host.session().volume(volume).and_then(|volume| {
            let folder = folder.filter(|folder| !folder.is_empty()).map_or_else(String::new, |folder| folder + "/");
            let free = |name: &String| !volume.files.contains_key(&format!("{folder}{name}.md"));
            let mut names =
                std::iter::once("Untitled".to_owned()).chain((2..).map(|count| format!("Untitled {count}")));
            let name = names.find(free)?;
            Some((volume.id, format!("{folder}{name}.md"), text::properties::format_front_matter(properties)))
        });
        let Some((volume, path, text)) = found else { return };
        if host.send(Command::NewNote { volume, path: path.clone(), text }, notices) {
            let note = host.file_at(volume, &path);
            if let Some(note) = note {
                self.new_tab(host, notices, Some(note));
                overlay.ask_rename(host, note);
            }
        }
    }
}

impl PaneState {
    /// Keeps the collections that are embedded in visible notes open.
    pub(crate) fn open_embedded_collections(&mut self, host: &mut HostLink) {
        let search = host.driver.search();
        for pane in self.all_mut() {
            pane.page.insets.search.get_or_insert_with(|| search.clone());
        }
        let wanted: BTreeSet<DocId> = self.all().flat_map(|pane| pane.page.insets.files()).collect();
        self.embedded.0.retain(|(note, open)| {
            let keep = wanted.contains(note);
            if *open && !keep {
                let _ = host.driver.run_command(Command::ReleaseNote { note: *note }); // it may be closed by now
            }
            keep
        });
        for note in wanted {
            if !self.embedded.0.iter().any(|(known, _)| *known == note) {
                self.embedded.0.push((note, host.driver.run_command(Command::HoldNote { note }).is_ok()));
            }
        }
    }
}
