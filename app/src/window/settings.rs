//! The settings: the look, and the keys of every command. Shows what is set, and says what shall be set instead.

use super::commands;
use super::controls::{clipped, floating, icon_button, named, ring, text_button};
use super::icons;
use super::palette::keys as caps;
use crate::tokens::{self, CORNER, Colours, size, space};
use eframe::egui;
use egui::accesskit::{Role, Toggled};
use egui::{Align, Align2, Id, Key, Layout, Modal, Modifiers, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::{CommandInfo, command};
use engine::keymap::{Preset, keymap};
use engine::{Settings, Theme};

const WIDTH: f32 = 720.0;
const HEIGHT: f32 = 560.0;
/// The list of sections at the left.
const LIST: f32 = 168.0;
const LINE: f32 = 40.0;

/// A part of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Look,
    Keys,
}

impl Section {
    const ALL: [Section; 2] = [Section::Look, Section::Keys];

    fn name(self) -> &'static str {
        match self {
            Section::Look => "Look",
            Section::Keys => "Keys and commands",
        }
    }
}

/// What shall be set.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Theme(Theme),
    Contrast(bool),
    Calm(bool),
    Scale(f32),
    Text(f32),
    Preset(Preset),
    /// The keys of a command; `None`: those of the preset again.
    Keys(&'static str, Option<Vec<String>>),
    /// All keys are those of the preset again.
    NoKeys,
}

impl Change {
    /// Makes it so.
    pub(super) fn make(self, settings: &mut Settings) {
        match self {
            Change::Theme(theme) => settings.theme = theme,
            Change::Contrast(contrast) => settings.contrast = contrast,
            Change::Calm(calm) => settings.calm = calm,
            Change::Scale(scale) => settings.scale = scale,
            Change::Text(text) => settings.text = text,
            Change::Preset(preset) => settings.preset = preset,
            Change::Keys(id, Some(keys)) => _ = settings.keys.insert(id.to_owned(), keys),
            Change::Keys(id, None) => _ = settings.keys.remove(id),
            Change::NoKeys => settings.keys.clear(),
        }
    }
}

/// A command that waits for its key.
struct Asking {
    id: &'static str,
    /// The key that was pressed although another command has it, and which.
    taken: Option<(String, &'static CommandInfo)>,
    /// Why the key that was pressed cannot be taken.
    trouble: Option<&'static str>,
}

/// The open settings.
pub(super) struct Page {
    section: Section,
    query: String,
    asking: Option<Asking>,
}

impl Page {
    pub(super) fn new(section: Section) -> Page {
        Page { section, query: String::new(), asking: None }
    }

    /// Whether the next key is meant to become a command's.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Takes a key for the command that waits for one.
    pub(super) fn key(&mut self, key: Key, modifiers: Modifiers, settings: &Settings) -> Option<Change> {
        let asking = self.asking.as_mut()?;
        if key == Key::Escape {
            self.asking = None;
            return None;
        }
        if !commands::can_be_set(key, modifiers) {
            (asking.taken, asking.trouble) = (None, Some("A key needs Ctrl or Alt, or is one of F1 to F12."));
            return None;
        }
        let spelled = commands::spell(key, modifiers);
        let map = keymap(settings);
        let other = map.iter().find(|(id, keys)| **id != asking.id && keys.contains(&spelled));
        match other.and_then(|(id, _)| command(id)) {
            Some(other) => {
                (asking.taken, asking.trouble) = (Some((spelled, other)), None);
                None
            }
            None => self.set(spelled),
        }
    }

    fn set(&mut self, key: String) -> Option<Change> {
        let asking = self.asking.take()?;
        Some(Change::Keys(asking.id, Some(vec![key])))
    }

    /// Draws it. Gives what shall be set; `true`: it shall close.
    pub(super) fn show(&mut self, ctx: &egui::Context, settings: &Settings, dark: bool) -> (Vec<Change>, bool) {
        let colours = Colours::dark(dark);
        let screen = ctx.content_rect();
        let wanted = vec2(WIDTH.min(screen.width() - 2.0 * space::L), HEIGHT.min(screen.height() - 2.0 * space::XXXL));
        let id = Id::unique("settings");
        let area = Modal::default_area(id).anchor(Align2::CENTER_CENTER, vec2(0.0, 0.0));
        let (mut changes, mut close) = (Vec::new(), false);
        let response = Modal::new(id)
            .area(area)
            .backdrop_color(egui::Color32::from_black_alpha(if dark { 90 } else { 30 }))
            .frame(floating(colours, dark))
            .show(ctx, |ui| {
                let (rect, _) = ui.allocate_exact_size(wanted, Sense::hover());
                ui.painter().vline(rect.left() + LIST, rect.y_range().shrink(1.0), Stroke::new(1.0, colours.line));
                let list = Rect::from_min_max(rect.min, pos2(rect.left() + LIST, rect.bottom()));
                self.sections(&mut part(ui, "sections", list.shrink2(vec2(space::S, space::L))));
                let body = Rect::from_min_max(pos2(rect.left() + LIST, rect.top()), rect.max);
                let mut ui = part(ui, "body", body.shrink2(vec2(space::XL, space::L)));
                close = head(&mut ui, self.section.name());
                match self.section {
                    Section::Look => look(&mut ui, settings, &mut changes),
                    Section::Keys => self.keys(&mut ui, settings, &mut changes),
                }
            });
        (changes, close || response.backdrop_response.clicked())
    }

    fn sections(&mut self, ui: &mut Ui) {
        let colours = Colours::of(ui);
        ui.spacing_mut().item_spacing.y = space::XS;
        for section in Section::ALL {
            let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 32.0), Sense::click());
            let chosen = section == self.section;
            response.widget_info(|| egui::WidgetInfo::selected(Role::Tab, true, chosen, section.name()));
            if chosen {
                ui.painter().rect_filled(rect, CORNER, colours.accent_ground);
            } else if response.hovered() {
                ui.painter().rect_filled(rect, CORNER, colours.hover(colours.raised));
            }
            ring(ui, &response, CORNER);
            let at = rect.left_center() + vec2(space::S, 0.0);
            ui.painter().text(
                at,
                Align2::LEFT_CENTER,
                section.name(),
                tokens::inter(tokens::Cut::Regular, 13.0),
                colours.ink,
            );
            if response.clicked() {
                (self.section, self.asking) = (section, None);
            }
        }
    }

    fn keys(&mut self, ui: &mut Ui, settings: &Settings, changes: &mut Vec<Change>) {
        line(ui, "Keys as in", "What you set yourself goes first.", |ui| {
            let names: Vec<&str> = Preset::ALL.iter().map(|preset| preset.name()).collect();
            let chosen = Preset::ALL.iter().position(|preset| *preset == settings.preset);
            if let Some(place) = segments(ui, &names, chosen) {
                changes.push(Change::Preset(Preset::ALL[place]));
            }
        });
        ui.add_space(space::S);
        ui.horizontal(|ui| {
            let all = !settings.keys.is_empty();
            let room = ui.available_width() - if all { 132.0 } else { 0.0 };
            let hint = egui::RichText::new("Find a command or a key").color(Colours::of(ui).muted);
            let field = egui::TextEdit::singleline(&mut self.query).hint_text(hint).desired_width(room - space::L);
            ui.add(field.margin(egui::Margin::symmetric(8, 6))).accessible_name("Find a command or a key");
            if all && text_button(ui, "Reset all keys", false).clicked() {
                changes.push(Change::NoKeys);
            }
        });
        ui.add_space(space::S);
        let map = keymap(settings);
        let wanted = self.query.to_lowercase();
        let found = |command: &&CommandInfo| {
            let keys = map.get(command.id).map(|keys| keys.join(" ").to_lowercase()).unwrap_or_default();
            command.title.to_lowercase().contains(&wanted) || keys.contains(&wanted)
        };
        egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            for info in commands::offered().filter(found) {
                let keys = map.get(info.id).map_or(&[][..], Vec::as_slice);
                self.command(ui, info, keys, settings.keys.contains_key(info.id), changes);
            }
        });
    }

    /// A command, its keys, and what changes them.
    fn command(
        &mut self,
        ui: &mut Ui,
        info: &'static CommandInfo,
        keys: &[String],
        own: bool,
        changes: &mut Vec<Change>,
    ) {
        let colours = Colours::of(ui);
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), LINE), Sense::hover());
        named(&response, Role::Label, &format!("{}: {}", info.title, keys.join(", ")));
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
        let asks = self.asking.as_ref().is_some_and(|asking| asking.id == info.id);
        let mut ui =
            ui.new_child(UiBuilder::new().max_rect(rect).id_salt(info.id).layout(Layout::right_to_left(Align::Center)));
        ui.spacing_mut().item_spacing.x = space::XS;
        ui.add_space(space::S);
        if asks {
            let says = match self.asking.as_ref().and_then(|asking| asking.taken.clone()) {
                Some((key, other)) => {
                    if text_button(&mut ui, "Take it", true).clicked() {
                        changes.extend(self.set(key.clone()));
                    }
                    format!("{key} means “{}” now.", other.title)
                }
                None => {
                    let trouble = self.asking.as_ref().and_then(|asking| asking.trouble);
                    trouble.unwrap_or("Press the new key…").to_owned()
                }
            };
            if text_button(&mut ui, "Cancel", false).clicked() {
                self.asking = None;
            }
            let right = ui.cursor().right();
            let style = tokens::small();
            let galley = ui.painter().layout_no_wrap(says.clone(), style.font, colours.accent);
            let at = pos2(right - galley.size().x - space::S, rect.center().y - galley.size().y / 2.0);
            ui.painter().galley(at, galley, colours.accent);
            let heard = ui.interact(rect, ui.scope_id().with("asks"), Sense::hover());
            named(&heard, Role::Label, &says);
            clipped(
                &ui,
                rect.left_center() - vec2(0.0, 10.0),
                at.x - rect.left() - space::M,
                info.title,
                &tokens::Type { font: tokens::inter(tokens::Cut::Regular, 13.0), line: 20.0 },
                colours.ink,
            );
            return;
        }
        if icon_button(&mut ui, icons::PENCIL, &format!("Change the key of {}", info.title), None).clicked() {
            self.asking = Some(Asking { id: info.id, taken: None, trouble: None });
        }
        if own && icon_button(&mut ui, icons::UNDO, &format!("Reset the key of {}", info.title), None).clicked() {
            changes.push(Change::Keys(info.id, None));
        }
        let mut right = ui.cursor().right() - space::S;
        for key in keys.iter().rev() {
            right -= caps(&ui, pos2(right, rect.center().y), key) + space::M;
        }
        let style = tokens::Type { font: tokens::inter(tokens::Cut::Regular, 13.0), line: 20.0 };
        let at = rect.left_center() - vec2(0.0, 10.0);
        clipped(&ui, at, right - rect.left() - space::M, info.title, &style, colours.ink);
        response.on_hover_text(info.help);
    }
}

fn look(ui: &mut Ui, settings: &Settings, changes: &mut Vec<Change>) {
    line(ui, "Colours", "As the system has it, or always the same.", |ui| {
        let all = [Theme::System, Theme::Light, Theme::Dark];
        let chosen = all.iter().position(|theme| *theme == settings.theme);
        if let Some(place) = segments(ui, &["System", "Light", "Dark"], chosen) {
            changes.push(Change::Theme(all[place]));
        }
    });
    line(ui, "More contrast", "Text and lines stand out more from their ground.", |ui| {
        if switch(ui, "More contrast", settings.contrast) {
            changes.push(Change::Contrast(!settings.contrast));
        }
    });
    line(ui, "Less motion", "Panels and overlays come and go at once.", |ui| {
        if switch(ui, "Less motion", settings.calm) {
            changes.push(Change::Calm(!settings.calm));
        }
    });
    line(ui, "Size of everything", "From 50 to 300 %.", |ui| {
        if let Some(scale) = steps(ui, "everything", settings.scale, 0.5..=3.0) {
            changes.push(Change::Scale(scale));
        }
    });
    line(ui, "Size of a note's text", "From 70 to 200 %, beside the size of everything.", |ui| {
        if let Some(text) = steps(ui, "text", settings.text, 0.7..=2.0) {
            changes.push(Change::Text(text));
        }
    });
}

fn part(ui: &mut Ui, name: &str, rect: Rect) -> Ui {
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(name).layout(Layout::top_down(Align::Min)));
    child.set_clip_rect(rect.expand(space::S).intersect(ui.clip_rect()));
    child
}

/// The name of the section, and what closes the settings; whether it was clicked.
fn head(ui: &mut Ui, name: &str) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 32.0), Sense::hover());
    named(&response, Role::Heading, name);
    let font = tokens::inter(tokens::Cut::SemiBold, 18.0);
    ui.painter().text(rect.left_center(), Align2::LEFT_CENTER, name, font, Colours::of(ui).ink);
    let corner = Rect::from_min_max(pos2(rect.right() - size::HIT, rect.top()), rect.max);
    let mut child = ui.new_child(UiBuilder::new().max_rect(corner).id_salt("close"));
    let closed = icon_button(&mut child, icons::X, "Close the settings", None).clicked();
    ui.add_space(space::S);
    closed
}

/// A setting: its name and what it means at the left, what sets it at the right.
fn line(ui: &mut Ui, name: &str, about: &str, control: impl FnOnce(&mut Ui)) {
    let colours = Colours::of(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 56.0), Sense::hover());
    let small = tokens::Type { font: tokens::inter(tokens::Cut::Regular, 13.0), line: 20.0 };
    let mut child =
        ui.new_child(UiBuilder::new().max_rect(rect).id_salt(name).layout(Layout::right_to_left(Align::Center)));
    control(&mut child);
    let room = child.min_rect().left() - rect.left() - space::L;
    clipped(ui, pos2(rect.left(), rect.top() + 8.0), room, name, &small, colours.ink);
    clipped(ui, pos2(rect.left(), rect.top() + 28.0), room, about, &tokens::caption(), colours.muted);
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
}

/// One of a few; gives the one that was clicked.
fn segments(ui: &mut Ui, names: &[&str], chosen: Option<usize>) -> Option<usize> {
    let mut clicked = None;
    ui.spacing_mut().item_spacing.x = space::XS;
    for (place, name) in names.iter().enumerate().rev() {
        let (colours, is) = (Colours::of(ui), Some(place) == chosen);
        let galley = ui.painter().layout_no_wrap((*name).to_owned(), tokens::caption().font, colours.ink);
        let (rect, response) =
            ui.allocate_exact_size(vec2(galley.size().x + 2.0 * space::M, size::HIT), Sense::click());
        response.widget_info(|| egui::WidgetInfo::selected(Role::RadioButton, true, is, *name));
        let ground = match (is, response.hovered()) {
            (true, _) => colours.accent_ground,
            (false, true) => colours.hover(colours.sunken),
            (false, false) => colours.sunken,
        };
        ui.painter().rect_filled(rect, CORNER, ground);
        let at = Align2::CENTER_CENTER.align_size_within_rect(galley.size(), rect).min;
        let colour = if is { colours.accent } else { colours.ink };
        ui.painter().galley_with_override_text_color(at, galley, colour);
        ring(ui, &response, CORNER);
        if response.clicked() {
            clicked = Some(place);
        }
    }
    clicked
}

/// On or off; whether it was clicked.
fn switch(ui: &mut Ui, name: &str, on: bool) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(40.0, size::HIT), Sense::click());
    response.widget_info(|| egui::WidgetInfo::selected(Role::Switch, true, on, name));
    let toggled = if on { Toggled::True } else { Toggled::False };
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_toggled(toggled));
    let colours = Colours::of(ui);
    let body = Rect::from_center_size(rect.center(), vec2(36.0, 20.0));
    ui.painter().rect_filled(body, 10.0, if on { colours.accent } else { colours.muted.gamma_multiply(0.6) });
    let x = if on { body.right() - 10.0 } else { body.left() + 10.0 };
    ui.painter().circle_filled(pos2(x, body.center().y), 7.0, colours.raised);
    ring(ui, &response, CORNER);
    response.clicked()
}

/// A size in steps of a tenth.
fn steps(ui: &mut Ui, name: &str, value: f32, range: std::ops::RangeInclusive<f32>) -> Option<f32> {
    let mut wanted = None;
    let by = |by: f32| (((value * 10.0).round() / 10.0) + by).clamp(*range.start(), *range.end());
    if icon_button(ui, icons::PLUS, &format!("Larger: {name}"), None).clicked() {
        wanted = Some(by(0.1));
    }
    let text = format!("{:.0} %", value * 100.0);
    let colours = Colours::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(52.0, size::HIT), Sense::hover());
    named(&response, Role::Label, &format!("Size of {name}: {text}"));
    ui.painter().text(rect.center(), Align2::CENTER_CENTER, text, tokens::tabular(13.0), colours.ink);
    if icon_button(ui, icons::MINUS, &format!("Smaller: {name}"), None).clicked() {
        wanted = Some(by(-0.1));
    }
    wanted
}
