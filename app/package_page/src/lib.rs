//! The page of packages: what is installed, what indexes offer, and a package as it's looked at before it's installed.

pub mod package_desk;

use eframe::egui;
use egui::accesskit::Role;
use egui::{Ui, vec2};
use engine::Session;
use engine::commands::CommandId;
use notebook::actions::PageAction;
use package_desk::{FoundPackage, ListedPackage, PackageDesk, PackageReport, ShownPackage};
use packages::PackagePermissions;
use std::sync::Arc;
use store::DocId;
use text::untrusted_text;
use ui::empty_state;
use ui::icons;
use ui::page_parts::{ListRow, banner, note_line, section, show_column, text_field};
use ui::text::{amount, counted, sentence};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{chip_button, set_accessible_name, stable_part, text_button};

/// Maximum number of characters of a file that are shown.
const MAX_SHOWN_CHARS: usize = 20_000;
/// Maximum number of volumes to choose from.
const MAX_LISTED_VOLUMES: usize = 12;
/// Width of the field for names, paths and addresses, in points.
const FIELD_WIDTH: f32 = 420.0;

/// The page of packages.
#[derive(Default)]
pub struct PackagesPage {
    /// What the user looks for.
    words: String,
    /// The installed package that is unfolded.
    unfolded: Option<String>,
    /// The package that the user is asked about before it's removed.
    removing: Option<String>,
    /// The file of the package that is looked at whose content is unfolded.
    open_file: Option<String>,
    /// The volume that gets the notes of the package.
    volume: Option<DocId>,
    was_read: bool,
}

/// Returns what a package may do, in sentences.
fn permission_text(permissions: &PackagePermissions) -> String {
    match permissions.is_empty() {
        true => "It needs no permissions.".to_owned(),
        false => permissions.describe().iter().map(|line| sentence(line) + ".").collect::<Vec<_>>().join(" "),
    }
}

impl PackagesPage {
    /// Draws the page.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, desk: &PackageDesk, actions: &mut Vec<PageAction>) {
        if !self.was_read && desk.job().is_none() {
            self.was_read = true;
            desk.refresh();
        }
        let listed = match desk.list() {
            None => {
                empty_state::show_skeleton(ui, size::NOTE_COLUMN_WIDTH.min(ui.available_width()), 0.0);
                return;
            }
            Some(Err(why)) => {
                if empty_state::show_message(ui, &why, Some("Try again"), "") {
                    desk.refresh();
                }
                return;
            }
            Some(Ok(listed)) => listed,
        };
        show_column(ui, size::NOTE_COLUMN_WIDTH, ("packages", "list of packages"), |ui| {
            stable_part(ui, "outcome", |ui| outcome(ui, desk));
            stable_part(ui, "field", |ui| self.field(ui, desk));
            if let Some(shown) = desk.shown() {
                stable_part(ui, "shown", |ui| self.shown(ui, session, &shown, desk));
            }
            stable_part(ui, "found", |ui| self.found(ui, &listed, desk));
            stable_part(ui, "installed", |ui| self.installed(ui, &listed, desk, actions));
        });
    }

    /// Draws the field in which the user says what to look for.
    fn field(&mut self, ui: &mut Ui, desk: &PackageDesk) {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::S, space::S);
            let hint = "Words, or the path or address of a package";
            let field = text_field(ui, &mut self.words, hint, FIELD_WIDTH);
            let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
            if text_button(ui, "Find packages", true).clicked() || is_entered {
                desk.close_shown();
                desk.find(&self.words);
            }
        });
        ui.add_space(space::S);
    }

    /// Draws what the indexes have.
    fn found(&self, ui: &mut Ui, listed: &[ListedPackage], desk: &PackageDesk) {
        let Some(found) = desk.found() else { return };
        section(ui, &format!("Found ({})", found.packages.len()), &[]);
        for why in &found.failures {
            note_line(ui, icons::WARNING, why);
        }
        if found.packages.is_empty() && found.failures.is_empty() {
            note_line(ui, icons::INFO, "No matching packages");
        }
        for (place, one) in found.packages.iter().enumerate() {
            let FoundPackage { entry, index } = one;
            let manifest = &entry.manifest;
            let installed = listed.iter().find(|listed| listed.package.name == manifest.name);
            let state = match installed {
                Some(listed) if listed.package.hash == entry.hash => "installed  ·  ",
                Some(_) => "another version is installed  ·  ",
                None => "",
            };
            let signed = if entry.signer.is_some() { "signed" } else { "not signed" };
            let index = index.display_text();
            let detail = format!("{state}{}  ·  {}  ·  {signed}, {index}", manifest.version, manifest.description);
            let name = format!("Show {}: {detail}", manifest.name);
            let row = ListRow {
                icon: icons::ARCHIVE,
                title: &manifest.name,
                detail: &detail,
                name: &name,
                is_open: Some(false),
            };
            let is_clicked = ui.push_id(("found", place), |ui| row.show(ui, None, |_| {})).inner;
            if is_clicked {
                match installed {
                    Some(listed) => desk.look_for_update(listed.package.name.clone()),
                    None => desk.look(one),
                }
            }
        }
    }

    /// Draws a package that isn't installed yet, or a new version, with all that it brings.
    fn shown(&mut self, ui: &mut Ui, session: &Session, shown: &Arc<ShownPackage>, desk: &PackageDesk) {
        let ShownPackage { content, source, old, more } = shown.as_ref();
        let manifest = &content.manifest;
        let closed = section(ui, &format!("{} {}", manifest.name, manifest.version), &["Close the package"]).is_some();
        paragraph(ui, &format!("{} ({})", manifest.description, manifest.license));
        note_line(ui, icons::OPEN_OUTSIDE, &format!("From {}", source.display_text()));
        match &content.signer {
            Some(key) => note_line(ui, icons::LOCK, &format!("Signed by {key}")),
            None => note_line(ui, icons::WARNING, "Not signed: nothing shows who has made it."),
        }
        note_line(ui, icons::CODE, &format!("Hash {}", content.hash));
        note_line(ui, icons::PLUG, &permission_text(&manifest.permissions));
        if let Some(old) = old {
            let text = match more.is_empty() {
                true => format!("You have {} with the same permissions.", old.version),
                false => format!("This is more than you approved for {}. {}", old.version, permission_text(more)),
            };
            note_line(ui, if more.is_empty() { icons::INFO } else { icons::WARNING }, &text);
        }
        for (part, file, bytes) in content.parts() {
            let path = format!("{}/{file}", part.folder());
            let is_open = self.open_file.as_deref() == Some(&path);
            let detail = amount(bytes.len() as u64);
            let name = format!("Content of {path}, {detail}");
            let row =
                ListRow { icon: icons::FILE_TEXT, title: &path, detail: &detail, name: &name, is_open: Some(is_open) };
            if row.show(ui, None, |_| {}) {
                self.open_file = (!is_open).then(|| path.clone());
            }
            if is_open {
                file_text(ui, bytes);
            }
        }
        ui.add_space(space::S);
        let needs_volume = content.has_notes() && old.as_ref().is_none_or(|old| old.volume.is_none());
        let volumes: Vec<(DocId, &str)> = session
            .volumes()
            .filter(|volume| volume.root.is_some() && session.read_only_reason(volume.id).is_none())
            .map(|volume| (volume.id, volume.name.as_str()))
            .take(MAX_LISTED_VOLUMES)
            .collect();
        if needs_volume && !volumes.iter().any(|(id, _)| Some(*id) == self.volume) {
            self.volume = match volumes.as_slice() {
                [(only, _)] => Some(*only),
                [] | [_, _, ..] => None,
            };
        }
        if needs_volume && volumes.len() > 1 {
            ui.horizontal_wrapped(|ui| {
                ui.spacing_mut().item_spacing = vec2(space::XS, space::XS);
                let style = theme::small();
                ui.label(
                    egui::RichText::new("Its notes go to").font(style.font.clone()).color(ThemeColors::of(ui).muted),
                );
                for (id, name) in &volumes {
                    let spoken = format!("The notes of the package go to {name}");
                    if chip_button(ui, name, &spoken, self.volume == Some(*id), &style) {
                        self.volume = Some(*id);
                    }
                }
            });
            ui.add_space(space::S);
        }
        if needs_volume && self.volume.is_none() {
            let text = if volumes.is_empty() {
                "Its notes need a folder: open one first."
            } else {
                "Choose where its notes go."
            };
            note_line(ui, icons::INFO, text);
        } else if desk.job().is_none() {
            let label = if old.is_some() { "Update to exactly this" } else { "Install exactly this" };
            if text_button(ui, label, true).clicked() {
                desk.install(shown.clone(), self.volume);
            }
            ui.add_space(space::S);
        }
        if closed {
            desk.close_shown();
        }
    }

    /// Draws what is installed.
    fn installed(&mut self, ui: &mut Ui, listed: &[ListedPackage], desk: &PackageDesk, actions: &mut Vec<PageAction>) {
        section(ui, &format!("Installed ({})", listed.len()), &[]);
        if listed.is_empty() {
            let text = "Packages bring agents, tools, templates, snippets, themes and prompts that others have made. \
                        You see what is in one, and what it may do, before it's installed.";
            paragraph(ui, text);
        }
        for one in listed {
            let package = &one.package;
            let is_open = self.unfolded.as_deref() == Some(&package.name);
            let mut detail = format!("{}  ·  {}", package.version, counted(package.files.len(), "file"));
            if !one.changed.is_empty() {
                detail += &format!("  ·  {} changed by you", one.changed.len());
            }
            if !one.waiting_tools.is_empty() {
                detail += "  ·  tools need approval";
            }
            let name = format!("Package {}: {detail}", package.name);
            let row = ListRow {
                icon: icons::ARCHIVE,
                title: &package.name,
                detail: &detail,
                name: &name,
                is_open: Some(is_open),
            };
            if ui.push_id(("installed", &package.name), |ui| row.show(ui, None, |_| {})).inner {
                (self.unfolded, self.removing) = ((!is_open).then(|| package.name.clone()), None);
            }
            if is_open {
                self.installed_details(ui, one, desk, actions);
            }
        }
    }

    fn installed_details(
        &mut self,
        ui: &mut Ui,
        one: &ListedPackage,
        desk: &PackageDesk,
        actions: &mut Vec<PageAction>,
    ) {
        let package = &one.package;
        let signed = if package.signer.is_some() { "Signed" } else { "Not signed" };
        note_line(ui, icons::OPEN_OUTSIDE, &format!("{signed}, from {}", package.source.display_text()));
        note_line(ui, icons::PLUG, &permission_text(&package.permissions));
        if let Some(volume) = &package.volume {
            note_line(ui, icons::FOLDER, &format!("Its notes are in the volume {}", volume.name));
        }
        for file in &package.files {
            let state = match () {
                () if one.gone.contains(&file.path) => "  ·  gone",
                () if one.changed.contains(&file.path) => "  ·  changed by you",
                () => "",
            };
            note_line(ui, icons::FILE_TEXT, &format!("{}{state}", file.path));
        }
        if self.removing.as_deref() == Some(&package.name) {
            let text = format!(
                "Remove {}? Its files are deleted, except those that you have changed. There’s no undo, but you can \
                 install it again.",
                package.name
            );
            match banner(ui, (icons::WARNING, ThemeColors::of(ui).warn), &text, &["Remove the package", "Keep it"]) {
                Some("Remove the package") => {
                    desk.remove(package.name.clone());
                    self.removing = None;
                }
                Some(_) => self.removing = None,
                None => {}
            }
            return;
        }
        ui.add_space(space::XS);
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
            if text_button(ui, "Check for update", false).clicked() {
                desk.look_for_update(package.name.clone());
            }
            if !one.waiting_tools.is_empty() && text_button(ui, "Approve its tools…", true).clicked() {
                actions.push(PageAction::Run(CommandId::AgentTools));
            }
            if text_button(ui, "Remove…", false).clicked() {
                self.removing = Some(package.name.clone());
            }
        });
        ui.add_space(space::L);
    }
}

/// Draws what is being done, or how the last change ended.
fn outcome(ui: &mut Ui, desk: &PackageDesk) {
    let colours = ThemeColors::of(ui);
    if let Some(job) = desk.job() {
        let buttons: &[&str] = if job.can_cancel { &["Cancel"] } else { &[] };
        if banner(ui, (icons::SPINNER, colours.muted), job.title, buttons).is_some() {
            desk.cancel();
        }
        return;
    }
    let Some(PackageReport { text, is_error }) = desk.report() else { return };
    let mark = if is_error { (icons::WARNING_CIRCLE, colours.bad) } else { (icons::CHECK, colours.ok) };
    if banner(ui, mark, &text, &["Dismiss"]).is_some() {
        desk.dismiss_report();
    }
}

/// Draws text that may take several lines.
fn paragraph(ui: &mut Ui, text: &str) {
    let (style, colours) = (theme::small(), ThemeColors::of(ui));
    let text = untrusted_text::escape_block(text);
    let label = egui::Label::new(egui::RichText::new(text.as_ref()).font(style.font).color(colours.ink)).wrap();
    ui.add(label);
    ui.add_space(space::XS);
}

/// Draws a file of a package as text.
fn file_text(ui: &mut Ui, bytes: &[u8]) {
    let colours = ThemeColors::of(ui);
    // A character has four bytes at most; the rest isn't looked at for each frame.
    let head = String::from_utf8_lossy(bytes.get(..4 * MAX_SHOWN_CHARS).unwrap_or(bytes));
    let text: String = head.chars().take(MAX_SHOWN_CHARS).collect();
    let is_cut = bytes.len() > 4 * MAX_SHOWN_CHARS || text.len() < head.len();
    let frame = egui::Frame::new().fill(colours.sunken).inner_margin(space::M).corner_radius(theme::CARD_CORNER);
    frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        let shown = untrusted_text::escape_block(&text).into_owned();
        let label = egui::Label::new(egui::RichText::new(shown).font(theme::code().font).color(colours.ink)).wrap();
        let response = ui.add(label);
        set_accessible_name(&response, Role::Label, &text);
    });
    if is_cut {
        note_line(ui, icons::INFO, "The file is longer than what is shown here. Look at it with `--contents`.");
    }
    ui.add_space(space::S);
}
