//! Exports: requested in a dialog, written on a separate thread, with progress shown meanwhile.

use crate::overlays::dialogs::Dialog;
use crate::overlays::export_form::{ExportForm, RunningExport};
use crate::overlays::file_path_field::FilePathField;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use anyhow::bail;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Area, Id, Order, vec2};
use engine::Session;
use engine::commands::CommandId;
use export::error::ExportError;
use export::{self, ExportFormat, ExportProgress, ExportScope};
use host::desktop::PrintOutcome;
use notebook::actions::ExportCommand;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Duration;
use store::DocId;
use text::outline;
use typeset::pdf::PaperSize;
use ui::text::shown_name;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{floating_frame, set_accessible_name, text_button};

/// Delay before the progress of an export is shown, in seconds.
const EXPORT_PROGRESS_DELAY_SECONDS: f64 = 0.3;

impl PaneState {
    /// Performs an export command.
    pub(crate) fn run_exporting(
        &mut self,
        host: &HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        jobs: &mut BackgroundJobs,
        ctx: &egui::Context,
        exporting: ExportCommand,
    ) {
        match (exporting, self.active.note) {
            (ExportCommand::Open, _) => jobs.open_export(notices, ctx),
            (ExportCommand::Print, Some(note)) => jobs.begin_print(host, notices, ctx, note),
            (ExportCommand::Print, None) => notices.toasts.show_message("Open a note to print it."),
            (kind, Some(note)) => overlay.ask_export(host, kind, ExportScope::Note(note)),
            (kind, None) => {
                let first = host.session().volumes().next().map(|volume| volume.id);
                match first {
                    Some(volume) => overlay.ask_export(host, kind, ExportScope::Folder(volume, String::new())),
                    None => notices.toasts.show_message("Nothing to export. Open a folder first."),
                }
            }
        }
    }
}

impl WindowOverlay {
    /// Opens the dialog that asks for the target path.
    pub(crate) fn ask_export(&mut self, host: &HostLink, kind: ExportCommand, what: ExportScope) {
        let session = host.session();
        let mut choices: Vec<(ExportScope, String)> =
            name(session, &what).map(|name| (what.clone(), name)).into_iter().collect();
        // The surrounding volume is offered as an alternative.
        let volume = match &what {
            ExportScope::Note(note) => session.locate_file(*note).map(|(volume, _)| volume),
            ExportScope::Folder(volume, below) => (!below.is_empty()).then_some(*volume),
        };
        let whole = volume.map(|volume| ExportScope::Folder(volume, String::new()));
        choices.extend(whole.and_then(|whole| name(session, &whole).map(|name| (whole, name))));
        let dest = FilePathField::new(String::new(), host.new_file_chooser.clone());
        let mut wanted = ExportForm { kind, choices, chosen: 0, paper: PaperSize::A4, dest };
        wanted.choose_note(0);
        *self = WindowOverlay::Dialog(Dialog::Export { wanted, trouble: None });
    }
}

impl BackgroundJobs {
    /// Starts the export, or returns why it can't start.
    pub(crate) fn begin_export(
        &mut self,
        host: &HostLink,
        ctx: &egui::Context,
        kind: ExportCommand,
        what: ExportScope,
        paper: PaperSize,
        dest: &Path,
    ) -> anyhow::Result<()> {
        if self.exports.running.is_some() {
            bail!("Another export is still running.");
        }
        if host::fs::copy::exists(dest) {
            bail!("A file or folder with that name already exists. Choose another name.");
        }
        let (handle, dest, wake) = (host.driver.handle(), dest.to_owned(), ctx.clone());
        let name = name(host.session(), &what).unwrap_or_default();
        let progress = Arc::new(ExportProgress::default());
        let (send, answer) = channel();
        let shared = progress.clone();
        std::thread::spawn(move || {
            let form = match kind {
                ExportCommand::Html => ExportFormat::Html,
                ExportCommand::Pdf => ExportFormat::Pdf(paper),
                ExportCommand::Notebook => ExportFormat::Notebook,
                ExportCommand::Folder | ExportCommand::Open | ExportCommand::Print => ExportFormat::Files,
            };
            let done = match (&what, form) {
                (ExportScope::Note(note), ExportFormat::Files) => export::export_bundle(&handle, *note, &dest, &shared),
                _ => export::export(&handle, &what, form, &dest, &shared),
            };
            // If the receiver is gone, the result is no longer needed.
            let _ = send.send(done);
            wake.request_repaint();
        });
        let since = ctx.input(|input| input.time);
        self.exports.running = Some(RunningExport { progress, answer, name, prints: false, since });
        Ok(())
    }

    /// Writes the note as PDF to a temporary file for the print dialog.
    fn begin_print(&mut self, host: &HostLink, notices: &mut NoticeState, ctx: &egui::Context, note: DocId) {
        if host.pdf_printer.is_none() {
            notices.toasts.show_message("Nothing can be printed here.");
            return;
        }
        if self.exports.running.is_some() {
            notices.toasts.show_message("Another export is still running.");
            return;
        }
        let what = ExportScope::Note(note);
        let name = name(host.session(), &what).unwrap_or_default();
        let progress = Arc::new(ExportProgress::default());
        let (send, answer) = channel();
        let (handle, wake, shared, title) = (host.driver.handle(), ctx.clone(), progress.clone(), name.clone());
        std::thread::spawn(move || {
            let done = match host::desktop::new_print_file(&title) {
                Ok(dest) => export::export(&handle, &what, ExportFormat::Pdf(PaperSize::A4), &dest, &shared),
                Err(error) => Err(ExportError::Workspace(format!("the page to print can't be written ({error})"))),
            };
            // If the receiver is gone, the result is no longer needed.
            let _ = send.send(done);
            wake.request_repaint();
        });
        let since = ctx.input(|input| input.time);
        self.exports.running = Some(RunningExport { progress, answer, name, prints: true, since });
    }

    /// Shows the system's print dialog for a written PDF, and reports the outcome.
    fn print(&self, host: &HostLink, ctx: &egui::Context, title: String, path: PathBuf) {
        let Some(printer) = host.pdf_printer.clone() else { return };
        let (send, wake) = (self.saved.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let says = match printer(&title, &path) {
                Ok(PrintOutcome::Canceled) => return,
                Ok(PrintOutcome::Sent) => format!("{title} was sent to the printer."),
                Ok(PrintOutcome::Opened) => {
                    format!("This desktop has no print dialog. {title} is open in your PDF program: print it there.")
                }
                Err(why) => format!("{title} was not printed: {why}. The page is {}.", path.display()),
            };
            // If the window is closed, there's nowhere to show the message.
            let _ = send.send(says);
            wake.request_repaint();
        });
    }

    /// Shows the progress of the running export, and reports its result.
    pub(crate) fn poll_export(&mut self, host: &HostLink, notices: &mut NoticeState, ctx: &egui::Context) {
        let Some(running) = &self.exports.running else { return };
        match running.answer.try_recv() {
            Err(TryRecvError::Empty) => self.show_export(ctx),
            Err(TryRecvError::Disconnected) => {
                self.exports.running = None;
                notices.toasts.show_message("The export ended before it was done.");
            }
            Ok(Err(refusal)) => {
                self.exports.running = None;
                notices.toasts.show_message(ui::text::sentence(&refusal.to_string()));
            }
            Ok(Ok(done)) if running.prints => {
                let title = running.name.clone();
                self.exports.running = None;
                self.print(host, ctx, title, done.dest);
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
                    text.push_str(&format!(
                        "\n{}.",
                        ui::text::sentence(&export::missing_glyphs_message(&done.missing))
                    ));
                }
                self.exports.last = Some(done.dest);
                notices.toasts.show_with_action(text, "Open", CommandId::ExportOpen);
            }
        }
    }

    fn show_export(&self, ctx: &egui::Context) {
        let Some(running) = &self.exports.running else { return };
        let after = ctx.input(|input| input.time) - running.since;
        if after < EXPORT_PROGRESS_DELAY_SECONDS {
            ctx.request_repaint_after(Duration::from_secs_f64(EXPORT_PROGRESS_DELAY_SECONDS - after));
            return;
        }
        ctx.request_repaint_after(Duration::from_millis(100));
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ThemeColors::for_dark_mode(dark);
        let corner = vec2(-space::L, -(size::STATUS_BAR_HEIGHT + space::L));
        Area::new(Id::unique("export")).order(Order::Tooltip).anchor(Align2::RIGHT_BOTTOM, corner).show(ctx, |ui| {
            floating_frame(colours, dark).inner_margin(egui::Margin::symmetric(16, 12)).show(ui, |ui| {
                ui.set_width(300.0);
                let doing = if running.prints { "Preparing" } else { "Exporting" };
                let text = format!("{doing} {}", text::untrusted_text::escape_line(&running.name));
                let label = ui.label(egui::RichText::new(&text).font(theme::small().font).color(colours.ink));
                set_accessible_name(&label, Role::Label, &text);
                ui.add_space(space::S);
                ui.add(
                    egui::ProgressBar::new(running.progress.fraction()).desired_height(space::XS).fill(colours.accent),
                );
                ui.add_space(space::S);
                if text_button(ui, "Stop export", false).clicked() {
                    running.progress.cancel();
                }
            });
        });
    }

    fn open_export(&mut self, notices: &mut NoticeState, ctx: &egui::Context) {
        let Some(last) = &self.exports.last else {
            notices.toasts.show_message("Nothing has been exported yet.");
            return;
        };
        let index = last.join("index.html");
        let shown = if host::fs::copy::exists(&index) { &index } else { last };
        let path = shown.display().to_string();
        ctx.open_url(egui::OpenUrl::new_tab(format!("file://{}", outline::percent_encode_path(&path))));
    }
}

/// Returns the display name of an export's scope.
fn name(session: &Session, what: &ExportScope) -> Option<String> {
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned();
    match what {
        ExportScope::Note(note) => {
            let (_, path) = session.locate_file(*note)?;
            Some(shown_name(&last(path)).to_owned())
        }
        ExportScope::Folder(volume, below) if below.is_empty() => Some(session.volume(*volume)?.name.clone()),
        ExportScope::Folder(_, below) => Some(last(below)),
    }
}
