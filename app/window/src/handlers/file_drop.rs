//! Imports files and pictures that are dropped or pasted.

use crate::shell::file_drop::{BroughtFiles, packed};
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use anyhow::{Context as _, anyhow};
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::{Align2, CornerRadius, Id, LayerId, Order, Stroke, StrokeKind};
use engine::Command;
use host::desktop::{TypedPath, inspect_path};
use host::fs::confined_dir::ConfinedPath;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{DocId, FileKind};
use text::attachment_link::{attachment_link, attachment_place};
use ui::theme::{self, ThemeColors, size, space};

impl PaneState {
    /// Handles files dropped on the window, and links finished copies.
    pub(crate) fn handle_file_drops(
        &mut self,
        host: &mut HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        prefs: &WindowState,
        ctx: &egui::Context,
    ) {
        let files = ctx.input_mut(|input| std::mem::take(&mut input.raw.dropped_files));
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
        if !paths.is_empty() {
            self.take(host, input, notices, prefs, ctx, paths);
        }
        while let Ok(BroughtFiles { note, way, names }) = input.dropped.brought.try_recv() {
            let mut links = Vec::new();
            for result in names {
                match result {
                    Ok(name) => links.push(attachment_link(&format!("{way}{name}"))),
                    Err(why) => notices.toasts.show_message(why.to_string()),
                }
            }
            if !links.is_empty() {
                self.link(host, notices, ctx, note, &links.join("\n"));
            }
        }
        while let Ok(made) = input.dropped.made.try_recv() {
            match made {
                Ok(note) => self.open(host, notices, note),
                Err(why) => notices.toasts.show_message(ui::text::sentence(&why.to_string())),
            }
        }
        let hovered = ctx.input(|input| !input.raw.hovered_files.is_empty());
        if hovered {
            invite(ctx, self.active.note.is_some());
        }
    }

    /// Inserts links at the caret, or at the end of a note without a caret.
    fn link(&mut self, host: &mut HostLink, notices: &mut NoticeState, ctx: &egui::Context, note: DocId, links: &str) {
        let Some(length) = host.session().note(note).map(engine::Note::length) else { return };
        let caret = self.active.editor.caret.filter(|_| self.active.note == Some(note));
        let ends = host.session().note(note).is_none_or(|note| {
            note.blocks().last().is_none_or(|block| block.text.is_empty() || block.text.ends_with('\n'))
        });
        let insert = match caret {
            Some(_) => links.to_owned(),
            None => format!("{}\n{links}\n", if ends { "" } else { "\n" }),
        };
        let at = caret.map_or(length, |caret| caret.at);
        let after = at + insert.len();
        if self.active.note == Some(note) {
            self.apply_edits(host, notices, vec![NoteEdit { at, delete: 0, insert, caret: after, anchor: after }]);
            ctx.request_repaint();
        } else {
            host.send(Command::Edit { note, at, delete: 0, insert }, notices);
        }
    }
}

/// Returns whether a file is a note.
fn is_note_path(path: &Path) -> bool {
    FileKind::from_path(&path.to_string_lossy()) == FileKind::Note
}

/// Shows what a drop does while files are dragged over the window.
fn invite(ctx: &egui::Context, has_note: bool) {
    let colours = ThemeColors::for_dark_mode(ctx.global_style().visuals.dark_mode);
    let all = ctx.content_rect().shrink(space::S);
    let painter = ctx.layer_painter(LayerId::new(Order::Tooltip, Id::unique("drop")));
    let corner = CornerRadius::same(10);
    painter.rect_filled(all, corner, colours.paper.gamma_multiply(0.85));
    painter.rect_stroke(all, corner, Stroke::new(size::FOCUS_RING_WIDTH, colours.accent), StrokeKind::Inside);
    let text = match has_note {
        true => "Drop files to store and link them next to this note. Folders become volumes, notebooks become notes.",
        false => "Drop a note to open it. Folders become volumes, notebooks become notes.",
    };
    painter.text(all.center(), Align2::CENTER_CENTER, text, theme::body().font, colours.ink);
}

impl PaneState {
    pub(crate) fn take(
        &mut self,
        host: &mut HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        prefs: &WindowState,
        ctx: &egui::Context,
        paths: Vec<PathBuf>,
    ) {
        let (folders, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| host::fs::copy::is_folder(path));
        for folder in folders {
            if let Err(why) = self.open_folder(host, notices, prefs, &folder, None) {
                notices.toasts.show_message(why.to_string());
            }
        }
        let (notebooks, files): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|path| export::notebook_import::is_notebook_path(path));
        if !notebooks.is_empty() {
            self.import(host, input, notices, ctx, notebooks);
        }
        // Without a note to store them beside, notes are opened where they are.
        let files = if self.attachment_place(host).is_none() {
            let (notes, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|path| is_note_path(path));
            for note in notes {
                // A volume's folder is known by its canonical path.
                let TypedPath::File(file) = inspect_path(&note) else { continue };
                let Some(folder) = file.parent() else { continue };
                if let Err(why) = self.open_folder(host, notices, prefs, folder, Some(&file)) {
                    notices.toasts.show_message(why.to_string());
                }
            }
            files
        } else {
            files
        };
        if files.is_empty() {
            return;
        }
        let Some((note, folder, way)) = self.attachment_place(host) else {
            notices.toasts.show_message("Open a note first. Files are stored next to it.");
            return;
        };
        let (bring, wake) = (input.dropped.bring.clone(), ctx.clone());
        host::fs::copy::import_files(files, folder, move |results| {
            // Here and below: if the receiver is gone, the result is no longer needed.
            let _ = bring.send(BroughtFiles { note, way, names: results });
            wake.request_repaint();
        });
    }

    /// Imports notebooks next to the open note or into the first volume, and opens them.
    pub(crate) fn import(
        &mut self,
        host: &HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        paths: Vec<PathBuf>,
    ) {
        let session = host.session();
        let own = self.active.note.and_then(|note| session.locate_file(note)).map(|(volume, path)| {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            (volume, if folder.is_empty() { String::new() } else { format!("{folder}/") })
        });
        let Some((volume, folder)) = own.or_else(|| session.volumes().next().map(|volume| (volume.id, String::new())))
        else {
            notices.toasts.show_message("Open a folder first. The notebook becomes a note in it.");
            return;
        };
        let (handle, made, wake) = (host.driver.handle(), input.dropped.make.clone(), ctx.clone());
        std::thread::spawn(move || {
            for path in paths {
                let _ = made.send(imported(&handle, volume, &folder, path)); // the window may be closed
                wake.request_repaint();
            }
        });
    }

    /// Stores a pasted picture next to the note, as PNG.
    pub(crate) fn paste_picture(
        &mut self,
        host: &HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        picture: Arc<egui::ColorImage>,
    ) {
        let Some((note, folder, way)) = self.attachment_place(host) else {
            notices.toasts.show_message("Open a note first. Pictures are stored next to it.");
            return;
        };
        let (bring, wake) = (input.dropped.bring.clone(), ctx.clone());
        let make = move || packed(&picture).map_err(|error| anyhow!("the picture cannot be packed ({error})"));
        host::fs::copy::save_new_file(host::clock::timestamped_name("pasted"), "png", folder, make, move |result| {
            let _ = bring.send(BroughtFiles { note, way, names: vec![result] });
            wake.request_repaint();
        });
    }

    /// Returns the open note, the folder for its attachments, and that folder's path relative to the note's folder.
    fn attachment_place(&self, host: &HostLink) -> Option<(DocId, ConfinedPath, String)> {
        let (note, session) = (self.active.note?, host.session());
        let (volume, path) = session.locate_file(note)?;
        let root = session.volume(volume)?.root.as_deref()?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let (folder, way) = attachment_place(folder, &session.settings().attachment_folder);
        Some((note, ConfinedPath::new(root, &folder), way))
    }
}

/// Creates a note from a notebook, under a name that is unused in a folder of a volume.
fn imported(handle: &host::Handle, volume: DocId, folder: &str, path: PathBuf) -> anyhow::Result<DocId> {
    let read = export::notebook_import::read_notebooks(&[path], &mut |_| ())?;
    let (name, laid) = read.into_iter().next().context("there is no notebook")?;
    let stem = name.strip_suffix(".md").unwrap_or(&name).to_owned();
    let folder = folder.to_owned();
    let free = move |session: &engine::Session| {
        let files = &session.volume(volume)?.files;
        let names = (1..).map(|number| if number == 1 { stem.clone() } else { format!("{stem} {number}") });
        names.map(|name| format!("{folder}{name}.md")).find(|path| !files.contains_key(path))
    };
    let path = handle.read(free)?.context("the volume is no longer open")?;
    Ok(export::notebook_import::create_note(handle, volume, &path, laid)?)
}
