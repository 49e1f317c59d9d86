//! The dialog that opens a folder as a volume: the system's chooser, recent folders, and a path with completion.
//!
//! File system queries and the chooser run on their own threads. The dialog shows their results when they arrive.

use crate::overlays::dialogs::DialogDecision;
use eframe::egui;
use egui::text::{CCursor, CCursorRange};
use egui::{Id, RichText, Ui};
use host::desktop::{self, FolderChooser, PathChoice, TypedPath};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use text::untrusted_text;
use ui::dialog_parts::{at_right, field, field_with_button, folder_row, head, words};
use ui::theme::{self, ThemeColors, space};
use ui::widgets::text_button;

/// The dialog's fields, and what is known about them.
pub(crate) struct OpenFolderForm {
    pub(crate) path: String,
    problem: Option<FolderProblem>,
    /// Recently opened folders, newest first.
    recent: Vec<PathBuf>,
    /// Completions of the typed path, and the path they are for.
    completions: Vec<String>,
    completed: Option<String>,
    is_completing: bool,
    chooser: Option<FolderChooser>,
    is_choosing: bool,
    answers: Receiver<FolderAnswer>,
    tell: Sender<FolderAnswer>,
}

/// Why the folder wasn't opened.
enum FolderProblem {
    Refused(String),
    Missing(PathBuf),
    IsFile(PathBuf),
}

/// A result from a thread.
enum FolderAnswer {
    Chosen(PathChoice),
    Completed(String, Vec<String>),
    Inspected(TypedPath),
    Created(anyhow::Result<PathBuf>),
}

impl OpenFolderForm {
    pub(crate) fn new(recent: Vec<PathBuf>, chooser: Option<FolderChooser>) -> OpenFolderForm {
        let (tell, answers) = channel();
        OpenFolderForm {
            path: String::new(),
            problem: None,
            recent,
            completions: Vec::new(),
            completed: None,
            is_completing: false,
            chooser,
            is_choosing: false,
            answers,
            tell,
        }
    }

    /// Shows why the folder wasn't opened.
    pub(crate) fn show_error(&mut self, why: String) {
        self.problem = Some(FolderProblem::Refused(why));
    }

    /// Checks the typed path, and opens it if it's a folder.
    pub(crate) fn submit(&mut self, ctx: &egui::Context) {
        let typed = self.path.trim().trim_matches(['"', '\'']);
        match ui::text::absolute(typed) {
            Some(path) => self.inspect(ctx, path),
            None if typed.is_empty() => {}
            None => self.show_error("Give the whole path, beginning with / or ~.".to_owned()),
        }
    }

    fn inspect(&self, ctx: &egui::Context, path: PathBuf) {
        self.ask(ctx, move || FolderAnswer::Inspected(desktop::inspect_path(&path)));
    }

    fn ask(&self, ctx: &egui::Context, find_out: impl FnOnce() -> FolderAnswer + Send + 'static) {
        let (tell, wake) = (self.tell.clone(), ctx.clone());
        std::thread::spawn(move || {
            let _ = tell.send(find_out()); // the dialog may be closed
            wake.request_repaint();
        });
    }

    /// Processes results from threads. Returns the folder to open.
    fn take_answers(&mut self, ctx: &egui::Context) -> Option<PathBuf> {
        while let Ok(answer) = self.answers.try_recv() {
            match answer {
                FolderAnswer::Completed(path, found) => {
                    self.is_completing = false;
                    // A folder that is already typed in full needs no completion.
                    let is_typed = |one: &String| *one == path;
                    self.completions = if found.iter().all(is_typed) { Vec::new() } else { found };
                    self.completed = Some(path);
                }
                FolderAnswer::Chosen(PathChoice::Chosen(folder)) => {
                    self.is_choosing = false;
                    self.path = folder.display().to_string();
                    self.inspect(ctx, folder);
                }
                FolderAnswer::Chosen(PathChoice::Canceled) => self.is_choosing = false,
                FolderAnswer::Chosen(PathChoice::Unavailable) => (self.is_choosing, self.chooser) = (false, None),
                FolderAnswer::Inspected(TypedPath::Folder(folder)) | FolderAnswer::Created(Ok(folder)) => {
                    return Some(folder);
                }
                FolderAnswer::Inspected(TypedPath::Missing(path)) => self.problem = Some(FolderProblem::Missing(path)),
                FolderAnswer::Inspected(TypedPath::File(path)) => self.problem = Some(FolderProblem::IsFile(path)),
                FolderAnswer::Inspected(TypedPath::Unreadable(path, why)) => {
                    self.show_error(format!("Can't open {}: {why}.", path.display()));
                }
                FolderAnswer::Created(Err(why)) => self.show_error(ui::text::sentence(&why.to_string())),
            }
        }
        None
    }

    /// Draws the dialog. Returns a decision once there is one.
    pub(crate) fn show(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        let ctx = ui.ctx().clone();
        if let Some(folder) = self.take_answers(&ctx) {
            return Some(DialogDecision::OpenFolder { folder });
        }
        head(ui, "Open folder");
        words(
            ui,
            "Its Markdown files become notes. Opening a folder changes nothing in it. You can also drop one on the \
             window.",
        );
        ui.add_space(space::M);
        let before = self.path.clone();
        self.show_path(ui, &ctx);
        if self.path != before {
            self.problem = None;
        }
        self.show_completions(ui, &ctx);
        self.show_problem(ui, &ctx);
        self.show_recent(ui, &ctx);
        ui.add_space(space::L);
        let mut decision = None;
        at_right(ui, |ui| {
            if text_button(ui, "Open", true).clicked() {
                self.submit(&ctx);
            }
            if text_button(ui, "Cancel", false).clicked() {
                decision = Some(DialogDecision::Never);
            }
            if text_button(ui, "Open repository…", false).clicked() {
                decision = Some(DialogDecision::OpenRepository);
            }
        });
        decision
    }

    fn show_path(&mut self, ui: &mut Ui, ctx: &egui::Context) {
        let (name, hint) = ("Path of the folder", "/home/me/notes or ~/notes");
        if self.chooser.is_none() {
            field(ui, &mut self.path, name, hint);
        } else if field_with_button(ui, &mut self.path, name, hint, "Browse…") {
            self.browse(ctx);
        }
        let hint = match (&self.chooser, self.is_choosing) {
            (_, true) => "The system's folder chooser is open.",
            (None, false) => "There's no folder chooser on this desktop. Type the path.",
            (Some(_), false) => return,
        };
        ui.add_space(space::XS);
        words(ui, hint);
    }

    fn browse(&mut self, ctx: &egui::Context) {
        if let Some(chooser) = self.chooser.clone().filter(|_| !self.is_choosing) {
            self.is_choosing = true;
            self.problem = None;
            self.ask(ctx, move || FolderAnswer::Chosen(chooser()));
        }
    }

    fn show_completions(&mut self, ui: &mut Ui, ctx: &egui::Context) {
        let typed = whole_path(&self.path);
        if self.completed.as_ref() != Some(&typed) && !self.is_completing {
            self.is_completing = true;
            let path = typed.clone();
            self.ask(ctx, move || {
                let found = desktop::complete_folder(&path);
                FolderAnswer::Completed(path, found)
            });
        }
        // An empty path would list the root of the file system.
        if self.path.is_empty() || self.completed.as_ref() != Some(&typed) {
            return;
        }
        let mut taken = None;
        for path in &self.completions {
            if folder_row(ui, path, &format!("Complete: {path}")) {
                taken = Some(format!("{path}/"));
            }
        }
        if let Some(path) = taken {
            let id = Id::unique("dialog field");
            let mut state = egui::TextEdit::load_state(ctx, id).unwrap_or_default();
            state.cursor.set_char_range(Some(CCursorRange::one(CCursor::new(path.chars().count()))));
            state.store(ctx, id);
            ctx.memory_mut(|memory| memory.request_focus(id));
            (self.path, self.problem) = (path, None);
        }
    }

    fn show_problem(&mut self, ui: &mut Ui, ctx: &egui::Context) {
        let Some(problem) = &self.problem else { return };
        let text = match problem {
            FolderProblem::Refused(why) => why.clone(),
            FolderProblem::Missing(path) => format!("There's no folder at {}.", path.display()),
            FolderProblem::IsFile(path) => format!("That's a file, not a folder: {}", path.display()),
        };
        ui.add_space(space::S);
        let text = untrusted_text::escape_block(&text);
        ui.label(RichText::new(text).font(theme::small().font).color(ThemeColors::of(ui).bad));
        ui.add_space(space::S);
        let (mut made, mut above) = (None, None);
        ui.horizontal(|ui| match problem {
            FolderProblem::Refused(_) => {}
            FolderProblem::Missing(path) => {
                if text_button(ui, "Create folder", false).clicked() {
                    made = Some(path.clone());
                }
            }
            FolderProblem::IsFile(path) => {
                if let Some(folder) = path.parent()
                    && text_button(ui, "Open its folder", false).clicked()
                {
                    above = Some(folder.to_owned());
                }
            }
        });
        if let Some(folder) = above {
            self.inspect(ctx, folder);
        }
        if let Some(folder) = made {
            self.ask(ctx, move || {
                FolderAnswer::Created(host::fs::copy::create_folder(&folder).map(|()| {
                    match desktop::inspect_path(&folder) {
                        TypedPath::Folder(whole) => whole,
                        TypedPath::File(_) | TypedPath::Missing(_) | TypedPath::Unreadable(..) => folder,
                    }
                }))
            });
        }
    }

    fn show_recent(&mut self, ui: &mut Ui, ctx: &egui::Context) {
        if self.recent.is_empty() {
            return;
        }
        ui.add_space(space::M);
        words(ui, "Recent folders");
        let chosen = self.recent.iter().find(|folder| {
            let shown = folder.display().to_string();
            folder_row(ui, &shown, &format!("Open {shown}"))
        });
        if let Some(folder) = chosen.cloned() {
            self.path = folder.display().to_string();
            self.inspect(ctx, folder);
        }
    }
}

/// Returns a typed path with a leading `~/` expanded to the home folder, and other paths unchanged.
fn whole_path(typed: &str) -> String {
    match (typed.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) if rest.starts_with('/') => format!("{}{rest}", home.display()),
        _ => typed.to_owned(),
    }
}

/// Returns the recent folders that aren't open now, newest first.
pub(crate) fn closed_folders(recent: &[PathBuf], open: &[&Path]) -> Vec<PathBuf> {
    recent.iter().filter(|folder| !open.contains(&folder.as_path())).cloned().collect()
}
