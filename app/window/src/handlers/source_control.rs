//! Starts Git operations that the page of source control asks for.

use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::page_view::PageView;
use crate::shell::pane::EditorPane;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use engine::{Command, NotePhase};
use host::source_control::MAX_SAVE_WAIT;
use notebook::actions::SourceControlAction;

impl HostLink {
    /// Performs an action of the page of source control.
    pub(crate) fn use_source_control(
        &mut self,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        action: SourceControlAction,
    ) {
        match action {
            SourceControlAction::Begin(volume, request) => {
                // What is typed is committed, too: the operation waits until it's in the files.
                self.send(Command::Save, notices);
                ctx.request_repaint_after(MAX_SAVE_WAIT);
                if let Err(why) = self.source.begin(self.driver.session(), volume, request) {
                    notices.toasts.show_message(ui::text::sentence(&why.to_string()));
                }
            }
            SourceControlAction::Cancel => self.source.cancel(),
            SourceControlAction::Dismiss => self.source.dismiss_report(),
            SourceControlAction::Refresh(volume) => self.source.refresh(volume),
        }
    }
}

impl EditorPane {
    /// Gives the pane's note the commits of its parts.
    fn follow_blame(&mut self, host: &HostLink, is_shown: bool) {
        let session = host.session();
        let Some(note) = self.note.and_then(|note| session.note(note)) else { return };
        let located = session.locate_file(note.id).filter(|_| is_shown && note.phase == NotePhase::Ready);
        let reading = located.and_then(|(volume, path)| {
            let status = host.source.status(volume).filter(|status| status.github.is_none())?;
            let version = (note.revision(), status.history);
            host.source.blame((volume, path), version, session.is_saved(), &|| note.text())
        });
        self.page.show_blame(note, reading);
    }
}

impl PaneState {
    /// Gives the shown notes the commits of their parts if the user wants to see them.
    pub(crate) fn follow_blame(&mut self, host: &HostLink) {
        let is_shown = self.is_blame_shown;
        for pane in std::iter::once(&mut self.active).chain(self.layout.others.values_mut()) {
            pane.follow_blame(host, is_shown);
        }
    }

    /// Shows or hides which Git commit the parts of notes are from.
    pub(crate) fn toggle_blame(&mut self, host: &HostLink, notices: &mut NoticeState) {
        let located = self.active.note.and_then(|note| host.session().locate_file(note));
        let status = located.and_then(|(volume, _)| host.source.status(volume));
        let has_repository = status.is_some_and(|status| status.github.is_none());
        if !self.is_blame_shown && !has_repository {
            notices.toasts.show_message("This note isn't in a Git repository.");
            return;
        }
        self.is_blame_shown = !self.is_blame_shown;
    }

    /// Reports how an operation ended if the page of source control isn't shown.
    pub(crate) fn report_source_control(&self, host: &HostLink, notices: &mut NoticeState) {
        if !matches!(self.view, Some(PageView::SourceControl(_)))
            && let Some(report) = host.source.unseen_report()
            && !report.text.is_empty()
        {
            notices.toasts.show_message(report.text);
        }
    }
}
