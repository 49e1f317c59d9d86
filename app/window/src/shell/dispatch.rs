//! Dispatches commands of the table, actions of views, choices and decisions. The only place where the window sends
//! commands to the session.

use super::commands::{self, WindowCommand};
use crate::actions::{PageAction, RowDrag};
use crate::app_window::AppWindow;
use crate::notebook::page;
use crate::overlays::command_palette::{CommandPalette, PaletteChoice};
use crate::overlays::dialogs::{Dialog, DialogDecision};
use crate::overlays::settings::{self, SettingsSection};
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::dock_state::RightPanel;
use crate::shell::shutdown::ShutdownState;
use editor::note_editor::NoteEdit;
use editor::row_splitter::RowKind;
use eframe::egui;
use egui_tiles::LinearDir;
use engine::Command;
use engine::keymap::KeymapPreset;
use std::path::PathBuf;
use store::{BlockId, DocId, FileKind};
use text::text_edit::TextEdit;

/// Notes that stay open in the session behind the one that is shown, with their undo and their kernels.
const MAX_BACKGROUND_NOTES: usize = 8;
/// Commands that are kept in mind once they ran.
const MAX_RECENT_COMMANDS: usize = 8;

impl AppWindow {
    /// Sends a command; what is refused is said.
    pub(crate) fn send(&mut self, command: Command) -> bool {
        self.host.send(command, &mut self.notices)
    }

    /// Performs the actions that views returned.
    pub(crate) fn perform_actions(&mut self, ctx: &egui::Context, actions: Vec<PageAction>) {
        for action in actions {
            match action {
                PageAction::Do(command) => _ = self.send(command),
                PageAction::Run(id) => {
                    if let Some(what) = commands::window_command(id) {
                        self.run_command(ctx, what);
                    }
                }
                PageAction::Edit(edit) => self.apply_edits(vec![edit]),
                PageAction::Open(note) => self.open(note),
                PageAction::Hit(aim) => self.go_to_hit(aim),
                PageAction::OpenAt(note, at) => {
                    self.open(note);
                    self.panes.active.page.point_out(at);
                }
                PageAction::Rename(file) => self.ask_rename(file),
                PageAction::Delete(file) => self.delete(file),
                PageAction::OpenBeside(note) => {
                    if !self.go_to_note(note) {
                        self.new_tab(Some(note));
                    }
                }
                PageAction::Tree(wish) => self.apply_tree_action(ctx, wish),
                PageAction::Here(pane) => self.go_to_pane(pane),
                PageAction::CloseTab(pane) => self.close_tab(pane),
                PageAction::Follow(link) => self.follow_link(ctx, &link),
                PageAction::Move { edits, caret } => self.move_rows(edits, caret),
                PageAction::Carry { from, to, edit, caret } => self.carry_rows(*from, to, edit, caret),
                PageAction::Place(at) => self.panes.active.editor.place_caret(at),
                PageAction::Memory(wish) => self.remember(*wish),
                PageAction::ShowAgent => self.show_pending_decision(),
                PageAction::ShowStep(run, step) => self.show_step(run, step),
                PageAction::Say(text) => self.notices.toasts.show_message(text),
                PageAction::ToLine { cell, line } => self.show_line(cell, line),
                PageAction::SaveOutput(cell) => self.ask_save(cell),
                PageAction::Share(volume) => self.ask_share(volume),
                PageAction::Collection(collection, deed) => self.apply_collection_edit(ctx, collection, deed),
            }
            ctx.request_repaint();
        }
    }

    /// The caret goes to a line of a cell, both counted from 1.
    fn show_line(&mut self, cell: usize, line: usize) {
        let found = self.panes.open_note(&self.host).and_then(|note| {
            let id = note.cells().nth(cell.checked_sub(1)?)?;
            let (start, code) = (note.block_start(id)? + note.cell_parts(id)?.code.start, note.cell_code(id)?);
            let before: usize = code.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
            Some(start + before.min(code.trim_end_matches('\n').len()))
        });
        match found {
            Some(at) => {
                self.panes.active.editor.place_caret(at);
                self.panes.active.editor.focus = true;
                self.panes.active.editor.reveal = true;
            }
            None => self.notices.toasts.show_message("This cell no longer exists."),
        }
    }

    /// Makes edits of the open note, at once; undo takes them back at once.
    pub(crate) fn apply_edits(&mut self, edits: Vec<NoteEdit>) {
        let Some(note) = self.panes.active.note else { return };
        let mut splices: Vec<TextEdit> = edits
            .iter()
            .filter(|edit| edit.delete > 0 || !edit.insert.is_empty())
            .map(|edit| TextEdit { at: edit.at, delete: edit.delete, insert: edit.insert.clone() })
            .collect();
        splices.sort_by_key(|splice| (splice.at, splice.delete));
        let command = match splices.as_slice() {
            [one] => {
                let TextEdit { at, delete, insert } = one.clone();
                Command::Edit { note, at, delete, insert }
            }
            _ => Command::EditAll { note, edits: splices },
        };
        if self.send(command)
            && let Some(note) = self.host.session().note(note)
        {
            self.panes.active.editor.apply_own_edits(&edits, note);
        }
        // What is refused is not in the note, and the caret stays where it was.
        self.panes.active.editor.focus = true;
    }

    /// Moves rows of the open note, as one edit.
    pub(crate) fn move_rows(&mut self, edits: Vec<TextEdit>, caret: Option<usize>) {
        let Some(note) = self.panes.active.note else { return };
        if self.send(Command::EditAll { note, edits })
            && let (Some(caret), Some(note)) = (caret, self.host.session().note(note))
        {
            let edit = NoteEdit { at: 0, delete: 0, insert: String::new(), caret, anchor: caret };
            self.panes.active.editor.apply_own_edits(&[edit], note);
            self.panes.active.editor.focus = true;
        }
    }

    /// Moves rows into another note. They are written there before they go here: a refusal loses nothing.
    fn carry_rows(&mut self, held: RowDrag, to: DocId, edit: TextEdit, caret: usize) {
        let revision = self.host.session().note(held.note).map(engine::Note::revision);
        if revision != Some(held.revision) {
            self.notices.toasts.show_message("The note has changed meanwhile; the block stays where it is.");
            return;
        }
        if !self.send(Command::EditAll { note: to, edits: vec![edit] }) {
            return;
        }
        self.send(Command::EditAll { note: held.note, edits: vec![held.gone] });
        if self.panes.active.note != Some(to)
            && let Some(pane) = self.panes.layout.pane_with_note(to)
        {
            self.go_to_pane(pane);
        }
        self.panes.active.editor.place_caret(caret);
    }

    /// Opens a note in the active pane.
    pub(crate) fn open(&mut self, note: DocId) {
        self.panes.has_chosen_note = true;
        self.panes.view = None;
        if self.panes.active.note == Some(note) || self.go_to_note(note) || !self.send(Command::OpenNote { note }) {
            return;
        }
        self.panes.active.show_note(Some(note));
        self.panes.background_notes.retain(|kept| *kept != note);
        self.panes.background_notes.push_front(note);
        // Closes notes unused for long, unless their kernel holds variables.
        while self.panes.background_notes.len() > MAX_BACKGROUND_NOTES {
            let Some(old) = self.panes.background_notes.pop_back() else { break };
            if self.panes.layout.pane_with_note(old).is_some() {
                continue;
            }
            let off = self.host.session().note(old).is_some_and(|note| note.kernel == engine::KernelPhase::Off);
            if off {
                self.send(Command::CloseNote { note: old });
            }
        }
    }

    /// Opens at the start what was open last, or what a first look should see.
    pub(crate) fn choose_first(&mut self, ctx: &egui::Context) {
        if self.panes.has_chosen_note {
            return;
        }
        let session = self.host.session();
        if let Some(note) = self.panes.pending_note {
            if session.locate_file(note).is_some() {
                self.open(note);
                ctx.request_repaint();
                return;
            }
            if session.volumes().all(|volume| volume.known && volume.scans > 0) && session.is_open() {
                self.panes.pending_note = None;
            }
            return;
        }
        let first = session.volumes().next().filter(|volume| volume.scans > 0 && session.settings().recent.is_empty());
        let welcome = first.and_then(|volume| {
            let notes = || volume.files.iter().filter(|(path, row)| row.kind == FileKind::Note && !path.contains('/'));
            let named = notes().find(|(path, _)| path.eq_ignore_ascii_case("welcome.md"));
            named.or_else(|| notes().next()).map(|(_, row)| row.id)
        });
        if let Some(note) = welcome {
            self.open(note);
            ctx.request_repaint();
        } else if first.is_some() {
            self.panes.has_chosen_note = true;
        }
    }

    /// The cell that holds the caret.
    pub(crate) fn cell_of_caret(&mut self, ctx: &egui::Context) -> Option<BlockId> {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(ctx, dark, |world, editor, _| {
            let target = editor.edit_target(world)?;
            (target.kind == RowKind::Cell)
                .then(|| target.spot.map(|spot| world.sheet.block_rows(spot.block).id))
                .flatten()
        })?
    }

    /// Performs a command of the table.
    pub(crate) fn run_command(&mut self, ctx: &egui::Context, what: WindowCommand) {
        self.input.command_log.push_back(if let WindowCommand::RunCell { .. } = what {
            WindowCommand::RunCell { on: false }
        } else {
            what
        });
        if self.input.command_log.len() > MAX_RECENT_COMMANDS {
            self.input.command_log.pop_front();
        }
        let note = self.panes.active.note;
        let on_note = |command: fn(DocId) -> Command| note.map(command);
        match what {
            WindowCommand::Palette => {
                self.overlay = WindowOverlay::Palette(CommandPalette::commands(&self.input.recent));
            }
            WindowCommand::Switcher => {
                self.overlay = WindowOverlay::Palette(CommandPalette::notes(self.host.session(), note));
            }
            WindowCommand::Search => self.open_search(),
            WindowCommand::NewCollection => self.new_collection(),
            WindowCommand::TurnView { back } => self.turn_view(back),
            WindowCommand::Figure(turn) => {
                if self.panes.view.is_some() || !self.panes.active.page.cells.figures.apply_figure_command(ctx, turn) {
                    self.notices.toasts.show_message("No figure is in sight here.");
                }
            }
            WindowCommand::NewNote => self.ask_name(String::new(), None),
            WindowCommand::OpenFolder => {
                self.overlay = WindowOverlay::Dialog(Dialog::OpenFolder { path: String::new(), trouble: None });
            }
            WindowCommand::Rescan => self.rescan(),
            WindowCommand::CloseVolume => self.close_volume(),
            WindowCommand::Save => {
                if self.send(Command::Save) {
                    self.notices.status.on_save_requested();
                }
            }
            WindowCommand::Undo if self.in_collection() => self.undo_collection_edit(ctx, false),
            WindowCommand::Redo if self.in_collection() => self.undo_collection_edit(ctx, true),
            WindowCommand::Undo => self.undo(false),
            WindowCommand::Redo => self.undo(true),
            WindowCommand::CloseNote => self.close_tab(self.panes.active.id),
            WindowCommand::NewTab => {
                self.new_tab(None);
                self.run_command(ctx, WindowCommand::Switcher);
            }
            WindowCommand::ReopenTab => self.reopen_tab(),
            WindowCommand::NextTab => self.turn_tabs(false),
            WindowCommand::PreviousTab => self.turn_tabs(true),
            WindowCommand::SplitRight => self.split(LinearDir::Horizontal),
            WindowCommand::SplitDown => self.split(LinearDir::Vertical),
            WindowCommand::RunCell { on } => self.run_cell(ctx, on),
            WindowCommand::RunAll => self.note_command(on_note(|note| Command::RunAll { note })),
            WindowCommand::RunStale => self.note_command(on_note(|note| Command::RunStale { note })),
            WindowCommand::RunClean => self.note_command(on_note(|note| Command::RunClean { note })),
            WindowCommand::React(to) => self.note_command(note.map(|note| Command::SetReactivity { note, to })),
            WindowCommand::Kernel => self.find_kernels(),
            WindowCommand::Grant => self.ask_for_grant(),
            WindowCommand::Variables => {
                self.dock.toggle(RightPanel::Variables, &mut self.prefs.right_open);
            }
            WindowCommand::Stop => self.note_command(on_note(|note| Command::Interrupt { note })),
            WindowCommand::Restart => self.note_command(on_note(|note| Command::RestartKernel { note })),
            WindowCommand::Left => self.prefs.left_open = !self.prefs.left_open,
            WindowCommand::Right => self.prefs.right_open = !self.prefs.right_open,
            WindowCommand::Theme => self.prefs.next_theme(),
            WindowCommand::Spelling => self.toggle_spelling(),
            WindowCommand::ScriptRuns => self.toggle_script_runs(),
            WindowCommand::Correct => self.suggest_corrections(ctx),
            WindowCommand::Larger => self.prefs.step_text_scale(0.1),
            WindowCommand::Smaller => self.prefs.step_text_scale(-0.1),
            WindowCommand::NormalSize => self.prefs.scale = 1.0,
            WindowCommand::Find => self.open_find(false),
            WindowCommand::Replace => self.open_find(true),
            WindowCommand::NextMatch => self.next_match(false),
            WindowCommand::PreviousMatch => self.next_match(true),
            WindowCommand::Fold => self.fold_here(ctx),
            WindowCommand::FoldAll => self.fold_all(ctx, true),
            WindowCommand::UnfoldAll => self.fold_all(ctx, false),
            WindowCommand::SelectNext => self.select_same(ctx, false),
            WindowCommand::SelectAll => self.select_same(ctx, true),
            WindowCommand::Go(go) => self.run_go(go),
            WindowCommand::Write(writing) => self.run_writing(ctx, writing),
            WindowCommand::Keys => self.open_settings(SettingsSection::Keys),
            WindowCommand::Settings => self.open_settings(SettingsSection::Look),
            WindowCommand::File(filing) => self.run_filing(filing),
            WindowCommand::Agent(asked) => self.run_agent(asked),
            WindowCommand::Remember(what) => self.run_remembering(what),
            WindowCommand::Cells(wish) => self.run_cells(ctx, wish),
            WindowCommand::Export(exporting) => self.run_exporting(ctx, exporting),
            WindowCommand::Contrast => {
                let contrast = !self.prefs.contrast;
                self.set(ctx, vec![settings::SettingsChange::Contrast(contrast)]);
            }
            WindowCommand::PastePlain => self.paste_plain(ctx),
            WindowCommand::Quit => ctx.send_viewport_cmd(egui::ViewportCommand::Close),
        }
        ctx.request_repaint();
    }

    pub(crate) fn open_settings(&mut self, section: SettingsSection) {
        self.overlay = WindowOverlay::Settings(Box::new(settings::SettingsPage::new(
            section,
            self.host.driver.search().clone(),
            self.host.driver.folder().to_path_buf(),
        )));
    }

    /// Sets something and puts it into force.
    pub(crate) fn set(&mut self, ctx: &egui::Context, changes: Vec<settings::SettingsChange>) {
        if changes.is_empty() {
            return;
        }
        let mut settings = self.host.session().settings().clone();
        self.prefs.store_settings(&mut settings);
        self.dock.tree.store_settings(&mut settings);
        let close = changes.iter().any(|change| matches!(change, settings::SettingsChange::CloseTabs));
        let resize = changes.iter().any(|change| matches!(change, settings::SettingsChange::WindowSize));
        changes.into_iter().for_each(|change| change.apply_to(&mut settings));
        if close {
            self.close_other_tabs();
        }
        if resize {
            ctx.send_viewport_cmd(egui::ViewportCommand::InnerSize(settings.window.into()));
        }
        self.dock.tree.set(&settings);
        if self.send(Command::Set { settings: Box::new(settings.clone()) }) {
            self.input.shortcuts = commands::shortcuts(&settings);
            self.prefs.load_settings(&settings);
        }
        ctx.request_repaint();
    }

    fn note_command(&mut self, command: Option<Command>) {
        match command {
            Some(command) => _ = self.send(command),
            None => self.notices.toasts.show_message("No note is open."),
        }
    }

    fn rescan(&mut self) {
        let roots: Vec<PathBuf> = self.host.session().volumes().filter_map(|volume| volume.root.clone()).collect();
        for folder in roots {
            self.send(Command::OpenFolder { folder, name: None });
        }
    }

    fn close_volume(&mut self) {
        let open = self.panes.active.note.and_then(|note| self.host.session().locate_file(note));
        let volume = open.map(|(volume, _)| volume);
        let Some(volume) = volume else {
            self.notices.toasts.show_message("Open a note of the volume first.");
            return;
        };
        if self.send(Command::CloseVolume { volume }) {
            self.panes.active.show_note(None);
            let session = self.host.session();
            self.panes.background_notes.retain(|note| session.note(*note).is_some());
        }
    }

    pub(crate) fn undo(&mut self, redo: bool) {
        let Some(note) = self.panes.active.note else { return };
        let revision = self.host.session().note(note).map_or(0, engine::Note::revision);
        let command = if redo { Command::Redo { note } } else { Command::Undo { note } };
        if self.send(command)
            && let Some(note) = self.host.session().note(note)
        {
            self.panes.active.editor.follow_undo(revision, note);
        }
    }

    fn run_cell(&mut self, ctx: &egui::Context, on: bool) {
        let (Some(note), Some(cell)) = (self.panes.active.note, self.cell_of_caret(ctx)) else {
            self.notices.toasts.show_message("Put the caret into a Python cell first; a cell starts with ```python.");
            return;
        };
        if !self.send(Command::Run { note, cell }) {
            return;
        }
        if self.preset() == KeymapPreset::Jupyter {
            self.after_run(ctx, on);
            return;
        }
        if !on {
            return;
        }
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(ctx, dark, |world, editor, _| {
            let Some(target) = editor.edit_target(world) else { return };
            match target.spot.and_then(|spot| world.following_row(spot)) {
                Some(after) => {
                    let at = world.sheet.start(after.block)
                        + world.rows(after.block).get(after.row).map_or(0, |row| row.content.start);
                    editor.place_caret(at);
                }
                None => page::move_caret_after_last_row(world, editor),
            }
        });
    }

    /// Says what a clean run found, once.
    pub(crate) fn report_clean_run(&mut self) {
        let Some(note) = self.panes.open_note(&self.host) else { return };
        let Some((count, _)) = note.clean_run_report() else { return };
        if self.notices.last_reported_runs.insert(note.id, count) != Some(count)
            && let Some(words) = note.clean_run_summary()
        {
            self.notices.toasts.show_message(words + ".");
        }
    }

    pub(crate) fn ask_name(&mut self, name: String, volume: Option<DocId>) {
        let session = self.host.session();
        let volumes: Vec<(DocId, String)> = session
            .volumes()
            .filter(|volume| volume.root.is_some())
            .map(|volume| (volume.id, volume.name.clone()))
            .collect();
        if volumes.is_empty() {
            self.overlay = WindowOverlay::Dialog(Dialog::OpenFolder { path: String::new(), trouble: None });
            self.notices.toasts.show_message("Open a folder first. A note is a file in a folder.");
            return;
        }
        let own = volume.or_else(|| Some(session.locate_file(self.panes.active.note?)?.0));
        let chosen = volumes.iter().position(|(id, _)| Some(*id) == own).unwrap_or(0);
        self.overlay = WindowOverlay::Dialog(Dialog::NewNote { volumes, chosen, name, trouble: None });
    }

    /// Makes a note and shows it, with the caret in it. Gives why not.
    fn make_note(&mut self, volume: DocId, path: &str) -> Result<(), String> {
        let command = Command::NewNote { volume, path: path.to_owned(), text: String::new() };
        self.host.command(command)?;
        let known = self.host.session().volume(volume).and_then(|volume| {
            let with_ending = format!("{}.md", path.trim_start_matches("./"));
            volume.files.get(path).or_else(|| volume.files.get(&with_ending)).map(|row| row.id)
        });
        if let Some(note) = known {
            self.open(note);
            self.panes.active.editor.place_caret(0);
        }
        Ok(())
    }

    /// What was chosen in a palette.
    pub(crate) fn apply_palette_choice(&mut self, ctx: &egui::Context, choice: PaletteChoice) {
        self.close_overlay();
        match choice {
            PaletteChoice::Command(id) => {
                self.input.recent.retain(|recent| *recent != id);
                self.input.recent.insert(0, id);
                if let Some(what) = commands::window_command(id) {
                    self.run_command(ctx, what);
                }
            }
            PaletteChoice::Note(note) => {
                self.open(note);
                if self.panes.active.editor.caret.is_none() {
                    self.panes.active.page.restore_caret(&mut self.panes.active.editor);
                }
            }
            PaletteChoice::New(name) => self.ask_name(name, None),
            PaletteChoice::Search(text) => self.open_search_for(&text),
            PaletteChoice::Template(note) => self.insert_template(note),
            PaletteChoice::Word { range, word } => self.replace_word(ctx, range, word),
            PaletteChoice::Learn(word) => self.learn_word(word),
            PaletteChoice::Kernel(name) => self.use_kernel(name, None),
            PaletteChoice::Line(line) => {
                self.record_line(&line);
                self.run_line(ctx, &line);
            }
        }
        ctx.request_repaint();
    }

    /// What was decided in a dialog.
    pub(crate) fn apply_dialog_decision(&mut self, ctx: &egui::Context, decision: DialogDecision) {
        let refused = match decision {
            DialogDecision::NewNote { volume, path } => self.make_note(volume, &path).err(),
            DialogDecision::RenameFolder { volume, from, path } => self.rename_folder(volume, &from, &path).err(),
            DialogDecision::Rename { file, path } => self.rename(file, &path).err(),
            DialogDecision::OpenFolder { path } => match ui::text::absolute(&path) {
                Some(folder) => self.host.command(Command::OpenFolder { folder, name: None }).err(),
                None => Some("Give the whole path, beginning with / or ~.".to_owned()),
            },
            DialogDecision::Discard { files } => {
                self.send(Command::Discard { files });
                None
            }
            DialogDecision::Export { kind, what, paper, dest } => match ui::text::absolute(&dest) {
                Some(dest) => self.begin_export(ctx, kind, what, paper, &dest).err(),
                None => Some("Give the whole path, beginning with / or ~.".to_owned()),
            },
            DialogDecision::SaveOutput { save, dest } => match ui::text::absolute(&dest) {
                Some(dest) => self.save_output(ctx, save, dest).err(),
                None => Some("Give the whole path, beginning with / or ~.".to_owned()),
            },
            DialogDecision::AllowKernel { name, print } => {
                self.use_kernel(Some(name), Some(print));
                None
            }
            DialogDecision::Grant { note, grant } => self.grant(note, grant).err(),
            DialogDecision::Share { volume, hub } => self.share(volume, hub).err(),
            DialogDecision::Join { address, folder } => match ui::text::absolute(&folder) {
                Some(folder) => self.join(ctx, address, folder).err(),
                None => Some("Give the whole path, beginning with / or ~.".to_owned()),
            },
            DialogDecision::CloseAnyway => {
                self.shutdown = ShutdownState::Yes;
                ctx.send_viewport_cmd(egui::ViewportCommand::Close);
                None
            }
            DialogDecision::Never => {
                if self.shutdown == ShutdownState::Asked {
                    self.shutdown = ShutdownState::No;
                }
                None
            }
        };
        match (refused, &mut self.overlay) {
            (Some(why), WindowOverlay::Dialog(dialog)) => dialog.show_error(why),
            _ => self.close_overlay(),
        }
        ctx.request_repaint();
    }

    /// What floats goes; the note has the keyboard again.
    pub(crate) fn close_overlay(&mut self) {
        self.overlay = WindowOverlay::None;
        self.panes.active.editor.focus = self.panes.active.editor.caret.is_some();
    }

    /// Draws dialogs, palette, menus and toasts.
    pub(crate) fn show_overlays(&mut self, ctx: &egui::Context) {
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ui::theme::ThemeColors::for_dark_mode(dark);
        self.slash_menu(ctx);
        self.poll_export(ctx);
        match &mut self.overlay {
            WindowOverlay::None => {}
            WindowOverlay::Palette(palette) => match palette.show(ctx, colours, dark) {
                Some(Some(choice)) => self.apply_palette_choice(ctx, choice),
                Some(None) => self.close_overlay(),
                None => {}
            },
            WindowOverlay::Search(seek) => {
                let (what, kept, linked) =
                    (seek.show(ctx, colours, dark), seek.take_saved_change(), seek.take_copied_link());
                match what {
                    Some(Some(aim)) => self.go_to_hit(aim),
                    Some(None) => self.close_overlay(),
                    None => {}
                }
                if let Some((query, keep)) = kept {
                    self.save_search(ctx, &query, keep);
                }
                // A run's steps keep their names as they are.
                if let Some(note) = linked.filter(|note| self.host.session().locate_file(*note).is_some()) {
                    // An edit of nothing: the note has a document from now on, so its blocks keep their names whatever
                    // other programs write into its file.
                    self.send(Command::Amend { note, at: 0, old: String::new(), new: String::new() });
                }
            }
            WindowOverlay::Dialog(dialog) => {
                if let Some(decision) = dialog.show(ctx, colours, dark) {
                    self.apply_dialog_decision(ctx, decision);
                }
            }
            WindowOverlay::Settings(page) => {
                let session = self.host.session();
                let (changes, close) = page.show(ctx, session.settings(), session.agents(), dark);
                let wishes = std::mem::take(&mut page.wishes);
                wishes.into_iter().for_each(|wish| _ = self.send(wish));
                self.set(ctx, changes);
                if close {
                    self.close_overlay();
                }
            }
        }
        if let Some(what) = self.notices.toasts.show(ctx, colours, dark).and_then(commands::window_command) {
            self.run_command(ctx, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_whole() {
        assert_eq!(ui::text::absolute("/a/b/"), Some(PathBuf::from("/a/b")));
        assert_eq!(ui::text::absolute("a"), None);
        assert_eq!(ui::text::absolute("~x"), None);
    }
}
