//! Exports: asked for in a dialog, written on a thread of their own, with what is done shown meanwhile.

use super::dialogs::Dialog;
use super::{Overlay, Window};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Area, Id, Order, vec2};
use engine::Session;
use export::error::ExportError;
use export::{self, Done, Form, Progress, What};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;
use text::outline;
use typeset::pdf::Paper;
use ui::controls::{floating, named, text_button};
use ui::tokens::{self, Colours, size, space};

/// What notes shall become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exporting {
    Html,
    Pdf,
    /// A folder of Markdown.
    Folder,
    /// Shows what was written last.
    Open,
}

/// What a command of the table is here.
pub(super) fn exporting(id: &str) -> Option<Exporting> {
    Some(match id {
        "export.html" => Exporting::Html,
        "export.pdf" => Exporting::Pdf,
        "export.folder" => Exporting::Folder,
        "export.open" => Exporting::Open,
        _ => return None,
    })
}

/// An export that is asked for: a dialog's fields.
pub(super) struct Wanted {
    pub(super) kind: Exporting,
    /// What can be chosen, and its names.
    pub(super) choices: Vec<(What, String)>,
    pub(super) chosen: usize,
    pub(super) paper: Paper,
    pub(super) dest: String,
}

impl Wanted {
    /// The title of the dialog.
    pub(super) fn title(&self) -> &'static str {
        match self.kind {
            Exporting::Html => "Export to HTML",
            Exporting::Pdf => "Export to PDF",
            Exporting::Folder | Exporting::Open => "Export to a Markdown folder",
        }
    }

    /// What comes of it, in a sentence.
    pub(super) fn says(&self) -> &'static str {
        let note = matches!(self.choices.get(self.chosen), Some((What::Note(_), _)));
        match (self.kind, note) {
            (Exporting::Html, true) => "One page for a browser that needs nothing beside it.",
            (Exporting::Html, false) => "A folder of pages that link to each other.",
            (Exporting::Pdf, true) => "One document.",
            (Exporting::Pdf, false) => "One document in which each note begins on a page of its own.",
            (_, true) => "A folder with the note and the files that it shows.",
            (_, false) => "A folder with all files, byte for byte.",
        }
    }

    /// Chooses what to export; the new file is called after it.
    pub(super) fn choose(&mut self, chosen: usize) {
        self.chosen = chosen;
        let Some((what, name)) = self.choices.get(chosen) else { return };
        let ending = match (self.kind, what) {
            (Exporting::Pdf, _) => ".pdf",
            (Exporting::Html, What::Note(_)) => ".html",
            _ => "",
        };
        let home = std::env::home_dir().unwrap_or_default();
        let documents = home.join("Documents");
        let folder = if host::fs::copy::is_folder(&documents) { documents } else { home };
        self.dest = folder.join(format!("{name}{ending}")).display().to_string();
    }
}

/// The export that is under way, and what came of the last one.
#[derive(Default)]
pub(super) struct Exports {
    running: Option<Running>,
    last: Option<PathBuf>,
}

struct Running {
    progress: Arc<Progress>,
    answer: Receiver<Result<Done, ExportError>>,
    name: String,
    since: f64,
}

/// Before that, nothing is shown of an export.
const QUIET: f64 = 0.3;

impl Window {
    /// Performs a command about exports.
    pub(super) fn run_exporting(&mut self, ctx: &egui::Context, exporting: Exporting) {
        match (exporting, self.here.note) {
            (Exporting::Open, _) => self.open_export(ctx),
            (kind, Some(note)) => self.ask_export(kind, What::Note(note)),
            (kind, None) => match self.session().and_then(|session| session.volumes().next()).map(|volume| volume.id) {
                Some(volume) => self.ask_export(kind, What::Folder(volume, String::new())),
                None => self.toasts.say("There is nothing to export: open a folder first."),
            },
        }
    }

    /// Asks where to.
    pub(super) fn ask_export(&mut self, kind: Exporting, what: What) {
        let Some(session) = self.session() else { return };
        let mut choices: Vec<(What, String)> =
            name(session, &what).map(|name| (what.clone(), name)).into_iter().collect();
        // What is around it can be chosen instead.
        let volume = match &what {
            What::Note(note) => session.place(*note).map(|(volume, _)| volume),
            What::Folder(volume, below) => (!below.is_empty()).then_some(*volume),
        };
        let whole = volume.map(|volume| What::Folder(volume, String::new()));
        choices.extend(whole.and_then(|whole| name(session, &whole).map(|name| (whole, name))));
        let mut wanted = Wanted { kind, choices, chosen: 0, paper: Paper::A4, dest: String::new() };
        wanted.choose(0);
        self.overlay = Overlay::Dialog(Dialog::Export { wanted, trouble: None });
    }

    /// Begins what was asked for. Gives why not.
    pub(super) fn begin_export(
        &mut self,
        ctx: &egui::Context,
        kind: Exporting,
        what: What,
        paper: Paper,
        dest: &Path,
    ) -> Result<(), String> {
        if self.exports.running.is_some() {
            return Err("Another export is not done yet.".to_owned());
        }
        if host::fs::copy::exists(dest) {
            return Err("There is something of that name already, and nothing is overwritten.".to_owned());
        }
        let Some(driver) = &self.driver else { return Ok(()) };
        let (handle, dest, wake) = (driver.handle(), dest.to_owned(), ctx.clone());
        let name = name(driver.session(), &what).unwrap_or_default();
        let progress = Arc::new(Progress::default());
        let (send, answer) = channel();
        let shared = progress.clone();
        std::thread::spawn(move || {
            let form = match kind {
                Exporting::Html => Form::Html,
                Exporting::Pdf => Form::Pdf(paper),
                Exporting::Folder | Exporting::Open => Form::Files,
            };
            let done = match (&what, form) {
                (What::Note(note), Form::Files) => export::bundle(&handle, *note, &dest, &shared),
                _ => export::export(&handle, &what, form, &dest, &shared),
            };
            let _ = send.send(done);
            wake.request_repaint();
        });
        let since = ctx.input(|input| input.time);
        self.exports.running = Some(Running { progress, answer, name, since });
        Ok(())
    }

    /// Shows how far an export is, and says when it is done.
    pub(super) fn exports(&mut self, ctx: &egui::Context) {
        let Some(running) = &self.exports.running else { return };
        match running.answer.try_recv() {
            Err(TryRecvError::Empty) => self.show_export(ctx),
            Err(TryRecvError::Disconnected) => {
                self.exports.running = None;
                self.toasts.say("The export ended before it was done.");
            }
            Ok(Err(refusal)) => {
                self.exports.running = None;
                self.toasts.say(ui::text::sentence(&refusal.to_string()));
            }
            Ok(Ok(done)) => {
                self.exports.running = None;
                let mut text = format!("Exported to {}", done.dest.display());
                if let Some(first) = done.skipped.first() {
                    text.push_str(&format!("\n{} left out: {}: {}", done.skipped.len(), first.path, first.why));
                }
                if let Some(first) = done.limited.first() {
                    text.push_str(&format!("\n{}: {}", first.path, first.why));
                    if done.limited.len() > 1 {
                        text.push_str(&format!(" ({} such notes)", done.limited.len()));
                    }
                }
                if !done.missing.is_empty() {
                    text.push_str(&format!("\n{}.", ui::text::sentence(&export::lacking(&done.missing))));
                }
                self.exports.last = Some(done.dest);
                self.toasts.offer(text, "Open", "export.open");
            }
        }
    }

    fn show_export(&self, ctx: &egui::Context) {
        let Some(running) = &self.exports.running else { return };
        let after = ctx.input(|input| input.time) - running.since;
        if after < QUIET {
            ctx.request_repaint_after(Duration::from_secs_f64(QUIET - after));
            return;
        }
        ctx.request_repaint_after(Duration::from_millis(100));
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = Colours::dark(dark);
        let corner = vec2(-space::L, -(size::STATUS + space::L));
        Area::new(Id::unique("export")).order(Order::Tooltip).anchor(Align2::RIGHT_BOTTOM, corner).show(ctx, |ui| {
            floating(colours, dark).inner_margin(egui::Margin::symmetric(16, 12)).show(ui, |ui| {
                ui.set_width(300.0);
                let text = format!("Exporting {}", running.name);
                let label = ui.label(egui::RichText::new(&text).font(tokens::small().font).color(colours.ink));
                named(&label, Role::Label, &text);
                ui.add_space(space::S);
                ui.add(egui::ProgressBar::new(running.progress.share()).desired_height(space::XS).fill(colours.accent));
                ui.add_space(space::S);
                if text_button(ui, "Stop export", false).clicked() {
                    running.progress.stop();
                }
            });
        });
    }

    fn open_export(&mut self, ctx: &egui::Context) {
        let Some(last) = &self.exports.last else {
            self.toasts.say("Nothing was exported yet.");
            return;
        };
        let index = last.join("index.html");
        let shown = if host::fs::copy::exists(&index) { &index } else { last };
        let path = shown.display().to_string();
        ctx.open_url(egui::OpenUrl::new_tab(format!("file://{}", outline::escape(&path))));
    }
}

/// What is exported is called so.
fn name(session: &Session, what: &What) -> Option<String> {
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned();
    match what {
        What::Note(note) => {
            let (_, path) = session.place(*note)?;
            Some(super::tree::shown_name(&last(path)).to_owned())
        }
        What::Folder(volume, below) if below.is_empty() => Some(session.volume(*volume)?.name.clone()),
        What::Folder(_, below) => Some(last(below)),
    }
}
