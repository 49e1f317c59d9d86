//! The welcome page of the first start: ways to begin, appearance, and five first steps.

use crate::overlays::settings::SettingsChange;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Ui, pos2, vec2};
use engine::commands::CommandId;
use engine::keymap::KeymapPreset;
use engine::{ColorTheme, FirstStep, Session, Settings};
use notebook::actions::PageAction;
use ui::icons;
use ui::picture_choices::{paint_key_caps, paint_text_size, paint_theme, picture_choices};
use ui::theme::{self, CONTROL_CORNER, InterCut, ThemeColors, size, space};
use ui::widgets::{self, paint_clipped_text, set_accessible_name};

const CHOICE_ROW_HEIGHT: f32 = 52.0;
const STEP_ROW_HEIGHT: f32 = 32.0;

/// A way to begin: icon, title, description and command; `None` lists what can be imported.
struct WelcomeChoice(&'static str, &'static str, &'static str, Option<CommandId>);

const WELCOME_CHOICES: &[WelcomeChoice] = &[
    WelcomeChoice(
        icons::NOTEBOOK,
        "Start with the sample",
        "Notes to read, run and change.",
        Some(CommandId::HelpSample),
    ),
    WelcomeChoice(
        icons::FOLDER_PLUS,
        "Open a folder",
        "Your Markdown notes, an Obsidian vault or a folder with notebooks. Nothing in it is changed.",
        Some(CommandId::FolderOpen),
    ),
    WelcomeChoice(icons::IMPORT, "Import from Obsidian, Jupyter or Notion", "Your notes stay where they are.", None),
    WelcomeChoice(
        icons::ROBOT,
        "Connect a model",
        "A model on this machine, or an API key. Everything else works without one.",
        Some(CommandId::AgentConnect),
    ),
    WelcomeChoice(
        icons::PLUGS_CONNECTED,
        "Pair a device",
        "Share notes between your devices, without an account.",
        Some(CommandId::SyncDevices),
    ),
];

/// What can be imported. Each is a folder that is opened.
const IMPORT_CHOICES: &[WelcomeChoice] = &[
    WelcomeChoice(
        icons::BOOKS,
        "Obsidian vault",
        "Choose its folder. Its settings, bookmarks and keys are then offered.",
        Some(CommandId::FolderOpen),
    ),
    WelcomeChoice(
        icons::FILE_CODE,
        "Jupyter notebooks",
        "Choose their folder, and click a notebook in the file tree to open it as a note.",
        Some(CommandId::FolderOpen),
    ),
    WelcomeChoice(
        icons::ARCHIVE,
        "Notion export",
        "Export as “Markdown & CSV” in Notion, unpack the archive, and choose its folder.",
        Some(CommandId::FolderOpen),
    ),
];

/// The themes, with what their pictures show.
const THEMES: [(ColorTheme, &str, Option<bool>); 3] = [
    (ColorTheme::System, "System", None),
    (ColorTheme::Light, "Light", Some(false)),
    (ColorTheme::Dark, "Dark", Some(true)),
];

/// The text sizes of notes to choose from. The settings have those in between.
const TEXT_SIZES: [(f32, &str); 4] = [(0.9, "Small"), (1.0, "Medium"), (1.2, "Large"), (1.5, "Very large")];

/// Returns a typical shortcut of a preset.
fn typical_keys(preset: KeymapPreset) -> &'static [&'static str] {
    match preset {
        KeymapPreset::Tracebook => &["Ctrl", "P"],
        KeymapPreset::VsCode => &["Ctrl", "B"],
        KeymapPreset::Obsidian => &["Ctrl", "O"],
        KeymapPreset::Vim => &["h", "j", "k", "l"],
        KeymapPreset::Jupyter => &["Esc", "B"],
    }
}

/// Returns the checklist text of a first step: title and instructions.
pub(crate) fn first_step_text(step: FirstStep) -> (&'static str, &'static str) {
    match step {
        FirstStep::RunCell => ("Run a cell", "Click the triangle beside a Python cell, or press Shift+Enter in it."),
        FirstStep::LinkNotes => ("Link two notes", "Type [[ in a note and choose another one."),
        FirstStep::FindByMeaning => ("Find by meaning", "Search for a thought in your own words, and open a result."),
        FirstStep::AskAgent => ("Ask the agent", "Open the agent and say what you want done."),
        FirstStep::UndoAgent => ("Undo what it did", "Revert a change in “Changes of the run”."),
    }
}

/// The welcome page.
#[derive(Default)]
pub(crate) struct WelcomePage {
    /// Settings changed on the page, to be applied by the window.
    pub(crate) changes: Vec<SettingsChange>,
    /// Whether what can be imported is listed.
    lists_imports: bool,
}

impl WelcomePage {
    /// Draws the page. Returns whether it must close.
    pub(crate) fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) -> bool {
        let mut close = false;
        let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
        egui::ScrollArea::vertical().id_salt("welcome").auto_shrink(false).show(ui, |ui| {
            let margin = ((ui.available_width() - width) / 2.0).max(0.0);
            let left = ui.cursor().left() + margin;
            let column = Rect::from_min_max(pos2(left, ui.cursor().top()), pos2(left + width, f32::INFINITY));
            let mut column = ui.new_child(egui::UiBuilder::new().max_rect(column).id_salt("welcome column"));
            column.spacing_mut().item_spacing.y = 0.0;
            close = self.show_column(&mut column, session, actions);
            let used = column.min_rect();
            ui.advance_cursor_after_rect(used);
        });
        close
    }

    fn show_column(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) -> bool {
        let mut close = false;
        ui.add_space(space::XXL);
        heading(ui, "Welcome to Tracebook", 28.0, 40.0);
        about(
            ui,
            "Notes, Python cells and an agent in one place. Your notes stay plain Markdown files in your folders.",
        );
        ui.add_space(space::XL);
        for choice in WELCOME_CHOICES {
            let is_open = choice.3.is_none().then_some(self.lists_imports);
            if show_choice(ui, choice, 0.0, is_open) {
                match choice.3 {
                    Some(command) => actions.push(PageAction::Run(command)),
                    None => self.lists_imports = !self.lists_imports,
                }
            }
            let is_listed = choice.3.is_none() && self.lists_imports;
            for import in IMPORT_CHOICES.iter().filter(|_| is_listed) {
                if show_choice(ui, import, space::XXL, None) {
                    actions.extend(import.3.map(PageAction::Run));
                }
            }
        }
        ui.add_space(space::XL);
        heading(ui, "Make it yours", 18.0, 32.0);
        self.show_preferences(ui, session.settings());
        ui.add_space(space::XL);
        heading(ui, "First steps", 18.0, 32.0);
        let done = &session.settings().first_steps;
        for step in FirstStep::ALL {
            show_step(ui, step, done.contains(&step));
        }
        ui.add_space(space::L);
        ui.horizontal(|ui| {
            if widgets::text_button(ui, "Close this page", true).clicked() {
                close = true;
            }
            ui.add_space(space::S);
            if session.settings().show_first_steps && widgets::text_button(ui, "Hide first steps", false).clicked() {
                self.changes.push(SettingsChange::FirstSteps(false));
            }
        });
        about(ui, "This page is in the command palette as “Welcome page”.");
        ui.add_space(space::XXL);
        close
    }

    fn show_preferences(&mut self, ui: &mut Ui, settings: &Settings) {
        about(ui, "Theme");
        ui.add_space(space::S);
        let chosen = THEMES.iter().position(|(theme, ..)| *theme == settings.theme);
        let paint = |painter: &egui::Painter, rect, place: usize| paint_theme(painter, rect, THEMES[place].2);
        if let Some(place) = picture_choices(ui, &THEMES.map(|(_, name, _)| name), chosen, paint) {
            self.changes.push(SettingsChange::Theme(THEMES[place].0));
        }
        let colours = ThemeColors::of(ui);
        about(ui, "Text size in notes");
        ui.add_space(space::S);
        let chosen = TEXT_SIZES.iter().position(|(scale, _)| (scale - settings.text_scale).abs() < 0.01);
        let paint = |painter: &egui::Painter, rect, place: usize| {
            paint_text_size(painter, rect, colours, TEXT_SIZES[place].0);
        };
        if let Some(place) = picture_choices(ui, &TEXT_SIZES.map(|(_, name)| name), chosen, paint) {
            self.changes.push(SettingsChange::Text(TEXT_SIZES[place].0));
        }
        about(ui, "Keyboard shortcuts as in");
        ui.add_space(space::S);
        let chosen = KeymapPreset::ALL.iter().position(|preset| *preset == settings.keymap_preset);
        let paint = |painter: &egui::Painter, rect, place: usize| {
            paint_key_caps(painter, rect, colours, typical_keys(KeymapPreset::ALL[place]));
        };
        if let Some(place) = picture_choices(ui, &KeymapPreset::ALL.map(KeymapPreset::name), chosen, paint) {
            self.changes.push(SettingsChange::Preset(KeymapPreset::ALL[place]));
        }
    }
}

fn heading(ui: &mut Ui, text: &str, points: f32, height: f32) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
    let font = theme::inter_font(InterCut::SemiBold, points);
    ui.painter().text(rect.left_center(), Align2::LEFT_CENTER, text, font, ThemeColors::of(ui).ink);
    set_accessible_name(&response, Role::Heading, text);
}

fn about(ui: &mut Ui, text: &str) {
    let colours = ThemeColors::of(ui);
    ui.add_space(space::XS);
    let style = theme::small();
    let galley = ui.painter().layout(text.to_owned(), style.font, colours.muted, ui.available_width());
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), galley.size().y), Sense::hover());
    ui.painter().galley(rect.min, galley, colours.muted);
    set_accessible_name(&response, Role::Label, text);
}

/// Draws a row with icon, title and description. `is_open`: whether it's unfolded, if it can be. Returns whether it was
/// clicked.
fn show_choice(ui: &mut Ui, choice: &WelcomeChoice, indent: f32, is_open: Option<bool>) -> bool {
    let WelcomeChoice(icon, title, line, _) = choice;
    let colours = ThemeColors::of(ui);
    let (row, _) = ui.allocate_exact_size(vec2(ui.available_width(), CHOICE_ROW_HEIGHT), Sense::hover());
    let rect = row.with_min_x(row.left() + indent);
    let response = ui.interact(rect, ui.scope_id().with(title), Sense::click());
    widgets::paint_hover_fill(ui, &response);
    let at = pos2(rect.left() + space::L, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(22.0), colours.accent);
    let at = pos2(rect.left() + space::XXL + space::XS, rect.top() + 6.0);
    let room = rect.right() - at.x - space::XXL;
    let style = theme::TypeStyle { font: theme::inter_font(InterCut::SemiBold, 14.0), line: 20.0 };
    paint_clipped_text(ui, at, room, title, &style, colours.ink);
    let used = paint_clipped_text(ui, at + vec2(0.0, 20.0), room, line, &theme::small(), colours.muted);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, title);
    if let Some(is_open) = is_open {
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(is_open));
        let caret = if is_open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
        let at = pos2(rect.right() - space::L, rect.center().y);
        ui.painter().text(at, Align2::CENTER_CENTER, caret, theme::icon_font(size::ICON_SIZE), colours.muted);
    }
    if used >= room - 1.0 {
        return response.on_hover_text(*line).clicked(); // it may be cut short
    }
    response.clicked()
}

fn show_step(ui: &mut Ui, step: FirstStep, done: bool) {
    let (title, how) = first_step_text(step);
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), STEP_ROW_HEIGHT), Sense::hover());
    let (icon, colour) = if done { (icons::CHECK_CIRCLE, colours.ok) } else { (icons::CIRCLE, colours.muted) };
    let at = pos2(rect.left() + space::L, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(18.0), colour);
    let at = pos2(rect.left() + space::XXL + space::XS, rect.center().y - 10.0);
    let used = paint_clipped_text(ui, at, rect.right() - at.x, title, &theme::small(), colours.ink);
    let room = rect.right() - at.x - used - space::M;
    paint_clipped_text(ui, at + vec2(used + space::M, 0.0), room, how, &theme::small(), colours.muted);
    let state = if done { "done" } else { "to do" };
    set_accessible_name(&response, Role::Label, &format!("{title}: {state}"));
    response.on_hover_text(how);
}
