//! Note management: daily notes, templates, copies, stars, and the tree's menus. If another note's text is needed, the
//! session loads it, and the action continues then.

use crate::overlays::command_palette::CommandPalette;
use crate::overlays::dialogs::Dialog;
use crate::overlays::settings::SettingsSection;
use crate::overlays::window_overlay::WindowOverlay;
use crate::panels::tree;
use crate::shell::commands::NoteCommand;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::pending_note_action::{FollowUpAction, PendingNoteAction};
use crate::shell::window_state::WindowState;
use anyhow::anyhow;
use editor::note_editor::NoteEdit;
use eframe::egui;
use engine::{Command, NotePhase, Session};
use jiff::Zoned;
use notebook::actions::TreeAction;
use store::{DocId, FileKind};
use ui::text::shown_name;
use ui::time::write_date;

/// Today's note: where it is or belongs, and its template.
struct DailyNote {
    volume: DocId,
    path: String,
    /// The name by the date format of the settings.
    name: String,
    /// The note, if it exists.
    there: Option<DocId>,
    template: Option<DocId>,
}

impl WindowOverlay {
    /// Lists the themes of the user's own.
    pub(crate) fn choose_theme(&mut self, host: &HostLink, notices: &mut NoticeState) {
        let texts = host.texts.last();
        let wrong = texts.wrong_themes.iter().next();
        if let Some((name, why)) = wrong {
            notices.toasts.show_message(format!("The theme {name} can't be used: {why}."));
        }
        let names: Vec<String> = texts.themes.keys().cloned().collect();
        match names.is_empty() {
            true if wrong.is_some() => {}
            true => {
                notices.toasts.show_message("No themes yet. A theme is a YAML file in the workspace's folder themes.")
            }
            false => *self = WindowOverlay::Palette(CommandPalette::themes(names)),
        }
    }
}

impl PaneState {
    /// Performs a note management command.
    pub(crate) fn run_filing(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        filing: NoteCommand,
    ) {
        match (filing, self.active.note) {
            (NoteCommand::Today, _) => self.today(host, notices),
            (NoteCommand::Quick, _) => {
                *overlay = WindowOverlay::Dialog(Dialog::QuickNote { text: String::new(), trouble: None })
            }
            (NoteCommand::Template, Some(_)) => self.choose_template(host, overlay, notices),
            (NoteCommand::Duplicate, Some(note)) => self.duplicate(host, notices, note),
            (NoteCommand::Star, Some(note)) => host.star(notices, prefs, note),
            (NoteCommand::Template | NoteCommand::Duplicate | NoteCommand::Star, None) => {
                notices.toasts.show_message("No note is open.")
            }
        }
    }

    /// Performs an action of the tree's menu.
    pub(crate) fn apply_tree_action(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        ctx: &egui::Context,
        wish: TreeAction,
    ) {
        match wish {
            TreeAction::NewNote(volume, folder) => overlay.ask_name(host, self, notices, folder, Some(volume)),
            TreeAction::RenameFolder(volume, from) => {
                let path = from.trim_end_matches('/').to_owned();
                *overlay = WindowOverlay::Dialog(Dialog::RenameFolder { volume, from, path, trouble: None });
            }
            TreeAction::Duplicate(note) => self.duplicate(host, notices, note),
            TreeAction::Star(note) => host.star(notices, prefs, note),
            TreeAction::Discard(files) => overlay.ask_discard(host, files),
            TreeAction::History(note) => self.show_history(host, notices, Some(note), false),
            TreeAction::Export(kind, what) => overlay.ask_export(host, kind, what),
            TreeAction::VolumeSettings => overlay.open_settings(host, SettingsSection::Volumes),
            TreeAction::CloseVolume(volume) => self.close_volume(host, notices, prefs, Some(volume)),
            TreeAction::Move { moves, into } => {
                if let Err(why) = host.move_files(notices, moves, &format!("Moved to {into}.")) {
                    notices.toasts.show_message(why.to_string());
                }
            }
            TreeAction::CopyLink(note) => {
                if let Some((_, path)) = host.place_of(note) {
                    ctx.copy_text(format!("[[{}]]", shown_name(path.rsplit('/').next().unwrap_or(&path))));
                }
            }
            TreeAction::CopyPath(file) => {
                let place = host.place_of(file);
                let volume = place.as_ref().and_then(|(volume, _)| host.session().volume(*volume));
                let root = volume.and_then(|volume| volume.root.clone());
                if let (Some(root), Some((_, path))) = (root, place) {
                    ctx.copy_text(root.join(path).display().to_string());
                }
            }
        }
    }

    fn duplicate(&mut self, host: &mut HostLink, notices: &mut NoticeState, note: DocId) {
        let Some((volume, path)) = host.place_of(note) else { return };
        let stem = path.strip_suffix(".md").unwrap_or(&path).to_owned();
        let taken = |path: &str| host.file_at(volume, path).is_some();
        let free = (2..).map(|number| format!("{stem} {number}.md")).find(|path| !taken(path)).unwrap_or_default();
        self.begin(host, notices, note, FollowUpAction::New { volume, path: free, fill: false });
    }

    /// Returns where today's note is, or belongs.
    fn find_today(&self, host: &HostLink) -> anyhow::Result<DailyNote> {
        let session = host.session();
        let own = self.active.note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
        let first = || session.volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id);
        let Some(volume) = own.or_else(first).and_then(|volume| session.volume(volume)) else {
            return Err(anyhow!("Open a folder first. A note is a file in a folder."));
        };
        let settings = session.settings();
        let name = write_date(&settings.daily_format, &Zoned::now())?;
        let folder = settings.daily_folder.trim().trim_matches('/');
        let path = if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") };
        let there = volume.files.get(&path).map(|row| row.id);
        let template = volume.files.get(settings.daily_template.trim()).filter(|row| row.kind == FileKind::Note);
        Ok(DailyNote { volume: volume.id, path, name, there, template: template.map(|row| row.id) })
    }

    /// Opens today's note, and creates it if needed.
    fn today(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        let DailyNote { volume, path, name, there, template } = match self.find_today(host) {
            Ok(found) => found,
            Err(why) => {
                notices.toasts.show_message(why.to_string());
                return;
            }
        };
        match (there, template) {
            (Some(note), _) => self.open(host, notices, note),
            (None, Some(template)) => {
                self.begin(host, notices, template, FollowUpAction::New { volume, path, fill: true })
            }
            (None, None) => self.make(host, notices, volume, &path, format!("# {name}\n\n")),
        }
    }

    /// Adds an item to the end of today's note, and creates the note if needed. What is open stays open.
    pub(crate) fn add_to_today(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        text: &str,
    ) -> anyhow::Result<()> {
        let DailyNote { volume, path, name, there, template } = self.find_today(host)?;
        let item = format!("- {text}\n");
        match (there, template) {
            (Some(note), _) => self.begin(host, notices, note, FollowUpAction::Capture { place: None, item }),
            (None, Some(template)) => {
                let place = Some((volume, path));
                self.begin(host, notices, template, FollowUpAction::Capture { place, item });
            }
            (None, None) => host.make_closed(notices, volume, path, format!("# {name}\n\n{item}")),
        }
        Ok(())
    }

    /// Lists the templates of the open note's volume.
    fn choose_template(&mut self, host: &HostLink, overlay: &mut WindowOverlay, notices: &mut NoticeState) {
        let session = host.session();
        let folder = format!("{}/", session.settings().templates.trim().trim_matches('/'));
        let volume =
            self.active.note.and_then(|note| session.locate_file(note)).and_then(|(volume, _)| session.volume(volume));
        let notes: Vec<(DocId, String)> = volume
            .into_iter()
            .flat_map(|volume| tree::files_below(volume, &folder))
            .filter(|(path, _)| path.ends_with(".md"))
            .map(|(path, note)| (note, shown_name(&path[folder.len()..]).to_owned()))
            .collect();
        if notes.is_empty() {
            notices.toasts.show_message(format!("No templates yet. A template is a note in the folder {folder}."));
            return;
        }
        *overlay = WindowOverlay::Palette(CommandPalette::templates(notes));
    }

    /// Inserts a template into the open note.
    pub(crate) fn insert_template(&mut self, host: &mut HostLink, notices: &mut NoticeState, template: DocId) {
        if let Some(note) = self.active.note {
            self.begin(host, notices, template, FollowUpAction::Insert { note });
        }
    }

    /// Performs an action once the text of the note `source` is loaded.
    pub(crate) fn begin(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        source: DocId,
        then: FollowUpAction,
    ) {
        if host.send(Command::HoldNote { note: source }, notices) {
            self.pending_note_actions.push(PendingNoteAction { source, then });
        }
    }

    /// Continues actions that waited for a note's text.
    pub(crate) fn run_pending_note_actions(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) {
        for errand in std::mem::take(&mut self.pending_note_actions) {
            let read = read(host.session(), errand.source);
            let Some(text) = read else {
                self.pending_note_actions.push(errand);
                continue;
            };
            if let (Ok(text), FollowUpAction::Capture { place: None, item }) = (&text, &errand.then)
                && host.send(with_item(errand.source, text, item), notices)
            {
                notices.toasts.show_message("Added to today's note.");
            }
            host.send(Command::ReleaseNote { note: errand.source }, notices);
            ctx.request_repaint();
            match (text, errand.then) {
                (Err(why), _) => notices.toasts.show_message(format!("Can't read the note: {why}.")),
                (Ok(text), FollowUpAction::New { volume, path, fill }) => {
                    let text = if fill { filled(&text, &title_of(&path), &Zoned::now()) } else { text };
                    self.make(host, notices, volume, &path, text);
                }
                (Ok(text), FollowUpAction::DrawSample) => host.draw_sample_figure(errand.source, &text),
                (Ok(_), FollowUpAction::Capture { place: None, .. }) => {} // done while the note was held
                (Ok(text), FollowUpAction::Capture { place: Some((volume, path)), item }) => {
                    let mut text = filled(&text, &title_of(&path), &Zoned::now());
                    if !text.is_empty() && !text.ends_with('\n') {
                        text.push('\n');
                    }
                    host.make_closed(notices, volume, path, text + &item);
                }
                (Ok(text), FollowUpAction::Insert { note }) => {
                    let title = host.place_of(note).map(|(_, path)| title_of(&path)).unwrap_or_default();
                    let insert = filled(&text, &title, &Zoned::now());
                    let here = self.active.note == Some(note);
                    let caret = self.active.editor.caret.filter(|_| here).map(|caret| caret.at);
                    let end = host.session().note(note).map_or(0, |note| note.length());
                    let at = caret.unwrap_or(end);
                    if here {
                        let after = at + insert.len();
                        let edit = NoteEdit { at, delete: 0, insert, caret: after, anchor: after };
                        self.apply_edits(host, notices, vec![edit]);
                        ctx.request_repaint();
                        self.active.editor.place_caret(after);
                    } else {
                        host.send(Command::Edit { note, at, delete: 0, insert }, notices);
                    }
                }
            }
        }
    }

    /// Creates a note with a text and shows it, with the caret at the end.
    fn make(&mut self, host: &mut HostLink, notices: &mut NoticeState, volume: DocId, path: &str, text: String) {
        let end = text.len();
        if host.send(Command::NewNote { volume, path: path.to_owned(), text }, notices)
            && let Some(note) = host.file_at(volume, path)
        {
            self.open(host, notices, note);
            self.active.editor.place_caret(end);
        }
    }
}

impl HostLink {
    fn place_of(&self, file: DocId) -> Option<(DocId, String)> {
        let (volume, path) = self.session().locate_file(file)?;
        Some((volume, path.to_owned()))
    }

    /// Creates today's note with a text, without showing it.
    fn make_closed(&mut self, notices: &mut NoticeState, volume: DocId, path: String, text: String) {
        if self.send(Command::NewNote { volume, path: path.clone(), text }, notices)
            && let Some(note) = self.file_at(volume, &path)
        {
            self.send(Command::CloseNote { note }, notices);
            notices.toasts.show_message("Added to today's note.");
        }
    }

    /// Moves all files of a folder. Returns an error that says why they can't be moved.
    pub(crate) fn rename_folder(&mut self, volume: DocId, from: &str, to: &str) -> anyhow::Result<()> {
        let to = format!("{}/", to.trim().trim_matches('/'));
        let files = self.session().volume(volume).into_iter().flat_map(|volume| tree::files_below(volume, from));
        let moves = files.map(|(path, file)| (file, format!("{to}{}", &path[from.len()..]))).collect();
        self.command(Command::MoveFiles { moves })
    }

    fn star(&mut self, notices: &mut NoticeState, prefs: &mut WindowState, note: DocId) {
        let mut settings = self.session().settings().clone();
        prefs.store_settings(&mut settings);
        match settings.starred.iter().position(|starred| *starred == note) {
            Some(place) => _ = settings.starred.remove(place),
            None => settings.starred.push(note),
        }
        self.send(Command::Set { settings: Box::new(settings) }, notices);
    }
}

/// Returns the edit that adds an item to the end of a note with this text.
fn with_item(note: DocId, text: &str, item: &str) -> Command {
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Command::Edit { note, at: text.len(), delete: 0, insert: format!("{gap}{item}") }
}

/// Returns a note's text once it's loaded, and `None` before.
fn read(session: &Session, note: DocId) -> Option<anyhow::Result<String>> {
    let Some(note) = session.note(note) else { return Some(Err(anyhow!("it was closed in the meantime"))) };
    match &note.phase {
        NotePhase::Ready => Some(Ok(note.text())),
        NotePhase::Failed(why) => Some(Err(anyhow!("{why}"))),
        NotePhase::Reading => None,
    }
}

pub(crate) fn title_of(path: &str) -> String {
    shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned()
}

/// Returns a template with its placeholders filled, as of `now`.
pub(crate) fn filled(template: &str, title: &str, now: &Zoned) -> String {
    text::date_format::fill_template(template, title, |format| write_date(format, now).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled() {
        let now: Zoned = "2026-03-04T05:06:07[UTC]".parse().expect("a time");
        let text = filled("# {{title}}\n{{ date }} {{time}} {{date:%A}} {{other}} {{", "Rain", &now);
        assert_eq!(text, "# Rain\n2026-03-04 05:06 Wednesday {{other}} {{");
        assert_eq!(filled("{{date:YYYY-MM-DD}} {{time:HH:mm}}", "", &now), "2026-03-04 05:06", "as Obsidian writes it");
        assert_eq!(write_date("%Y/%m", &now).expect("a date"), "2026/03");
        assert!(write_date("%!", &now).is_err() && write_date("", &now).is_err());
    }
}
