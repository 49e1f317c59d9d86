//! Starts Git operations that the page of source control asks for.

use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::page_view::PageView;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use engine::Command;
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

impl PaneState {
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
