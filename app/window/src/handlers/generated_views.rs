//! Supplies what pages show with values and drawings from their kernels.

use crate::shell::host_link::HostLink;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use engine::KernelPhase;
use engine::generated_view::AgentView;
use host::KernelInquiry;

impl PaneState {
    /// Requests the variables that visible views show, after each run of their kernels, figures with the limits that
    /// they were zoomed or panned to, and the rows of tables that the user asked for.
    pub(crate) fn feed_views(&mut self, host: &mut HostLink, ctx: &egui::Context) {
        let driver = &mut host.driver;
        for pane in self.all_mut() {
            let Some(note) = pane.note else { continue };
            pane.page.cells.figures.redraw_by_kernel(ctx, driver, note);
            pane.page.cells.tables_mut().for_each(|table| table.fetch_rows(ctx, driver, note));
            for view in pane.page.insets.generated_views() {
                let state = driver.session().note(note).map(|note| (note.kernel, note.run_revision()));
                let Some((kernel, runs)) = state else { continue };
                let names = match &view.read {
                    Some((_, read)) if view.drawn => {
                        read.as_ref().as_ref().map(AgentView::variable_names).unwrap_or_default()
                    }
                    _ => Vec::new(),
                };
                if names.is_empty() || kernel != KernelPhase::Idle || view.asked == Some(runs) {
                    continue;
                }
                view.asked = Some(runs);
                view.waits = driver.ask_kernel(note, KernelInquiry::Values { names });
            }
        }
    }
}
