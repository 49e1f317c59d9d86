//! Opens folders as volumes and shows their content.

use crate::handlers::help::SAMPLE_FOLDER;
use crate::overlays::dialogs::Dialog;
use crate::overlays::open_folder_form::{OpenFolderForm, closed_folders};
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::dock_state::DockState;
use crate::shell::folder_opening::{FolderOpening, OpeningTarget};
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::pending_note_action::FollowUpAction;
use crate::shell::window_state::WindowState;
use anyhow::anyhow;
use eframe::egui;
use engine::commands::CommandId;
use engine::{Command, ScanState, Volume};
use host::desktop::TypedPath;
use std::path::{Path, PathBuf};
use store::{DocId, FileKind};
use ui::text::{counted, shown_name};

/// Names of a folder's start note, in search order.
const START_NOTES: &[&str] = &["home", "readme", "index", "welcome"];

impl PaneState {
    /// Opens a folder as a volume and shows `file`, or the folder's start note.
    ///
    /// A folder inside a volume is shown there. Returns an error that says why it can't be opened.
    pub(crate) fn open_folder(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        prefs: &WindowState,
        folder: &Path,
        file: Option<&Path>,
    ) -> anyhow::Result<()> {
        let around =
            host.session().volumes().find_map(|volume| volume.root.clone().filter(|at| folder.starts_with(at)));
        let root = around.unwrap_or_else(|| folder.to_owned());
        let inside = |path: &Path| path.strip_prefix(&root).ok()?.to_str().map(str::to_owned);
        let target = match file.and_then(inside) {
            Some(path) => OpeningTarget::File(path),
            None => {
                OpeningTarget::Start(inside(folder).filter(|at| !at.is_empty()).map_or_else(String::new, |at| at + "/"))
            }
        };
        self.begin_opening(host, root.clone(), target)?;
        host.remember_folder(notices, prefs, root);
        Ok(())
    }

    /// Opens a volume's folder, and shows the target once its files are known.
    fn begin_opening(&mut self, host: &mut HostLink, root: PathBuf, target: OpeningTarget) -> anyhow::Result<()> {
        let known = host.session().volumes().find(|volume| volume.root.as_ref() == Some(&root));
        let scan = known.map_or(1, |volume| volume.scans + 1 + u64::from(volume.scanning != ScanState::Idle));
        host.command(Command::OpenFolder { folder: root.clone(), name: None })?;
        // The visible note stays until then.
        self.has_chosen_note = true;
        self.openings.push(FolderOpening { root, scan, target });
        Ok(())
    }

    /// Opens the paths from the command line, once it's known whether they are files or folders.
    pub(crate) fn open_named_paths(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        prefs: &WindowState,
        jobs: &BackgroundJobs,
    ) {
        if !host.session().is_open() {
            return;
        }
        while let Ok(path) = jobs.named_paths.1.try_recv() {
            let opened = match &path {
                TypedPath::Folder(folder) => self.open_folder(host, notices, prefs, folder, None),
                TypedPath::File(file) => match file.parent() {
                    Some(folder) => self.open_folder(host, notices, prefs, folder, Some(file)),
                    None => Ok(()),
                },
                TypedPath::Missing(path) => Err(anyhow!("There's no file or folder at {}.", path.display())),
                TypedPath::Unreadable(path, why) => Err(anyhow!("Can't open {}: {why}.", path.display())),
            };
            if let Err(why) = opened {
                notices.toasts.show_message(why.to_string());
            }
        }
    }

    /// Trusts the open note's volume, so that agents follow its instruction files, or takes that back.
    pub(crate) fn trust_volume(&self, host: &mut HostLink, notices: &mut NoticeState) {
        let session = host.session();
        let shown = self.active.note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
        let Some(volume) = shown.and_then(|volume| session.volume(volume)) else {
            notices.toasts.show_message("Open a note of the volume first.");
            return;
        };
        let (id, name, mut settings) = (volume.id, volume.name.clone(), session.settings().clone());
        let is_trusted = !settings.trusted_volumes.contains(&id);
        settings.trust_volume(id, is_trusted);
        if host.send(Command::Set { settings: Box::new(settings) }, notices) {
            notices.toasts.show_message(match is_trusted {
                true => format!("Agents follow instruction files of {name} now, such as AGENTS.md."),
                false => format!("Agents don't follow instruction files of {name} now."),
            });
        }
    }

    /// Closes a volume: `volume`, or the one that contains the open note.
    pub(crate) fn close_volume(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        prefs: &WindowState,
        volume: Option<DocId>,
    ) {
        let session = host.session();
        let shown = self.active.note.and_then(|note| Some((session.locate_file(note)?.0, note)));
        let Some(volume) = volume.or(shown.map(|(of, _)| of)).and_then(|volume| session.volume(volume)) else {
            notices.toasts.show_message("Open a note of the volume first.");
            return;
        };
        let (id, name, root) = (volume.id, volume.name.clone(), volume.root.clone());
        let shown = shown.filter(|(of, _)| *of == id).map(|(_, note)| note);
        if !host.send(Command::CloseVolume { volume: id }, notices) {
            return;
        }
        if shown.is_some() {
            self.active.show_note(None);
        }
        let session = host.session();
        self.background_notes.retain(|note| session.note(*note).is_some());
        let text = format!("Closed {name}. Files are untouched.");
        match root {
            Some(root) => {
                notices.toasts.show_with_action(text, "Undo", CommandId::VolumeReopen);
                host.remember_folder(notices, prefs, root.clone());
                self.closed_volume = Some((root, shown));
            }
            None => notices.toasts.show_message(text),
        }
    }

    /// Reopens the last closed volume, with the note that was visible.
    pub(crate) fn reopen_volume(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        let Some((root, note)) = self.closed_volume.take() else {
            notices.toasts.show_message("No volume was closed.");
            return;
        };
        if let Err(why) = self.begin_opening(host, root, OpeningTarget::Note(note)) {
            notices.toasts.show_message(why.to_string());
        }
    }

    /// Shows the targets of opened folders, once their files are known.
    pub(crate) fn finish_openings(
        &mut self,
        host: &mut HostLink,
        dock: &mut DockState,
        notices: &mut NoticeState,
        jobs: &BackgroundJobs,
        ctx: &egui::Context,
    ) {
        for opening in std::mem::take(&mut self.openings) {
            let session = host.session();
            let Some(volume) = session.volumes().find(|volume| volume.root.as_ref() == Some(&opening.root)) else {
                continue; // it was closed meanwhile
            };
            if volume.scans < opening.scan || volume.scanning != ScanState::Idle {
                self.openings.push(opening);
                continue;
            }
            dock.tree.reveal_volume(volume.id);
            let (shown, text) = match &opening.target {
                OpeningTarget::Start(below) => (start_note(volume, below), Some(summary(volume))),
                OpeningTarget::File(path) => match volume.files.get(path) {
                    Some(row) => (Some(row.id), Some(summary(volume))),
                    None => (start_note(volume, ""), Some(format!("{path} isn't listed in {}.", volume.name))),
                },
                OpeningTarget::Note(note) => (*note, None),
            };
            if let Some(text) = text {
                notices.toasts.show_message(text);
                jobs.read_obsidian(ctx, opening.root.clone(), false);
            }
            if let Some(note) = shown {
                self.open(host, notices, note);
                let is_sample = opening.root == host.driver.folder().join(SAMPLE_FOLDER);
                if is_sample && std::mem::take(&mut self.draws_sample) {
                    self.begin(host, notices, note, FollowUpAction::DrawSample);
                }
            }
        }
    }
}

impl WindowOverlay {
    /// Opens the dialog for opening a folder.
    pub(crate) fn ask_folder(&mut self, host: &HostLink) {
        let session = host.session();
        let open: Vec<&Path> = session.volumes().filter_map(|volume| volume.root.as_deref()).collect();
        let recent = closed_folders(&session.settings().recent_folders, &open);
        *self = WindowOverlay::Dialog(Dialog::OpenFolder(Box::new(OpenFolderForm::new(
            recent,
            host.folder_chooser.clone(),
        ))));
    }

    /// Opens the dialog for cloning a repository.
    pub(crate) fn ask_repository(&mut self) {
        *self = WindowOverlay::Dialog(Dialog::OpenRepository(Box::default()));
    }

    /// Checks what was typed into a dialog that opens a folder or a repository, and opens it.
    pub(crate) fn submit_form(&mut self, ctx: &egui::Context) {
        match self {
            WindowOverlay::Dialog(Dialog::OpenFolder(form)) => form.submit(ctx),
            WindowOverlay::Dialog(Dialog::OpenRepository(form)) => form.submit(ctx),
            WindowOverlay::Dialog(Dialog::Interpreter(form)) => form.submit(ctx),
            _ => {} // tidy: open because no other dialog is submitted
        }
    }
}

impl HostLink {
    /// Adds a folder to the recent ones.
    pub(crate) fn remember_folder(&mut self, notices: &mut NoticeState, prefs: &WindowState, folder: PathBuf) {
        let mut settings = self.session().settings().clone();
        if settings.recent_folders.first() == Some(&folder) {
            return;
        }
        prefs.store_settings(&mut settings);
        settings.recent_folders.retain(|known| *known != folder);
        settings.recent_folders.insert(0, folder);
        self.send(Command::Set { settings: Box::new(settings) }, notices);
    }
}

/// Returns the start note of a folder: one of `START_NOTES`, or else the most recently changed note.
fn start_note(volume: &Volume, below: &str) -> Option<DocId> {
    let notes = || {
        let files = volume.files.values().filter(|row| row.kind == FileKind::Note);
        files.filter_map(|row| Some((row.path.strip_prefix(below)?, row)))
    };
    let named = START_NOTES
        .iter()
        .find_map(|name| notes().find(|(path, _)| !path.contains('/') && shown_name(path).eq_ignore_ascii_case(name)));
    named.or_else(|| notes().max_by_key(|(_, row)| row.mtime)).map(|(_, row)| row.id)
}

/// Returns a message with the numbers of notes and attachments in a volume.
fn summary(volume: &Volume) -> String {
    if let Some(trouble) = &volume.trouble {
        return format!("{} can't be read: {trouble}", volume.name);
    }
    let notes = volume.files.values().filter(|row| row.kind.is_text()).count();
    let attachments = volume.files.len() - notes;
    let attachments = if attachments > 0 { format!(", {}", counted(attachments, "attachment")) } else { String::new() };
    format!("Opened {}: {}{attachments}", volume.name, counted(notes, "note"))
}
