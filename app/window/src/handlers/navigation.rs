//! Opens pages; renames and deletes files.

use crate::app_window::AppWindow;
use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::pages::agenda::AgendaPage;
use crate::pages::graph::GraphPage;
use crate::pages::trash::TrashPage;
use crate::panels::backlinks_panel::BrokenLinksPage;
use crate::shell::commands::NavigationCommand;
use crate::shell::page_view::PageView;
use engine::commands::CommandId;
use engine::{Command, Session};
use store::DocId;
use ui::text::shown_name;

impl AppWindow {
    /// Performs a command that concerns links or files.
    pub(crate) fn run_go(&mut self, go: NavigationCommand) {
        match go {
            NavigationCommand::Rename => match self.active_pane.note {
                Some(note) => self.ask_rename(note),
                None => self.toasts.show_message("No note is open."),
            },
            NavigationCommand::Delete => match self.active_pane.note {
                Some(note) => self.delete(note),
                None => self.toasts.show_message("No note is open."),
            },
            NavigationCommand::UndoMove => {
                if self.send(Command::UndoMove) {
                    self.toasts.show_message("Taken back.");
                }
            }
            NavigationCommand::FollowRenamed => {
                let notes = self.session().map_or(0, Session::count_outdated_link_notes);
                if self.send(Command::FollowRenamed) {
                    let text = if notes == 1 { "The links in 1 note follow." } else { "The links follow." };
                    self.toasts.show_with_action(text, "Undo", CommandId::FilesUndo);
                }
            }
            NavigationCommand::Links => {
                let shown = self.prefs.right_open && self.references.shown;
                (self.prefs.right_open, self.references.shown) = (!shown, !shown);
                (self.variables.shown, self.agent.shown) = (false, false);
            }
            NavigationCommand::Broken => self.view = Some(PageView::Broken(BrokenLinksPage::default())),
            NavigationCommand::Graph => self.view = Some(PageView::Graph(GraphPage::new(None))),
            NavigationCommand::LocalGraph => match self.active_pane.note {
                Some(note) => self.view = Some(PageView::Graph(GraphPage::new(Some(note)))),
                None => self.toasts.show_message("No note is open."),
            },
            NavigationCommand::History => self.show_history(self.active_pane.note, false),
            NavigationCommand::Trash => self.view = Some(PageView::Trash(TrashPage::default())),
            NavigationCommand::EmptyTrash => self.ask_empty(),
            NavigationCommand::Writers => self.show_history(self.active_pane.note, true),
            NavigationCommand::Sync(wish) => self.run_sync(wish),
            NavigationCommand::Agenda => self.view = Some(PageView::Agenda(AgendaPage::default())),
        }
    }

    /// Says once when other programs renamed what notes link to.
    pub(crate) fn report_renamed_links(&mut self) {
        let notes = self.session().map_or(0, Session::count_outdated_link_notes);
        let before = std::mem::replace(&mut self.last_reported_renames, notes);
        if notes > before {
            let text = match notes {
                1 => "1 note links to the old name of a file that another program renamed.".to_owned(),
                many => format!("{many} notes link to old names of files that another program renamed."),
            };
            self.toasts.show_with_action(text, "Update", CommandId::FilesFollow);
        }
    }

    /// Asks for a file's new path.
    pub(crate) fn ask_rename(&mut self, file: DocId) {
        let path = self.session().and_then(|session| session.locate_file(file)).map(|(_, path)| path.to_owned());
        if let Some(path) = path {
            let path = path.strip_suffix(".md").unwrap_or(&path).to_owned();
            self.overlay = WindowOverlay::Dialog(Dialog::Rename { file, path, trouble: None });
        }
    }

    /// Gives a file another path. Gives why not.
    pub(crate) fn rename(&mut self, file: DocId, path: &str) -> Result<(), String> {
        let Some(driver) = &mut self.driver else { return Ok(()) };
        let moves = vec![(file, path.trim_matches('/').to_owned())];
        driver.run_command(Command::MoveFiles { moves }).map_err(|reject| ui::text::sentence(&reject.0))?;
        let links = driver.session().pending_move().map_or(0, |moving| moving.relinks.len());
        if driver.session().pending_move().is_some() {
            let links = match links {
                0 => "Renamed.".to_owned(),
                1 => "Renamed; the links in 1 note follow.".to_owned(),
                many => format!("Renamed; the links in {many} notes follow."),
            };
            self.toasts.show_with_action(links, "Undo", CommandId::FilesUndo);
        }
        Ok(())
    }

    /// Puts a note into the trash.
    pub(crate) fn delete(&mut self, file: DocId) {
        let name = self.session().and_then(|session| session.locate_file(file)).map(|(_, path)| path.to_owned());
        if let Some(name) = name
            && self.send(Command::DeleteFiles { files: vec![file] })
        {
            let name = shown_name(name.rsplit('/').next().unwrap_or(&name)).to_owned();
            self.toasts.show_with_action(format!("“{name}” is in the trash."), "Undo", CommandId::FilesUndo);
            self.leave_note(file);
        }
    }

    /// Closes every tab of a note.
    fn leave_note(&mut self, note: DocId) {
        while let Some(pane) = self.panes.pane_with_note(note).filter(|pane| *pane != self.active_pane.id) {
            self.close_tab(pane);
        }
        if self.active_pane.note == Some(note) {
            self.close_tab(self.active_pane.id);
        }
        if self.active_pane.note == Some(note) {
            self.active_pane.show_note(None);
        }
        self.background_notes.retain(|kept| *kept != note);
    }
}
