//! Edits collections, takes edits back, and makes new collections.

use crate::actions::CollectionEdit;
use crate::app_window::AppWindow;
use crate::notebook::collection::{CollectionPage, MAX_COLLECTION_UNDO_STEPS, query_worker};
use collection::{CollectionChange, apply_change};
use eframe::egui;
use engine::{Command, Note};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use store::DocId;

impl AppWindow {
    /// Whether the pane with the caret shows a collection, and not its text.
    pub(crate) fn shows_collection(&self) -> bool {
        let place = self.panes.active.note.and_then(|note| self.host.session().locate_file(note));
        place.is_some_and(|(_, path)| collection::is_collection(path)) && !self.panes.active.collection.as_text
    }

    /// Whether a collection has the keyboard focus or would get it, so that undo applies to it.
    pub(crate) fn in_collection(&self) -> bool {
        self.shows_collection() || self.panes.active.page.insets.focused()
    }

    /// The collection that a command means: the page's, or of those in a note the one with the keyboard, the one at the
    /// caret, or the first in sight.
    fn meant(&mut self) -> Option<&mut CollectionPage> {
        if self.shows_collection() {
            Some(&mut self.panes.active.collection)
        } else {
            self.panes.active.page.insets.command_target()
        }
    }

    /// Whether there is a collection that a command could mean.
    pub(crate) fn has_collection(&mut self) -> bool {
        self.panes.view.is_none() && self.meant().is_some()
    }

    /// Shows another view of the collection.
    pub(crate) fn turn_view(&mut self, back: bool) {
        let free = self.panes.view.is_none();
        match self.meant().filter(|_| free).map(|collection| collection.turn_view(back)) {
            None => self.notices.toasts.show_message("No collection is shown here."),
            Some(None) => self.notices.toasts.show_message("This collection cannot be read."),
            Some(Some(0 | 1)) => self.notices.toasts.show_message("This collection has one view."),
            Some(Some(_)) => {}
        }
    }

    /// Returns the number of rows of the visible collection, once its table is ready.
    pub fn rows(&self) -> Option<usize> {
        self.shows_collection()
            .then(|| self.panes.active.collection.lined.as_ref().map(|table| table.rows.len()))
            .flatten()
    }

    /// Performs an edit in a collection.
    pub(crate) fn apply_collection_edit(&mut self, ctx: &egui::Context, collection: DocId, deed: CollectionEdit) {
        match deed {
            CollectionEdit::Change { note, edits } => {
                if self.send(Command::EditAll { note, edits }) {
                    self.did(collection, note);
                }
            }
            CollectionEdit::Set { file, key, value } => {
                let held = self.panes.collection_undo.held.contains(&file);
                if !held && !self.send(Command::HoldNote { note: file }) {
                    return;
                }
                if !held {
                    self.panes.collection_undo.held.push(file);
                }
                if self.send(Command::SetProperty { note: file, key: key.clone(), value: value.clone() }) {
                    self.did(collection, file);
                    let session = self.host.session();
                    let volume = session.locate_file(file).and_then(|(volume, _)| session.volume(volume));
                    if let Some(volume) = volume {
                        query_worker::apply_optimistically(ctx, volume, file, &key, value.as_ref());
                    }
                }
            }
            CollectionEdit::New { volume, folder, properties } => self.new_in_collection(volume, folder, &properties),
            CollectionEdit::Text => self.panes.active.collection.as_text = !self.panes.active.collection.as_text,
        }
    }

    fn did(&mut self, collection: DocId, note: DocId) {
        self.panes.collection_undo.undone.clear();
        self.panes.collection_undo.done.push((collection, note));
        if self.panes.collection_undo.done.len() > MAX_COLLECTION_UNDO_STEPS {
            self.panes.collection_undo.done.remove(0);
        }
        let needed: HashSet<DocId> = self.panes.collection_undo.done.iter().map(|(_, note)| *note).collect();
        let (keep, free) = self.panes.collection_undo.held.iter().copied().partition(|note| needed.contains(note));
        self.panes.collection_undo.held = keep;
        free.into_iter().for_each(|note: DocId| _ = self.send(Command::ReleaseNote { note }));
    }

    /// Undoes or redoes the last edit in the visible collection.
    pub(crate) fn undo_collection_edit(&mut self, ctx: &egui::Context, redo: bool) {
        let (from, to) = match redo {
            false => (&mut self.panes.collection_undo.done, &mut self.panes.collection_undo.undone),
            true => (&mut self.panes.collection_undo.undone, &mut self.panes.collection_undo.done),
        };
        let Some(place) = from.iter().rposition(|(collection, _)| Some(*collection) == self.panes.active.note) else {
            self.notices.toasts.show_message(if redo { "Nothing to redo." } else { "Nothing to undo." });
            return;
        };
        let (collection, note) = from.remove(place);
        to.push((collection, note));
        if !self.send(if redo { Command::Redo { note } } else { Command::Undo { note } }) || note == collection {
            return;
        }
        // The table shows at once what the note says now.
        let session = self.host.session();
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
    pub(crate) fn new_collection(&mut self) {
        let session = self.host.session();
        let own = self.panes.active.note.and_then(|note| session.locate_file(note));
        let (volume, folder) = match own {
            Some((volume, path)) => (Some(volume), path.rsplit_once('/').map_or("", |(folder, _)| folder)),
            None => (session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id), ""),
        };
        let Some(volume) = volume.and_then(|volume| session.volume(volume)) else {
            self.notices.toasts.show_message("Open a folder first. A collection is a file in a folder.");
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
        if self.send(Command::NewNote { volume, path: path.clone(), text }) {
            let file = self.host.file_at(volume, &path);
            if let Some(file) = file {
                self.new_tab(Some(file));
                self.ask_rename(file);
            }
        }
    }

    /// Makes a note that a view of a collection shows.
    fn new_in_collection(&mut self, volume: DocId, folder: Option<String>, properties: &Map<String, Value>) {
        let found = self.host.session().volume(volume).and_then(|volume| {
            let folder = folder.filter(|folder| !folder.is_empty()).map_or_else(String::new, |folder| folder + "/");
            let free = |name: &String| !volume.files.contains_key(&format!("{folder}{name}.md"));
            let mut names =
                std::iter::once("Untitled".to_owned()).chain((2..).map(|count| format!("Untitled {count}")));
            let name = names.find(free)?;
            Some((volume.id, format!("{folder}{name}.md"), text::properties::format_front_matter(properties)))
        });
        let Some((volume, path, text)) = found else { return };
        if self.send(Command::NewNote { volume, path: path.clone(), text }) {
            let note = self.host.file_at(volume, &path);
            if let Some(note) = note {
                self.new_tab(Some(note));
                self.ask_rename(note);
            }
        }
    }
}

impl AppWindow {
    /// Keeps the collections open that notes show.
    pub(crate) fn open_embedded_collections(&mut self) {
        let search = self.host.driver.search();
        for pane in self.panes.all_mut() {
            pane.page.insets.search.get_or_insert_with(|| search.clone());
        }
        let wanted: BTreeSet<DocId> = self.panes.all().flat_map(|pane| pane.page.insets.files()).collect();
        self.panes.embedded.0.retain(|(note, open)| {
            let keep = wanted.contains(note);
            if *open && !keep {
                let _ = self.host.driver.run_command(Command::ReleaseNote { note: *note }); // it may be closed by now
            }
            keep
        });
        for note in wanted {
            if !self.panes.embedded.0.iter().any(|(known, _)| *known == note) {
                self.panes.embedded.0.push((note, self.host.driver.run_command(Command::HoldNote { note }).is_ok()));
            }
        }
    }
}
