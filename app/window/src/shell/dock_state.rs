//! The panels beside the note: files, search or tags on the left, and one of four panels on the right.

use crate::panels::backlinks_panel::BacklinksPanel;
use crate::panels::outline::OutlinePanel;
use crate::panels::search_panel::SearchPanel;
use crate::panels::tags_panel::TagsPanel;
use crate::panels::tree::FileTree;
use crate::panels::variables::VariablesPanel;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::region_focus::RegionFocus;
use crate::shell::window_state::WindowState;
use agent_ui::agent::AgentPanel;
use agent_ui::memory::ForgottenItem;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Response, Sense, Ui, vec2};
use store::DocId;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets;

/// The panel on the left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LeftPanel {
    #[default]
    Files,
    Search,
    Tags,
}

/// The panel on the right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RightPanel {
    #[default]
    Outline,
    Backlinks,
    Variables,
    Agent,
}

impl RightPanel {
    const ALL: [(RightPanel, &'static str); 4] = [
        (RightPanel::Outline, "Outline"),
        (RightPanel::Backlinks, "Links"),
        (RightPanel::Variables, "Variables"),
        (RightPanel::Agent, "Agent"),
    ];
}

/// The panels beside the note.
#[derive(Default)]
pub(crate) struct DockState {
    pub(crate) tree: FileTree,
    pub(crate) search: SearchPanel,
    pub(crate) tags: TagsPanel,
    /// The panel shown when the left side is open.
    pub(crate) left: LeftPanel,
    /// The panel shown when the right side is open.
    pub(crate) right: RightPanel,
    pub(crate) outline: OutlinePanel,
    pub(crate) backlinks: BacklinksPanel,
    pub(crate) variables: VariablesPanel,
    pub(crate) agent: AgentPanel,
    /// Forgotten experiences and schedules that can be restored, the latest one last.
    pub(crate) forgotten: Vec<ForgottenItem>,
    pub(crate) regions: RegionFocus,
}

impl DockState {
    /// Shows a panel on the left, or closes the left side if the panel is already visible.
    pub(crate) fn toggle_left(&mut self, panel: LeftPanel, prefs: &mut WindowState, ctx: &egui::Context) {
        if prefs.left_open && self.left == panel && !prefs.hides_left(ctx) {
            prefs.left_open = false;
        } else {
            prefs.open_left(ctx);
        }
        self.left = panel;
    }

    /// Shows the open note in the file tree.
    pub(crate) fn reveal_open_note(
        &mut self,
        host: &HostLink,
        notices: &mut NoticeState,
        (prefs, ctx): (&mut WindowState, &egui::Context),
        note: Option<DocId>,
    ) {
        match note {
            Some(note) => {
                self.left = LeftPanel::Files;
                prefs.open_left(ctx);
                self.tree.reveal(host.session(), note);
            }
            None => notices.toasts.show_message("No note is open."),
        }
    }

    /// Shows a panel on the right, or closes the right side if the panel is already visible.
    pub(crate) fn toggle(&mut self, panel: RightPanel, open: &mut bool) {
        let is_shown = *open && self.right == panel;
        self.show_or_close(panel, !is_shown, open);
    }

    /// Shows a panel on the right, or closes the right side.
    pub(crate) fn show_or_close(&mut self, panel: RightPanel, shown: bool, open: &mut bool) {
        *open = shown;
        self.right = if shown { panel } else { RightPanel::default() };
    }
}

/// Draws the tabs of the right panel. Returns the selected one.
pub(crate) fn panel_tabs(ui: &mut Ui, shown: RightPanel) -> RightPanel {
    let mut chosen = shown;
    ui.add_space(space::XS);
    ui.horizontal(|ui| {
        ui.add_space(space::S);
        ui.spacing_mut().item_spacing.x = space::XS;
        for (this, name) in RightPanel::ALL {
            if tab(ui, name, shown == this).clicked() {
                chosen = this;
            }
        }
    });
    chosen
}

fn tab(ui: &mut Ui, text: &str, on: bool) -> Response {
    let colours = ThemeColors::of(ui);
    let font = theme::inter_font(if on { theme::InterCut::SemiBold } else { theme::InterCut::Regular }, 13.0);
    let colour = if on { colours.ink } else { colours.muted };
    let galley = ui.painter().layout_no_wrap(text.to_owned(), font, colour);
    let wanted = vec2(galley.size().x + 2.0 * space::S, size::MIN_CLICK_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(wanted, Sense::click());
    if on {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.sunken);
    } else {
        widgets::paint_hover_fill(ui, &response);
    }
    ui.painter().galley(Align2::CENTER_CENTER.align_size_within_rect(galley.size(), rect).min, galley, colour);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.widget_info(|| egui::WidgetInfo::selected(Role::RadioButton, true, on, format!("Panel: {text}")));
    response
}
