//! Opens pages, and renames and deletes files.

use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::pages::agenda::AgendaPage;
use crate::pages::graph::GraphPage;
use crate::pages::trash::TrashPage;
use crate::pages::welcome::WelcomePage;
use crate::panels::backlinks_panel::BrokenLinksPage;
use crate::shell::commands::NavigationCommand;
use crate::shell::dock_state::{DockState, RightPanel};
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::page_view::PageView;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use engine::Command;
use engine::commands::CommandId;
use store::DocId;
use text::outline::NoteLink;
use ui::text::shown_name;

impl PaneState {
    /// Performs a command on links or files.
    pub(crate) fn run_go(
        &mut self,
        host: &mut HostLink,
        dock: &mut DockState,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        prefs: &mut WindowState,
        go: NavigationCommand,
    ) {
        match go {
            NavigationCommand::Rename => match self.active.note {
                Some(note) => overlay.ask_rename(host, note),
                None => notices.toasts.show_message("No note is open."),
            },
            NavigationCommand::Delete => match self.active.note {
                Some(note) => self.delete(host, notices, note),
                None => notices.toasts.show_message("No note is open."),
            },
            NavigationCommand::UndoMove => {
                if host.send(Command::UndoMove, notices) {
                    notices.toasts.show_message("Taken back.");
                }
            }
            NavigationCommand::FollowRenamed => {
                let notes = host.session().count_outdated_link_notes();
                if host.send(Command::FollowRenamed, notices) {
                    let text = if notes == 1 { "The links in 1 note follow." } else { "The links follow." };
                    notices.toasts.show_with_action(text, "Undo", CommandId::FilesUndo);
                }
            }
            NavigationCommand::Links => {
                dock.toggle(RightPanel::Backlinks, &mut prefs.right_open);
            }
            NavigationCommand::Broken => self.view = Some(PageView::Broken(BrokenLinksPage::default())),
            NavigationCommand::Graph => self.view = Some(PageView::Graph(GraphPage::new(None))),
            NavigationCommand::LocalGraph => match self.active.note {
                Some(note) => self.view = Some(PageView::Graph(GraphPage::new(Some(note)))),
                None => notices.toasts.show_message("No note is open."),
            },
            NavigationCommand::History => self.show_history(host, notices, self.active.note, false),
            NavigationCommand::SourceControl => self.view = Some(PageView::SourceControl(Box::default())),
            NavigationCommand::Forks => self.view = Some(PageView::Forks(Box::default())),
            NavigationCommand::Packages => self.view = Some(PageView::Packages(Box::default())),
            NavigationCommand::Trash => self.view = Some(PageView::Trash(TrashPage::default())),
            NavigationCommand::EmptyTrash => overlay.ask_empty(host, notices),
            NavigationCommand::Writers => self.show_history(host, notices, self.active.note, true),
            NavigationCommand::Sync(wish) => self.run_sync(host, overlay, notices, wish),
            NavigationCommand::Welcome => self.view = Some(PageView::Welcome(WelcomePage::default())),
            NavigationCommand::Agenda => self.view = Some(PageView::Agenda(AgendaPage::default())),
        }
    }

    /// Moves a note to the trash.
    pub(crate) fn delete(&mut self, host: &mut HostLink, notices: &mut NoticeState, file: DocId) {
        let name = host.session().locate_file(file).map(|(_, path)| path.to_owned());
        if let Some(name) = name
            && host.send(Command::DeleteFiles { files: vec![file] }, notices)
        {
            let name = shown_name(name.rsplit('/').next().unwrap_or(&name)).to_owned();
            notices.toasts.show_with_action(format!("“{name}” is in the trash."), "Undo", CommandId::FilesUndo);
            self.leave_note(host, notices, file);
        }
    }

    /// Closes all tabs that show a note.
    pub(crate) fn leave_note(&mut self, host: &mut HostLink, notices: &mut NoticeState, note: DocId) {
        while let Some(pane) = self.layout.pane_with_note(note).filter(|pane| *pane != self.active.id) {
            self.close_tab(host, notices, pane);
        }
        if self.active.note == Some(note) {
            self.close_tab(host, notices, self.active.id);
        }
        if self.active.note == Some(note) {
            self.active.show_note(None);
        }
        self.background_notes.retain(|kept| *kept != note);
    }
}

impl NoticeState {
    /// Reports once if another program renamed files that notes link to.
    pub(crate) fn report_renamed_links(&mut self, host: &HostLink) {
        let notes = host.session().count_outdated_link_notes();
        let before = std::mem::replace(&mut self.last_reported_renames, notes);
        if notes > before {
            let text = match notes {
                1 => "1 note links to the old name of a file that another program renamed.".to_owned(),
                many => format!("{many} notes link to old names of files that another program renamed."),
            };
            self.toasts.show_with_action(text, "Update", CommandId::FilesFollow);
        }
    }
}

impl WindowOverlay {
    /// Opens the dialog that asks for a file's new path.
    pub(crate) fn ask_rename(&mut self, host: &HostLink, file: DocId) {
        let path = host.session().locate_file(file).map(|(_, path)| path.to_owned());
        if let Some(path) = path {
            let path = path.strip_suffix(".md").unwrap_or(&path).to_owned();
            *self = WindowOverlay::Dialog(Dialog::Rename { file, path, trouble: None });
        }
    }
}

impl HostLink {
    /// Moves a file to another path. Returns an error that says why it can't be moved.
    pub(crate) fn rename(&mut self, notices: &mut NoticeState, file: DocId, path: &str) -> anyhow::Result<()> {
        self.move_files(notices, vec![(file, path.trim_matches('/').to_owned())], "Renamed.")
    }

    /// Moves files inside their volume and reports it, with the number of updated links.
    ///
    /// Returns an error that says why they can't be moved.
    pub(crate) fn move_files(
        &mut self,
        notices: &mut NoticeState,
        moves: Vec<(DocId, String)>,
        done: &str,
    ) -> anyhow::Result<()> {
        self.command(Command::MoveFiles { moves })?;
        let session = self.session();
        let Some(moving) = session.pending_move() else { return Ok(()) };
        // The outlines already contain the new targets.
        let links: usize = moving
            .relinks
            .iter()
            .filter_map(|(note, rewrites)| {
                let (volume, _) = session.locate_file(*note)?;
                let outline = session.volume(volume)?.links.outline(*note)?;
                let follows =
                    |link: &&NoteLink| rewrites.iter().any(|one| one.kind == link.kind && one.new == link.target);
                Some(outline.links.iter().filter(follows).count())
            })
            .sum();
        let links = match links {
            0 => String::new(),
            1 => " 1 link updated.".to_owned(),
            many => format!(" {many} links updated."),
        };
        notices.toasts.show_with_action(format!("{done}{links}"), "Undo", CommandId::FilesUndo);
        Ok(())
    }
}
