//! Actions on attachments: open in other programs, import as notes, convert. They run only when the user clicks.

use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use engine::Command;
use host::desktop;
use host::fs::confined_dir::ConfinedPath;
use notebook::actions::FileAction;
use store::{DocId, FileKind};

impl PaneState {
    /// Performs the file action that the user clicked.
    #[allow(clippy::too_many_arguments, reason = "an import needs what a dropped file needs")]
    pub(crate) fn run_file_action(
        &mut self,
        host: &mut HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        jobs: &BackgroundJobs,
        ctx: &egui::Context,
        file: DocId,
        action: FileAction,
    ) {
        let session = host.session();
        let Some((volume, path)) = session.locate_file(file).map(|(volume, path)| (volume, path.to_owned())) else {
            return;
        };
        let Some(root) = session.volume(volume).and_then(|volume| volume.root.clone()) else {
            notices.toasts.show_message("The volume has no folder on this device.");
            return;
        };
        let confined = ConfinedPath::new(&root, &path);
        let (say, wake) = (jobs.saved.0.clone(), ctx.clone());
        let tell = move |words: String| {
            let _ = say.send(words); // the window may be closed
            wake.request_repaint();
        };
        match action {
            FileAction::OpenOutside | FileAction::ShowInFolder => {
                let Some(opener) = host.file_opener.clone() else {
                    notices.toasts.show_message("There's no desktop here to open it with.");
                    return;
                };
                let shows_folder = action == FileAction::ShowInFolder;
                std::thread::spawn(move || {
                    let opened = desktop::openable_path(&confined, shows_folder).and_then(|path| opener(&path));
                    if let Err(why) = opened {
                        tell(ui::text::sentence(&why.to_string()));
                    }
                });
            }
            FileAction::OpenNotebook => {
                let stem = path.rsplit_once('.').map_or(path.as_str(), |(stem, _)| stem);
                let note = session.volume(volume).and_then(|volume| volume.files.get(&format!("{stem}.md")));
                match note.filter(|row| row.kind == FileKind::Note).map(|row| row.id) {
                    Some(note) => self.open(host, notices, note),
                    None => self.import(host, input, notices, ctx, vec![root.join(&path)]),
                }
            }
            FileAction::ImportNotebook => self.import(host, input, notices, ctx, vec![root.join(&path)]),
            FileAction::ConvertToUtf8 => {
                std::thread::spawn(move || {
                    tell(match host::fs::convert::convert_to_utf8(&confined) {
                        Ok(copy) => format!("Converted to UTF-8. The original is kept as {copy}."),
                        Err(why) => ui::text::sentence(&why.to_string()),
                    });
                });
            }
        }
    }

    /// Opens the active pane's attachment as a note once it has become one, for instance after a conversion.
    pub(crate) fn open_converted_note(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        let Some(note) = self.active.note.filter(|note| self.active.attachment.has_shown(*note)) else { return };
        if host.session().locate_file(note).is_some() && !host.is_attachment(note) {
            self.active.attachment = Default::default();
            host.send(Command::OpenNote { note }, notices);
        }
    }
}

impl HostLink {
    /// Returns whether a file is an attachment. Attachments can't be opened as notes.
    pub(crate) fn is_attachment(&self, file: DocId) -> bool {
        let session = self.session();
        let row = session.locate_file(file).and_then(|(volume, path)| session.volume(volume)?.files.get(path));
        row.is_some_and(|row| row.kind == FileKind::Attachment)
    }
}
