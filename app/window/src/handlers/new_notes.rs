//! Creates notes without a dialog: untitled ones, and those that a link names.

use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::title_field::TitleField;
use anyhow::anyhow;
use engine::Command;
use engine::commands::CommandId;
use store::{DocId, FileKind};
use text::links;
use text::outline::LinkKind;
use ui::text::shown_name;

/// Maximum length of the file extension of an attachment, in characters.
const MAX_ENDING_CHARS: usize = 5;

impl PaneState {
    /// Creates a note next to the open one, and places the caret in its title.
    pub(crate) fn new_untitled(&mut self, host: &mut HostLink, overlay: &mut WindowOverlay, notices: &mut NoticeState) {
        self.keep_typed_title(host, notices);
        let Some((volume, folder)) = self.current_folder(host) else {
            overlay.ask_folder(host);
            notices.toasts.show_message("Open a folder first. A note is a file in a folder.");
            return;
        };
        let names = (1..).map(|number| if number == 1 { "Untitled".to_owned() } else { format!("Untitled {number}") });
        let is_free = |name: &String| host.file_at(volume, &format!("{folder}{name}.md")).is_none();
        let Some(name) = names.into_iter().find(is_free) else { return };
        match self.make_note(host, notices, volume, &format!("{folder}{name}.md")) {
            Err(why) => notices.toasts.show_message(why.to_string()),
            Ok(()) => {
                self.active.editor.end_editing();
                self.active.title_field = self.active.note.map(|note| TitleField::new(note, name));
            }
        }
    }

    /// Returns the folder of the open note, or of the first volume: empty, or with a trailing `/`.
    fn current_folder(&self, host: &HostLink) -> Option<(DocId, String)> {
        let session = host.session();
        let has_folder = |volume: &DocId| session.volume(*volume).is_some_and(|volume| volume.root.is_some());
        let own = self.active.note.and_then(|note| session.locate_file(note)).filter(|(volume, _)| has_folder(volume));
        let own = own.map(|(volume, path)| (volume, folder_of(path).to_owned()));
        own.or_else(|| session.volumes().find(|volume| volume.root.is_some()).map(|volume| (volume.id, String::new())))
    }

    /// Renames a new note to its typed title. `writes`: the caret moves to its text.
    pub(crate) fn name_note(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        note: DocId,
        name: &str,
        writes: bool,
    ) {
        let Some(path) = host.session().locate_file(note).map(|(_, path)| path.to_owned()) else { return };
        let old = shown_name(path.rsplit('/').next().unwrap_or(&path));
        if !name.is_empty() && name != old {
            let moves = vec![(note, format!("{}{name}", folder_of(&path)))];
            if let Err(why) = host.command(Command::MoveFiles { moves }) {
                match self.active.title_field.as_mut().filter(|field| field.note == note) {
                    Some(field) => (field.trouble, field.asks_focus) = (Some(why.to_string()), writes),
                    None => notices.toasts.show_message(why.to_string()),
                }
                return;
            }
        }
        if self.active.note == Some(note) {
            self.active.title_field = None;
            if writes {
                self.active.editor.place_caret(0);
            }
        }
    }

    /// Applies a title that is still being typed when the pane switches to another note.
    fn keep_typed_title(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        if let Some(TitleField { note, text, .. }) = self.active.title_field.take() {
            self.name_note(host, notices, note, text.trim(), false);
        }
    }

    /// Creates the note that a link of the open note names, and shows it.
    pub(crate) fn create_linked_note(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        target: &str,
    ) {
        let name = text::outline::percent_decode(target).into_owned();
        let session = host.session();
        let Some((from, (volume, own))) = self.active.note.and_then(|note| Some((note, session.locate_file(note)?)))
        else {
            return;
        };
        if names_attachment(&name) {
            notices.toasts.show_message(format!("There's no file {name}."));
            return;
        }
        let is_wiki = session.volume(volume).and_then(|volume| volume.links.outline(from)).is_some_and(|outline| {
            let named = |link: &&text::outline::NoteLink| link.target == target || link.path() == name;
            outline.links.iter().find(named).is_none_or(|link| matches!(link.kind, LinkKind::Wiki | LinkKind::Embed))
        });
        let name = links::without_md_extension(&name);
        let in_volume = |path: &str| {
            let known = session.volume(volume).map(|volume| volume.links.without_volume_name(path));
            known.unwrap_or(path).to_owned()
        };
        let path = match name.strip_prefix('/') {
            Some(rooted) => Some(in_volume(rooted)),
            None if name.starts_with('.') => links::resolve_relative(own, name),
            // Obsidian resolves a path in double brackets from the vault's root.
            None if is_wiki && name.contains('/') => Some(in_volume(name)),
            None => Some(format!("{}{name}", folder_of(own))),
        };
        let made = match path {
            Some(path) => self.make_note(host, notices, volume, &path),
            None => Err(anyhow!("The link leads out of the volume.")),
        };
        if made.is_err() {
            // The user may choose another name.
            overlay.ask_name(host, self, notices, name.to_owned(), Some(volume));
            return;
        }
        self.linked_note = self.active.note.map(|note| (note, from));
        let shown = name.rsplit('/').next().unwrap_or(name);
        notices.toasts.show_with_action(format!("Created “{shown}”."), "Undo", CommandId::NoteUndoNew);
    }

    /// Moves the note that a link created to the trash, and goes back to the note with the link.
    pub(crate) fn undo_linked_note(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        let Some((note, from)) = self.linked_note else {
            notices.toasts.show_message("No link has made a note.");
            return;
        };
        if host.send(Command::DeleteFiles { files: vec![note] }, notices) {
            self.linked_note = None;
            self.leave_note(host, notices, note);
            self.open(host, notices, from);
        }
    }
}

/// Returns the folder of a path in a volume: empty, or with a trailing `/`.
fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

/// Returns whether a link's target has a file extension that a note can't have.
fn names_attachment(target: &str) -> bool {
    let Some((_, ending)) = target.rsplit_once('.') else { return false };
    let is_ending = ending.len() <= MAX_ENDING_CHARS
        && ending.chars().all(|letter| letter.is_ascii_alphanumeric())
        && ending.chars().any(|letter| letter.is_ascii_alphabetic());
    is_ending && !FileKind::from_path(target).is_text()
}

#[cfg(test)]
mod tests {
    use super::names_attachment;

    #[test]
    fn names_with_dots_are_notes_unless_they_end_like_files() {
        for note in ["Missing note", "Version 2.0", "Mr. Smith", "a.md", "e.g. this", "x.base"] {
            assert!(!names_attachment(note), "{note}");
        }
        for file in ["data.csv", "Folder/picture.png", "song.mp3"] {
            assert!(names_attachment(file), "{file}");
        }
    }
}
