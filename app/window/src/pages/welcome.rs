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
use ui::setting_rows::{segmented_control, show_row, stepper};
use ui::theme::{self, CONTROL_CORNER, InterCut, ThemeColors, size, space};
use ui::widgets::{self, paint_clipped_text, set_accessible_name};

const CHOICE_ROW_HEIGHT: f32 = 52.0;
const STEP_ROW_HEIGHT: f32 = 32.0;

/// A way to begin: icon, title, description and command; `None` closes the page.
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
            if show_choice(ui, choice) {
                match choice.3 {
                    Some(command) => actions.push(PageAction::Run(command)),
                    None => close = true,
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
        show_row(ui, "Theme", "Follow the system, or always use light or dark.", |ui| {
            let all = [ColorTheme::System, ColorTheme::Light, ColorTheme::Dark];
            let chosen = all.iter().position(|theme| *theme == settings.theme);
            if let Some(place) = segmented_control(ui, &["System", "Light", "Dark"], chosen) {
                self.changes.push(SettingsChange::Theme(all[place]));
            }
        });
        show_row(ui, "Text size in notes", "70 to 200 %, in addition to the zoom.", |ui| {
            if let Some(scale) = stepper(ui, "text size", settings.text_scale, 0.7..=2.0) {
                self.changes.push(SettingsChange::Text(scale));
            }
        });
        show_row(ui, "Keyboard shortcuts", "The shortcuts of a program that you know.", |ui| {
            let names: Vec<&str> = KeymapPreset::ALL.iter().map(|preset| preset.name()).collect();
            let chosen = KeymapPreset::ALL.iter().position(|preset| *preset == settings.keymap_preset);
            if let Some(place) = segmented_control(ui, &names, chosen) {
                self.changes.push(SettingsChange::Preset(KeymapPreset::ALL[place]));
            }
        });
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

/// Draws a row with icon, title and description. Returns whether it was clicked.
fn show_choice(ui: &mut Ui, choice: &WelcomeChoice) -> bool {
    let WelcomeChoice(icon, title, line, _) = choice;
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), CHOICE_ROW_HEIGHT), Sense::click());
    widgets::paint_hover_fill(ui, &response);
    let at = pos2(rect.left() + space::L, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(22.0), colours.accent);
    let at = pos2(rect.left() + space::XXL + space::XS, rect.top() + 6.0);
    let room = rect.right() - at.x - space::S;
    let style = theme::TypeStyle { font: theme::inter_font(InterCut::SemiBold, 14.0), line: 20.0 };
    paint_clipped_text(ui, at, room, title, &style, colours.ink);
    let used = paint_clipped_text(ui, at + vec2(0.0, 20.0), room, line, &theme::small(), colours.muted);
    widgets::paint_focus_ring(ui, &response, CONTROL_CORNER);
    set_accessible_name(&response, Role::Button, title);
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
