//! Opens pages; renames and deletes files.

use crate::app_window::AppWindow;
use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::pages::agenda::AgendaPage;
use crate::pages::graph::GraphPage;
use crate::pages::trash::TrashPage;
use crate::panels::backlinks_panel::BrokenLinksPage;
use crate::shell::commands::NavigationCommand;
use crate::shell::dock_state::RightPanel;
use crate::shell::page_view::PageView;
use engine::Command;
use engine::commands::CommandId;
use store::DocId;
use ui::text::shown_name;

impl AppWindow {
    /// Performs a command that concerns links or files.
    pub(crate) fn run_go(&mut self, go: NavigationCommand) {
        match go {
            NavigationCommand::Rename => match self.panes.active.note {
                Some(note) => self.ask_rename(note),
                None => self.notices.toasts.show_message("No note is open."),
            },
            NavigationCommand::Delete => match self.panes.active.note {
                Some(note) => self.delete(note),
                None => self.notices.toasts.show_message("No note is open."),
            },
            NavigationCommand::UndoMove => {
                if self.send(Command::UndoMove) {
                    self.notices.toasts.show_message("Taken back.");
                }
            }
            NavigationCommand::FollowRenamed => {
                let notes = self.host.session().count_outdated_link_notes();
                if self.send(Command::FollowRenamed) {
                    let text = if notes == 1 { "The links in 1 note follow." } else { "The links follow." };
                    self.notices.toasts.show_with_action(text, "Undo", CommandId::FilesUndo);
                }
            }
            NavigationCommand::Links => {
                self.dock.toggle(RightPanel::Backlinks, &mut self.prefs.right_open);
            }
            NavigationCommand::Broken => self.panes.view = Some(PageView::Broken(BrokenLinksPage::default())),
            NavigationCommand::Graph => self.panes.view = Some(PageView::Graph(GraphPage::new(None))),
            NavigationCommand::LocalGraph => match self.panes.active.note {
                Some(note) => self.panes.view = Some(PageView::Graph(GraphPage::new(Some(note)))),
                None => self.notices.toasts.show_message("No note is open."),
            },
            NavigationCommand::History => self.show_history(self.panes.active.note, false),
            NavigationCommand::Trash => self.panes.view = Some(PageView::Trash(TrashPage::default())),
            NavigationCommand::EmptyTrash => self.ask_empty(),
            NavigationCommand::Writers => self.show_history(self.panes.active.note, true),
            NavigationCommand::Sync(wish) => self.run_sync(wish),
            NavigationCommand::Agenda => self.panes.view = Some(PageView::Agenda(AgendaPage::default())),
        }
    }

    /// Says once when other programs renamed what notes link to.
    pub(crate) fn report_renamed_links(&mut self) {
        let notes = self.host.session().count_outdated_link_notes();
        let before = std::mem::replace(&mut self.notices.last_reported_renames, notes);
        if notes > before {
            let text = match notes {
                1 => "1 note links to the old name of a file that another program renamed.".to_owned(),
                many => format!("{many} notes link to old names of files that another program renamed."),
            };
            self.notices.toasts.show_with_action(text, "Update", CommandId::FilesFollow);
        }
    }

    /// Asks for a file's new path.
    pub(crate) fn ask_rename(&mut self, file: DocId) {
        let path = self.host.session().locate_file(file).map(|(_, path)| path.to_owned());
        if let Some(path) = path {
            let path = path.strip_suffix(".md").unwrap_or(&path).to_owned();
            self.overlay = WindowOverlay::Dialog(Dialog::Rename { file, path, trouble: None });
        }
    }

    /// Gives a file another path. Gives why not.
    pub(crate) fn rename(&mut self, file: DocId, path: &str) -> Result<(), String> {
        let moves = vec![(file, path.trim_matches('/').to_owned())];
        self.host.command(Command::MoveFiles { moves })?;
        let links = self.host.session().pending_move().map_or(0, |moving| moving.relinks.len());
        if self.host.session().pending_move().is_some() {
            let links = match links {
                0 => "Renamed.".to_owned(),
                1 => "Renamed; the links in 1 note follow.".to_owned(),
                many => format!("Renamed; the links in {many} notes follow."),
            };
            self.notices.toasts.show_with_action(links, "Undo", CommandId::FilesUndo);
        }
        Ok(())
    }

    /// Puts a note into the trash.
    pub(crate) fn delete(&mut self, file: DocId) {
        let name = self.host.session().locate_file(file).map(|(_, path)| path.to_owned());
        if let Some(name) = name
            && self.send(Command::DeleteFiles { files: vec![file] })
        {
            let name = shown_name(name.rsplit('/').next().unwrap_or(&name)).to_owned();
            self.notices.toasts.show_with_action(format!("“{name}” is in the trash."), "Undo", CommandId::FilesUndo);
            self.leave_note(file);
        }
    }

    /// Closes every tab of a note.
    fn leave_note(&mut self, note: DocId) {
        while let Some(pane) = self.panes.layout.pane_with_note(note).filter(|pane| *pane != self.panes.active.id) {
            self.close_tab(pane);
        }
        if self.panes.active.note == Some(note) {
            self.close_tab(self.panes.active.id);
        }
        if self.panes.active.note == Some(note) {
            self.panes.active.show_note(None);
        }
        self.panes.background_notes.retain(|kept| *kept != note);
    }
}
