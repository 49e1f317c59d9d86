//! The settings: pages by section, and a search across all of them. Shows the current values and returns changes.

mod other_programs;
mod phone_pairing;
mod shortcuts;

use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Id, Key, Layout, Modal, Modifiers, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::{CommandId, CommandInfo};
use engine::keymap::effective_keymap;
use engine::{Session, Settings};
use host::desktop::FolderChooser;
use host::search::SearchService;
use other_programs::OtherProgramSettings;
pub(crate) use other_programs::server_options;
use program_server::ProgramServer;
pub(crate) use settings_pages::SettingsChange;
use settings_pages::devices::DeviceSettings;
use settings_pages::embeddings::EmbeddingSettings;
use settings_pages::providers::ProviderSettings;
use settings_pages::sections;
use settings_pages::volumes::VolumePage;
use ui::icons;
use ui::key_names::{can_be_set, key_text};
use ui::setting_rows::SettingsRows;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{floating_frame, icon_button, paint_focus_ring, set_accessible_name};

const SETTINGS_WIDTH: f32 = 800.0;
const SETTINGS_HEIGHT: f32 = 560.0;
/// Width of the section list at the left, in points.
const SECTION_LIST_WIDTH: f32 = 208.0;
const SECTION_ROW_HEIGHT: f32 = 40.0;

/// A section of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingsSection {
    Appearance,
    Window,
    Editor,
    Notes,
    Volumes,
    Spelling,
    Search,
    Agents,
    Devices,
    OtherPrograms,
    Keys,
}

impl SettingsSection {
    const ALL: [SettingsSection; 11] = [
        SettingsSection::Appearance,
        SettingsSection::Window,
        SettingsSection::Editor,
        SettingsSection::Notes,
        SettingsSection::Volumes,
        SettingsSection::Spelling,
        SettingsSection::Search,
        SettingsSection::Agents,
        SettingsSection::Devices,
        SettingsSection::OtherPrograms,
        SettingsSection::Keys,
    ];

    fn name(self) -> &'static str {
        match self {
            SettingsSection::Appearance => "Appearance",
            SettingsSection::Window => "Window and tree",
            SettingsSection::Editor => "Editor",
            SettingsSection::Notes => "Notes and files",
            SettingsSection::Volumes => "Volumes",
            SettingsSection::Spelling => "Spelling",
            SettingsSection::Search => "Search",
            SettingsSection::Agents => "Agents and models",
            SettingsSection::Devices => "Devices",
            SettingsSection::OtherPrograms => "Other programs",
            SettingsSection::Keys => "Keyboard shortcuts",
        }
    }
}

/// A command whose new shortcut is being recorded.
struct ShortcutCapture {
    pub(crate) id: CommandId,
    /// The pressed key that belongs to another command, and that command.
    taken: Option<(String, &'static CommandInfo)>,
    /// Why the pressed key can't be used.
    trouble: Option<&'static str>,
}

pub(crate) struct SettingsPage {
    section: SettingsSection,
    /// The search text for all sections.
    wanted: String,
    query: String,
    asking: Option<ShortcutCapture>,
    meaning: EmbeddingSettings,
    models: ProviderSettings,
    volumes: VolumePage,
    devices: DeviceSettings,
    programs: OtherProgramSettings,
    /// Commands to send to the session.
    pub(crate) wishes: Vec<engine::Command>,
}

impl SettingsPage {
    /// Creates the page; `folder` is the workspace's folder.
    pub(crate) fn new(
        section: SettingsSection,
        (search, server, chooser): (SearchService, ProgramServer, Option<FolderChooser>),
        folder: std::path::PathBuf,
    ) -> SettingsPage {
        let (meaning, models) = (EmbeddingSettings::new(search, chooser), ProviderSettings::new(folder.clone()));
        let (wanted, query) = (String::new(), String::new());
        SettingsPage {
            section,
            wanted,
            query,
            asking: None,
            meaning,
            models,
            volumes: VolumePage::new(folder),
            devices: DeviceSettings::default(),
            programs: OtherProgramSettings::new(server),
            wishes: Vec::new(),
        }
    }

    /// Returns whether the next key press is recorded as a shortcut.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Records a key press as the shortcut of the waiting command.
    pub(crate) fn key(&mut self, key: Key, modifiers: Modifiers, settings: &Settings) -> Option<SettingsChange> {
        let asking = self.asking.as_mut()?;
        if key == Key::Escape {
            self.asking = None;
            return None;
        }
        if !can_be_set(key, modifiers) {
            (asking.taken, asking.trouble) = (None, Some("A key needs Ctrl or Alt, or is one of F1 to F12."));
            return None;
        }
        let spelled = key_text(key, modifiers);
        let map = effective_keymap(settings);
        let other = map.iter().find(|(id, keys)| **id != asking.id && keys.contains(&spelled));
        match other.map(|(id, _)| id.info()) {
            Some(other) => {
                (asking.taken, asking.trouble) = (Some((spelled, other)), None);
                None
            }
            None => self.set(spelled),
        }
    }

    fn set(&mut self, key: String) -> Option<SettingsChange> {
        let asking = self.asking.take()?;
        Some(SettingsChange::Keys(asking.id, Some(vec![key])))
    }

    /// Draws the page. Returns the changes, and `true` if it must close.
    pub(crate) fn show(&mut self, ctx: &egui::Context, session: &Session, dark: bool) -> (Vec<SettingsChange>, bool) {
        let settings = session.settings();
        let colours = ThemeColors::for_dark_mode(dark);
        let screen = ctx.content_rect();
        let wanted = vec2(
            SETTINGS_WIDTH.min(screen.width() - 2.0 * space::L),
            SETTINGS_HEIGHT.min(screen.height() - 2.0 * space::XXXL),
        );
        let id = Id::unique("settings");
        let area = Modal::default_area(id).anchor(Align2::CENTER_CENTER, vec2(0.0, 0.0));
        let (mut changes, mut close) = (Vec::new(), false);
        let response = Modal::new(id)
            .area(area)
            .backdrop_color(egui::Color32::from_black_alpha(if dark { 90 } else { 30 }))
            .frame(floating_frame(colours, dark))
            .show(ctx, |ui| {
                let (rect, _) = ui.allocate_exact_size(wanted, Sense::hover());
                ui.painter().vline(
                    rect.left() + SECTION_LIST_WIDTH,
                    rect.y_range().shrink(1.0),
                    Stroke::new(1.0, colours.line),
                );
                let list = Rect::from_min_max(rect.min, pos2(rect.left() + SECTION_LIST_WIDTH, rect.bottom()));
                self.sections(&mut part(ui, "sections", list.shrink2(vec2(space::S, space::L))));
                let body = Rect::from_min_max(pos2(rect.left() + SECTION_LIST_WIDTH, rect.top()), rect.max);
                let mut ui = part(ui, "body", body.shrink2(vec2(space::XL, space::L)));
                let wanted = self.wanted.trim().to_lowercase();
                let title = if wanted.is_empty() { self.section.name() } else { "Found" };
                close = head(&mut ui, title);
                if wanted.is_empty() && self.section == SettingsSection::Keys {
                    self.keys(&mut ui, settings, &mut changes);
                    return;
                }
                egui::ScrollArea::vertical().id_salt(title).auto_shrink(false).show(&mut ui, |ui| {
                    ui.spacing_mut().item_spacing.y = 0.0;
                    // The scroll bar overlaps the right edge, so buttons keep clear of it.
                    ui.set_max_width(ui.available_width() - space::M);
                    for section in SettingsSection::ALL {
                        if !wanted.is_empty() || section == self.section {
                            self.section(ui, section, session, &wanted, &mut changes);
                        }
                    }
                    ui.add_space(space::L);
                });
            });
        (changes, close || response.backdrop_response.clicked())
    }

    /// Draws the settings of a section, or those that match the search.
    fn section(
        &mut self,
        ui: &mut Ui,
        section: SettingsSection,
        session: &Session,
        wanted: &str,
        changes: &mut Vec<SettingsChange>,
    ) {
        let settings = session.settings();
        let mut lines = SettingsRows { ui, wanted, shown: 0 };
        match section {
            SettingsSection::Appearance => sections::show_appearance(&mut lines, settings, changes),
            SettingsSection::Window => sections::show_window(&mut lines, settings, changes),
            SettingsSection::Editor => sections::show_editor(&mut lines, settings, changes),
            SettingsSection::Notes => {
                sections::show_notes(&mut lines, settings, changes);
                self.models.show_saved_variables(&mut lines, session.agents(), &mut self.wishes);
            }
            SettingsSection::Volumes => self.volumes.show(&mut lines, session, &mut self.wishes),
            SettingsSection::Spelling => sections::show_spelling(&mut lines, settings, changes),
            SettingsSection::Search => self.meaning.show(&mut lines, settings, changes),
            SettingsSection::Agents => self.models.show(&mut lines, session.agents(), &mut self.wishes),
            SettingsSection::Devices => self.devices.show(&mut lines, settings, changes),
            SettingsSection::OtherPrograms => self.programs.show(&mut lines, settings, changes),
            SettingsSection::Keys => self.found_keys(ui, settings, wanted, changes),
        }
    }

    fn sections(&mut self, ui: &mut Ui) {
        let colours = ThemeColors::of(ui);
        ui.spacing_mut().item_spacing.y = space::XS;
        let hint = egui::RichText::new("Find a setting").font(theme::small().font).color(colours.muted);
        let field = egui::TextEdit::singleline(&mut self.wanted)
            .id_salt("find a setting")
            .font(theme::small().font)
            .hint_text(hint)
            .margin(egui::Margin::symmetric(8, 6))
            .desired_width(f32::INFINITY);
        if ui.add(field).accessible_name("Find a setting").changed() {
            self.asking = None;
        }
        ui.add_space(space::S);
        egui::ScrollArea::vertical().id_salt("list of sections").show(ui, |ui| {
            for section in SettingsSection::ALL {
                let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 32.0), Sense::click());
                let chosen = section == self.section && self.wanted.trim().is_empty();
                response.widget_info(|| egui::WidgetInfo::selected(Role::Tab, true, chosen, section.name()));
                if chosen {
                    ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                } else if response.hovered() {
                    ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.raised));
                }
                paint_focus_ring(ui, &response, CONTROL_CORNER);
                let at = rect.left_center() + vec2(space::S, 0.0);
                ui.painter().text(
                    at,
                    Align2::LEFT_CENTER,
                    section.name(),
                    theme::inter_font(theme::InterCut::Regular, 13.0),
                    colours.ink,
                );
                if response.clicked() {
                    (self.section, self.asking) = (section, None);
                    self.wanted.clear();
                }
            }
        });
    }
}

fn part(ui: &mut Ui, name: &str, rect: Rect) -> Ui {
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(name).layout(Layout::top_down(Align::Min)));
    child.set_clip_rect(rect.expand(space::S).intersect(ui.clip_rect()));
    child
}

/// Draws the section's name and the close button. Returns whether that was clicked.
fn head(ui: &mut Ui, name: &str) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 32.0), Sense::hover());
    set_accessible_name(&response, Role::Heading, name);
    let font = theme::inter_font(theme::InterCut::SemiBold, 18.0);
    ui.painter().text(rect.left_center(), Align2::LEFT_CENTER, name, font, ThemeColors::of(ui).ink);
    let corner = Rect::from_min_max(pos2(rect.right() - size::MIN_CLICK_HEIGHT, rect.top()), rect.max);
    let mut child = ui.new_child(UiBuilder::new().max_rect(corner).id_salt("close"));
    let closed = icon_button(&mut child, icons::X, "Close the settings", None).clicked();
    ui.add_space(space::S);
    closed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every field of the settings has a control. Add new fields here and on a page.
    #[test]
    #[rustfmt::skip]
    fn every_setting_has_a_control() {
        let Settings {
            theme: _, custom_theme: _, scale: _, contrast: _, reduce_motion: _, text_scale: _, // Appearance
            left_panel_width: _, left_open: _, right_panel_width: _, right_open: _, window: _, last_note: _, // Window
            notifications: _, window_place: _, positions: _, // The last two are where windows and notes were left
            recent: _, starred: _, tree_order: _,
            folded: _, unfolded: _, recent_open: _, panes: _, pane: _,
            enter: _, line_numbers: _, // Editor
            daily_folder: _, daily_format: _, daily_template: _, templates: _, attachment_folder: _, // Notes
            default_kernel: _,
            spelling: _, spelling_dictionary: _, // Spelling
            script_runs: _, // Beside each script
            keymap_preset: _, keys: _, // Keys
            kernels: _, kernel_prints: _, grants: _, // Chosen for the open note, by commands of their own
            pinned_traces: _, // The page of traces
            trusted_volumes: _, // The agent panel, and a command
            embedder: _, onnx_runtime: _, reranker: _, meaning_paused: _, unsearched: _, searches: _, // Search
            recent_folders: _, // The dialog that opens one
            named_fonts: _, // What was said once
            show_welcome: _, show_first_steps: _, first_steps: _, // The welcome page
            serves_programs: _, server_address: _, serves_devices: _, // Other programs
            carries_out_runs_of: _, // Devices
        } = Settings::default();
    }
}
