//! The activity rail at the left edge: one button for each part of the program, with a badge for pending items.

use super::commands::ShortcutTable;
use super::page_view::PageView;
use crate::shell::dock_state::{LeftPanel, RightPanel};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Response, Sense, Ui, pos2, vec2};
use engine::Session;
use engine::commands::CommandId;
use host::source_control::SourceControl;
use notebook::actions::PageAction;
use source_control::note_conflict::conflict_count;
use store::DocId;
use ui::command_menu::show_command_menu;
use ui::icons;
use ui::menus::{menu_below, menu_item, menu_note, menu_separator};
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{self, set_accessible_name, tooltip_at_right};

const RAIL_BUTTON_SIZE: f32 = 36.0;
/// Maximum number of collections in the menu. The quick switcher finds the rest.
const MAX_LISTED_COLLECTIONS: usize = 20;

/// What the rail shows in one frame.
pub(crate) struct RailContext<'a> {
    pub(crate) session: &'a Session,
    /// Number of requests of other programs that wait.
    pub(crate) program_requests: usize,
    pub(crate) shortcuts: &'a ShortcutTable,
    pub(crate) source: &'a SourceControl,
    /// Number of runs that failed since the user last saw the agent.
    pub(crate) failed_runs: usize,
    /// The page shown in place of the notes.
    pub(crate) view: Option<&'a PageView>,
    /// The left panel, if it's open.
    pub(crate) left: Option<LeftPanel>,
    /// The right panel, if it's open.
    pub(crate) right: Option<RightPanel>,
}

/// A button in the rail.
struct RailItem {
    icon: &'static str,
    /// Text of the tooltip.
    title: &'static str,
    /// Accessible name for screen readers.
    name: &'static str,
    command: CommandId,
    is_on: bool,
    /// Number of pending items, and their description.
    badge: Option<(usize, String)>,
}

/// Draws the rail. Its buttons run commands of the command table.
pub(crate) fn show_activity_rail(ui: &mut Ui, context: &RailContext<'_>, actions: &mut Vec<PageAction>) {
    let colours = ThemeColors::of(ui);
    let area = ui.max_rect();
    ui.painter().rect_filled(area, 0.0, colours.sunken);
    let agent_on = context.right == Some(RightPanel::Agent);
    let item = |icon, title, name, command, is_on| RailItem { icon, title, name, command, is_on, badge: None };
    // Clicking the button of the open panel closes it.
    let left_item = |icon, title, name, command, panel| match context.left == Some(panel) {
        true => item(icon, title, name, CommandId::ViewLeft, true),
        false => item(icon, title, name, command, false),
    };
    let view = context.view;
    let first = [
        item(icons::FOLDER, "Files", "Toggle files", CommandId::ViewFiles, context.left == Some(LeftPanel::Files)),
        left_item(icons::SEARCH, "Search", "Toggle search", CommandId::SearchPanel, LeftPanel::Search),
        left_item(icons::TAG, "Tags", "Toggle tags", CommandId::ViewTags, LeftPanel::Tags),
        item(
            icons::CALENDAR,
            "Agenda",
            "Open agenda",
            CommandId::ViewAgenda,
            matches!(view, Some(PageView::Agenda(_))),
        ),
    ];
    let is_memory = matches!(view, Some(PageView::Memory(_)));
    let is_sync = matches!(view, Some(PageView::Sync(_)));
    let second = [
        item(icons::GRAPH, "Graph", "Open graph", CommandId::ViewGraph, matches!(view, Some(PageView::Graph(_)))),
        RailItem {
            badge: agent_badge(context),
            ..item(icons::ROBOT, "Agent", "Toggle agent", CommandId::AgentOpen, agent_on)
        },
        RailItem {
            badge: counted_badge(
                conflict_count(context.session, context.source),
                "file in conflict",
                "files in conflict",
            ),
            ..item(
                icons::BRANCH,
                "Source control",
                "Open source control",
                CommandId::ViewSourceControl,
                matches!(view, Some(PageView::SourceControl(_))),
            )
        },
        item(icons::BRAIN, "Memory", "Open memory", CommandId::ViewMemory, is_memory),
        item(icons::SYNC, "Sync", "Open sync", CommandId::SyncStatus, is_sync),
    ];
    let last = Rect::from_min_size(
        pos2(area.center().x - RAIL_BUTTON_SIZE / 2.0, area.bottom() - RAIL_BUTTON_SIZE - space::S),
        vec2(RAIL_BUTTON_SIZE, RAIL_BUTTON_SIZE),
    );
    let mut top = area.top() + space::S;
    // In a low window, the menu of all commands replaces the buttons that don't fit.
    let mut place = || {
        let rect = Rect::from_min_size(
            pos2(area.center().x - RAIL_BUTTON_SIZE / 2.0, top),
            vec2(RAIL_BUTTON_SIZE, RAIL_BUTTON_SIZE),
        );
        top += RAIL_BUTTON_SIZE + space::XS;
        Some(rect).filter(|rect| rect.bottom() + space::XS <= last.top())
    };
    for item in &first {
        if let Some(rect) = place() {
            show_command(ui, rect, item, context.shortcuts, actions);
        }
    }
    if let Some(rect) = place() {
        show_collections(ui, rect, context, actions);
    }
    for item in &second {
        if let Some(rect) = place() {
            show_command(ui, rect, item, context.shortcuts, actions);
        }
    }
    let has_settings = last.top() - RAIL_BUTTON_SIZE - space::XS >= top;
    let more = if has_settings { last.translate(vec2(0.0, -RAIL_BUTTON_SIZE - space::XS)) } else { last };
    let button = show_button(ui, more, &item(icons::MORE, "More", "More", CommandId::PaletteOpen, false));
    let key_of = |id| context.shortcuts.key_of(id).map(str::to_owned);
    actions.extend(show_command_menu(&button, key_of).map(PageAction::Run));
    tooltip_at_right(&button, "More: all commands");
    if has_settings {
        let settings = item(icons::GEAR, "Settings", "Settings", CommandId::AppSettings, false);
        show_command(ui, last, &settings, context.shortcuts, actions);
    }
}

/// Returns a badge with a count and what is counted; `None` if there's nothing.
fn counted_badge(count: usize, one: &str, several: &str) -> Option<(usize, String)> {
    (count > 0).then(|| (count, format!("{count} {}", if count == 1 { one } else { several })))
}

/// Returns the badge of the agent: approvals first, then failed runs.
fn agent_badge(context: &RailContext<'_>) -> Option<(usize, String)> {
    let waiting = agent_ui::agent::pending_decision_count(context.session.agents()) + context.program_requests;
    counted_badge(waiting, "approval waiting", "approvals waiting")
        .or_else(|| counted_badge(context.failed_runs, "run failed", "runs failed"))
}

fn show_command(ui: &Ui, rect: Rect, item: &RailItem, shortcuts: &ShortcutTable, actions: &mut Vec<PageAction>) {
    let response = show_button(ui, rect, item);
    if response.clicked() {
        actions.push(PageAction::Run(item.command));
    }
    tooltip_at_right(&response, &tooltip(item, shortcuts));
}

fn tooltip(item: &RailItem, shortcuts: &ShortcutTable) -> String {
    let key = shortcuts.key_of(item.command).map_or(String::new(), |key| format!("   {key}"));
    let waits = item.badge.as_ref().map_or(String::new(), |(_, text)| format!("\n{text}"));
    format!("{}{key}{waits}", item.title)
}

fn show_button(ui: &Ui, rect: Rect, item: &RailItem) -> Response {
    let colours = ThemeColors::of(ui);
    let response = ui.interact(rect, ui.scope_id().with(("rail", item.name)), Sense::click());
    if item.is_on {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
    } else if response.hovered() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.sunken));
    }
    let colour = if item.is_on {
        colours.accent
    } else if response.hovered() {
        colours.ink
    } else {
        colours.muted
    };
    ui.painter().text(rect.center(), Align2::CENTER_CENTER, item.icon, theme::icon_font(20.0), colour);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    let name = match &item.badge {
        Some((count, text)) => {
            let at = rect.right_top() + vec2(-space::S, space::S);
            ui.painter().circle_filled(at, 8.0, colours.warn);
            let number = if *count > 9 { "9+".to_owned() } else { count.to_string() };
            ui.painter().text(at, Align2::CENTER_CENTER, number, theme::tabular_font(10.0), colours.paper);
            format!("{}, {text}", item.name)
        }
        None => item.name.to_owned(),
    };
    set_accessible_name(&response, Role::Button, &name);
    response
}

/// Draws the button with the menu of all volumes' collections, and an item for a new one.
fn show_collections(ui: &Ui, rect: Rect, context: &RailContext<'_>, actions: &mut Vec<PageAction>) {
    let item = RailItem {
        icon: icons::TABLE,
        title: "Collections",
        name: "Open collections",
        command: CommandId::CollectionOpen,
        is_on: false,
        badge: None,
    };
    let response = show_button(ui, rect, &item);
    menu_below(&response, item.title, |ui| {
        let found = collections(context.session);
        for (file, title) in &found {
            if menu_item(ui, title, None, true) {
                actions.push(PageAction::Open(*file));
            }
        }
        if found.is_empty() {
            menu_note(ui, "A collection shows notes as a table.");
        }
        menu_separator(ui);
        let new = CommandId::CollectionNew;
        if menu_item(ui, "New collection", context.shortcuts.key_of(new), true) {
            actions.push(PageAction::Run(new));
        }
    });
    tooltip_at_right(&response, &tooltip(&item, context.shortcuts));
}

fn collections(session: &Session) -> Vec<(DocId, String)> {
    let files = session.volumes().flat_map(|volume| volume.files.iter());
    let found = files.filter(|(path, _)| collection::is_collection(path));
    found
        .map(|(path, row)| {
            let name = path.rsplit('/').next().unwrap_or(path);
            (row.id, name.strip_suffix(".base").unwrap_or(name).to_owned())
        })
        .take(MAX_LISTED_COLLECTIONS)
        .collect()
}
