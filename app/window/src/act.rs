//! What the window does when something was asked for: commands of the table, wishes of views, choices and decisions.
//! The one place from which the window sends commands to the session.

use super::commands::{self, What};
use super::dialogs::{Decision, Dialog};
use super::page::{self, Action};
use super::palette::{Choice, Palette};
use super::settings::{self, Section};
use super::{Closing, Overlay, Window};
use editor::note_editor::Edit;
use editor::rows::Kind;
use eframe::egui;
use egui_tiles::LinearDir;
use engine::Command;
use engine::keymap::Preset;
use std::path::PathBuf;
use store::{BlockId, DocId, FileKind};
use text::splice::Splice;

/// Notes that stay open in the session behind the one that is shown, with their undo and their kernels.
const KEPT: usize = 8;
/// Commands that are kept in mind once they ran.
const RAN: usize = 8;

impl Window {
    /// Sends a command; what is refused is said.
    pub(super) fn send(&mut self, command: Command) -> bool {
        let Some(driver) = &mut self.driver else { return false };
        match driver.command(command) {
            Ok(()) => true,
            Err(reject) => {
                self.toasts.say(ui::text::sentence(&reject.0));
                false
            }
        }
    }

    /// Does what views asked for.
    pub(super) fn perform(&mut self, ctx: &egui::Context, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Do(command) => _ = self.send(command),
                Action::Run(id) => {
                    if let Some(what) = commands::what(id) {
                        self.run(ctx, what);
                    }
                }
                Action::Edit(edit) => self.edit(vec![edit]),
                Action::Open(note) => self.open(note),
                Action::Hit(aim) => self.go_to_hit(aim),
                Action::OpenAt(note, at) => {
                    self.open(note);
                    self.here.page.point_out(at);
                }
                Action::Rename(file) => self.ask_rename(file),
                Action::Delete(file) => self.delete(file),
                Action::OpenBeside(note) => {
                    if !self.go_to_note(note) {
                        self.new_tab(Some(note));
                    }
                }
                Action::Tree(wish) => self.file(ctx, wish),
                Action::Here(pane) => self.go_to_pane(pane),
                Action::CloseTab(pane) => self.close_tab(pane),
                Action::Follow(link) => self.follow(ctx, &link),
                Action::Move { edits, caret } => self.move_rows(edits, caret),
                Action::Carry { from, to, edit, caret } => self.carry_rows(*from, to, edit, caret),
                Action::Place(at) => self.here.editor.place(at),
                Action::Memory(wish) => self.remember(*wish),
                Action::ShowAgent => self.show_waiting(),
                Action::ShowStep(run, step) => self.show_step(run, step),
                Action::Say(text) => self.toasts.say(text),
                Action::ToLine { cell, line } => self.show_line(cell, line),
                Action::SaveOutput(cell) => self.ask_save(cell),
                Action::Share(volume) => self.ask_share(volume),
                Action::Collection(collection, deed) => self.collection_deed(ctx, collection, deed),
            }
            ctx.request_repaint();
        }
    }

    /// The caret goes to a line of a cell, both counted from 1.
    fn show_line(&mut self, cell: usize, line: usize) {
        let found = self.here.note.and_then(|note| self.session()?.note(note)).and_then(|note| {
            let id = note.cells().nth(cell.checked_sub(1)?)?;
            let (start, code) = (note.start(id)? + note.cell(id)?.code.start, note.code(id)?);
            let before: usize = code.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
            Some(start + before.min(code.trim_end_matches('\n').len()))
        });
        match found {
            Some(at) => {
                self.here.editor.place(at);
                self.here.editor.focus = true;
                self.here.editor.reveal = true;
            }
            None => self.toasts.say("This cell is no longer there."),
        }
    }

    /// Makes edits of the open note, at once; undo takes them back at once.
    pub(super) fn edit(&mut self, edits: Vec<Edit>) {
        let Some(note) = self.here.note else { return };
        let mut splices: Vec<Splice> = edits
            .iter()
            .filter(|edit| edit.delete > 0 || !edit.insert.is_empty())
            .map(|edit| Splice { at: edit.at, delete: edit.delete, insert: edit.insert.clone() })
            .collect();
        splices.sort_by_key(|splice| (splice.at, splice.delete));
        let command = match splices.as_slice() {
            [one] => {
                let Splice { at, delete, insert } = one.clone();
                Command::Edit { note, at, delete, insert }
            }
            _ => Command::EditAll { note, edits: splices },
        };
        if self.send(command)
            && let Some(note) = self.driver.as_ref().and_then(|driver| driver.session().note(note))
        {
            self.here.editor.edited(&edits, note);
        }
        // What is refused is not in the note, and the caret stays where it was.
        self.here.editor.focus = true;
    }

    /// Moves rows of the open note, as one edit.
    pub(super) fn move_rows(&mut self, edits: Vec<Splice>, caret: Option<usize>) {
        let Some(note) = self.here.note else { return };
        if self.send(Command::EditAll { note, edits })
            && let (Some(caret), Some(note)) = (caret, self.driver.as_ref().and_then(|d| d.session().note(note)))
        {
            let edit = Edit { at: 0, delete: 0, insert: String::new(), caret, anchor: caret };
            self.here.editor.edited(&[edit], note);
            self.here.editor.focus = true;
        }
    }

    /// Moves rows into another note. They are written there before they go here: a refusal loses nothing.
    fn carry_rows(&mut self, held: page::Hold, to: DocId, edit: Splice, caret: usize) {
        let session = self.driver.as_ref().map(host::Driver::session);
        let revision = session.and_then(|session| session.note(held.note)).map(engine::Note::revision);
        if revision != Some(held.revision) {
            self.toasts.say("The note has changed meanwhile; the block stays where it is.");
            return;
        }
        if !self.send(Command::EditAll { note: to, edits: vec![edit] }) {
            return;
        }
        self.send(Command::EditAll { note: held.note, edits: vec![held.gone] });
        if self.here.note != Some(to)
            && let Some(pane) = self.panes.with(to)
        {
            self.go_to_pane(pane);
        }
        self.here.editor.place(caret);
    }

    /// Shows a note.
    pub(super) fn open(&mut self, note: DocId) {
        self.chose = true;
        self.view = None;
        if self.here.note == Some(note) || self.go_to_note(note) || !self.send(Command::OpenNote { note }) {
            return;
        }
        self.here.turn(Some(note));
        self.kept.retain(|kept| *kept != note);
        self.kept.push_front(note);
        // What has been left long ago is let go, unless its Python still holds variables.
        while self.kept.len() > KEPT {
            let Some(old) = self.kept.pop_back() else { break };
            if self.panes.with(old).is_some() {
                continue;
            }
            let session = self.driver.as_ref().map(host::Driver::session);
            let off = session
                .and_then(|session| session.note(old))
                .is_some_and(|note| note.kernel == engine::KernelPhase::Off);
            if off {
                self.send(Command::CloseNote { note: old });
            }
        }
    }

    /// Opens at the start what was open last, or what a first look should see.
    pub(super) fn choose_first(&mut self, ctx: &egui::Context) {
        if self.chose {
            return;
        }
        let Some(session) = self.driver.as_ref().map(host::Driver::session) else { return };
        if let Some(note) = self.wanted {
            if session.place(note).is_some() {
                self.open(note);
                ctx.request_repaint();
                return;
            }
            if session.volumes().all(|volume| volume.known && volume.scans > 0) && session.is_open() {
                self.wanted = None;
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
            self.chose = true;
        }
    }

    /// The cell that holds the caret.
    pub(super) fn cell_of_caret(&mut self, ctx: &egui::Context) -> Option<BlockId> {
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(ctx, dark, |world, editor, _| {
            let target = editor.target(world)?;
            (target.kind == Kind::Cell).then(|| target.spot.map(|spot| world.sheet.piece(spot.block).id)).flatten()
        })?
    }

    /// Performs a command of the table.
    pub(super) fn run(&mut self, ctx: &egui::Context, what: What) {
        self.ran.push_back(if let What::RunCell { .. } = what { What::RunCell { on: false } } else { what });
        if self.ran.len() > RAN {
            self.ran.pop_front();
        }
        let note = self.here.note;
        let on_note = |command: fn(DocId) -> Command| note.map(command);
        match what {
            What::Palette => {
                self.overlay = Overlay::Palette(Palette::commands(&self.recent));
            }
            What::Switcher => {
                if let Some(driver) = &self.driver {
                    self.overlay = Overlay::Palette(Palette::notes(driver.session(), note));
                }
            }
            What::Search => self.open_search(),
            What::NewCollection => self.new_collection(),
            What::TurnView { back } => self.turn_view(back),
            What::Figure(turn) => {
                if self.view.is_some() || !self.here.page.cells.figures.turn(ctx, turn) {
                    self.toasts.say("No figure is in sight here.");
                }
            }
            What::NewNote => self.ask_name(String::new(), None),
            What::OpenFolder => {
                self.overlay = Overlay::Dialog(Dialog::OpenFolder { path: String::new(), trouble: None });
            }
            What::Rescan => self.rescan(),
            What::CloseVolume => self.close_volume(),
            What::Save => {
                if self.send(Command::Save) {
                    self.status.saved();
                }
            }
            What::Undo if self.in_collection() => self.undo_deed(ctx, false),
            What::Redo if self.in_collection() => self.undo_deed(ctx, true),
            What::Undo => self.undo(false),
            What::Redo => self.undo(true),
            What::CloseNote => self.close_tab(self.here.id),
            What::NewTab => {
                self.new_tab(None);
                self.run(ctx, What::Switcher);
            }
            What::ReopenTab => self.reopen_tab(),
            What::NextTab => self.turn_tabs(false),
            What::PreviousTab => self.turn_tabs(true),
            What::SplitRight => self.split(LinearDir::Horizontal),
            What::SplitDown => self.split(LinearDir::Vertical),
            What::RunCell { on } => self.run_cell(ctx, on),
            What::RunAll => self.note_command(on_note(|note| Command::RunAll { note })),
            What::RunStale => self.note_command(on_note(|note| Command::RunStale { note })),
            What::RunClean => self.note_command(on_note(|note| Command::RunClean { note })),
            What::React(to) => self.note_command(note.map(|note| Command::SetReactivity { note, to })),
            What::Kernel => self.find_kernels(),
            What::Grant => self.ask_for_grant(),
            What::Variables => {
                let shown = self.prefs.right_open && self.variables.shown;
                (self.prefs.right_open, self.variables.shown) = (!shown, !shown);
                self.agent.shown = false;
            }
            What::Stop => self.note_command(on_note(|note| Command::Interrupt { note })),
            What::Restart => self.note_command(on_note(|note| Command::RestartKernel { note })),
            What::Left => self.prefs.left_open = !self.prefs.left_open,
            What::Right => self.prefs.right_open = !self.prefs.right_open,
            What::Theme => self.prefs.next_theme(),
            What::Spelling => self.toggle_spelling(),
            What::ScriptRuns => self.toggle_script_runs(),
            What::Correct => self.correct(ctx),
            What::Larger => self.prefs.step(0.1),
            What::Smaller => self.prefs.step(-0.1),
            What::NormalSize => self.prefs.scale = 1.0,
            What::Find => self.open_find(false),
            What::Replace => self.open_find(true),
            What::NextMatch => self.next_match(false),
            What::PreviousMatch => self.next_match(true),
            What::Fold => self.fold_here(ctx),
            What::FoldAll => self.fold_all(ctx, true),
            What::UnfoldAll => self.fold_all(ctx, false),
            What::SelectNext => self.select_same(ctx, false),
            What::SelectAll => self.select_same(ctx, true),
            What::Go(go) => self.run_go(go),
            What::Write(writing) => self.run_writing(ctx, writing),
            What::Keys => self.open_settings(Section::Keys),
            What::Settings => self.open_settings(Section::Look),
            What::File(filing) => self.run_filing(filing),
            What::Agent(asked) => self.run_agent(asked),
            What::Remember(what) => self.run_remembering(what),
            What::Cells(wish) => self.run_cells(ctx, wish),
            What::Export(exporting) => self.run_exporting(ctx, exporting),
            What::Contrast => {
                let contrast = !self.prefs.contrast;
                self.set(ctx, vec![settings::Change::Contrast(contrast)]);
            }
            What::PastePlain => self.paste_plain(ctx),
            What::Quit => ctx.send_viewport_cmd(egui::ViewportCommand::Close),
        }
        ctx.request_repaint();
    }

    pub(super) fn open_settings(&mut self, section: Section) {
        let Some(driver) = &self.driver else { return };
        self.overlay = Overlay::Settings(Box::new(settings::Page::new(
            section,
            driver.search().clone(),
            driver.folder().to_path_buf(),
        )));
    }

    /// Sets something and puts it into force.
    pub(super) fn set(&mut self, ctx: &egui::Context, changes: Vec<settings::Change>) {
        let Some(driver) = self.driver.as_ref().filter(|_| !changes.is_empty()) else { return };
        let mut settings = driver.session().settings().clone();
        self.prefs.put(&mut settings);
        self.tree.put(&mut settings);
        let close = changes.iter().any(|change| matches!(change, settings::Change::CloseTabs));
        let resize = changes.iter().any(|change| matches!(change, settings::Change::WindowSize));
        changes.into_iter().for_each(|change| change.make(&mut settings));
        if close {
            self.close_other_tabs();
        }
        if resize {
            ctx.send_viewport_cmd(egui::ViewportCommand::InnerSize(settings.window.into()));
        }
        self.tree.set(&settings);
        if self.send(Command::Set { settings: Box::new(settings.clone()) }) {
            self.shortcuts = commands::shortcuts(&settings);
            self.prefs.take(&settings);
        }
        ctx.request_repaint();
    }

    fn note_command(&mut self, command: Option<Command>) {
        match command {
            Some(command) => _ = self.send(command),
            None => self.toasts.say("No note is open."),
        }
    }

    fn rescan(&mut self) {
        let roots: Vec<PathBuf> = match &self.driver {
            Some(driver) => driver.session().volumes().filter_map(|volume| volume.root.clone()).collect(),
            None => Vec::new(),
        };
        for folder in roots {
            self.send(Command::OpenFolder { folder, name: None });
        }
    }

    fn close_volume(&mut self) {
        let volume =
            self.driver.as_ref().and_then(|driver| driver.session().place(self.here.note?).map(|(volume, _)| volume));
        let Some(volume) = volume else {
            self.toasts.say("Open a note of the volume first.");
            return;
        };
        if self.send(Command::CloseVolume { volume }) {
            self.here.turn(None);
            let session = self.driver.as_ref().map(host::Driver::session);
            self.kept.retain(|note| session.is_some_and(|session| session.note(*note).is_some()));
        }
    }

    pub(super) fn undo(&mut self, redo: bool) {
        let Some(note) = self.here.note else { return };
        let revision =
            self.driver.as_ref().and_then(|driver| driver.session().note(note)).map_or(0, engine::Note::revision);
        let command = if redo { Command::Redo { note } } else { Command::Undo { note } };
        if self.send(command)
            && let Some(note) = self.driver.as_ref().and_then(|driver| driver.session().note(note))
        {
            self.here.editor.follow(revision, note);
        }
    }

    fn run_cell(&mut self, ctx: &egui::Context, on: bool) {
        let (Some(note), Some(cell)) = (self.here.note, self.cell_of_caret(ctx)) else {
            self.toasts.say("Put the caret into a Python cell first; a cell starts with ```python.");
            return;
        };
        if !self.send(Command::Run { note, cell }) {
            return;
        }
        if self.preset() == Preset::Jupyter {
            self.after_run(ctx, on);
            return;
        }
        if !on {
            return;
        }
        let dark = ctx.global_style().visuals.dark_mode;
        self.with_note(ctx, dark, |world, editor, _| {
            let Some(target) = editor.target(world) else { return };
            match target.spot.and_then(|spot| world.after(spot)) {
                Some(after) => {
                    let at = world.sheet.start(after.block)
                        + world.rows(after.block).get(after.row).map_or(0, |row| row.content.start);
                    editor.place(at);
                }
                None => page::go_behind(world, editor),
            }
        });
    }

    /// Says what a clean run found, once.
    pub(super) fn say_verdict(&mut self) {
        let Some(note) = self.driver.as_ref().and_then(|driver| driver.session().note(self.here.note?)) else { return };
        let Some((count, _)) = note.verdict() else { return };
        if self.verdicts.insert(note.id, count) != Some(count)
            && let Some(words) = note.verdict_words()
        {
            self.toasts.say(words + ".");
        }
    }

    pub(super) fn ask_name(&mut self, name: String, volume: Option<DocId>) {
        let Some(session) = self.driver.as_ref().map(host::Driver::session) else { return };
        let volumes: Vec<(DocId, String)> = session
            .volumes()
            .filter(|volume| volume.root.is_some())
            .map(|volume| (volume.id, volume.name.clone()))
            .collect();
        if volumes.is_empty() {
            self.overlay = Overlay::Dialog(Dialog::OpenFolder { path: String::new(), trouble: None });
            self.toasts.say("A note lies in a folder: open one first.");
            return;
        }
        let own = volume.or_else(|| Some(session.place(self.here.note?)?.0));
        let chosen = volumes.iter().position(|(id, _)| Some(*id) == own).unwrap_or(0);
        self.overlay = Overlay::Dialog(Dialog::NewNote { volumes, chosen, name, trouble: None });
    }

    /// Makes a note and shows it, with the caret in it. Gives why not.
    fn make_note(&mut self, volume: DocId, path: &str) -> Result<(), String> {
        let Some(driver) = &mut self.driver else { return Ok(()) };
        let command = Command::NewNote { volume, path: path.to_owned(), text: String::new() };
        driver.command(command).map_err(|reject| ui::text::sentence(&reject.0))?;
        let known = driver.session().volume(volume).and_then(|volume| {
            let with_ending = format!("{}.md", path.trim_start_matches("./"));
            volume.files.get(path).or_else(|| volume.files.get(&with_ending)).map(|row| row.id)
        });
        if let Some(note) = known {
            self.open(note);
            self.here.editor.place(0);
        }
        Ok(())
    }

    /// What was chosen in a palette.
    pub(super) fn chosen(&mut self, ctx: &egui::Context, choice: Choice) {
        self.close_overlay();
        match choice {
            Choice::Command(id) => {
                self.recent.retain(|recent| *recent != id);
                self.recent.insert(0, id);
                if let Some(what) = commands::what(id) {
                    self.run(ctx, what);
                }
            }
            Choice::Note(note) => {
                self.open(note);
                if self.here.editor.caret.is_none() {
                    self.here.page.restore(&mut self.here.editor);
                }
            }
            Choice::New(name) => self.ask_name(name, None),
            Choice::Search(text) => self.open_search_for(&text),
            Choice::Template(note) => self.insert_template(note),
            Choice::Word { range, word } => self.put_word(ctx, range, word),
            Choice::Learn(word) => self.learn_word(word),
            Choice::Kernel(name) => self.use_kernel(name, None),
            Choice::Line(line) => {
                self.record_line(&line);
                self.run_line(ctx, &line);
            }
        }
        ctx.request_repaint();
    }

    /// What was decided in a dialog.
    pub(super) fn decided(&mut self, ctx: &egui::Context, decision: Decision) {
        let refused = match decision {
            Decision::NewNote { volume, path } => self.make_note(volume, &path).err(),
            Decision::RenameFolder { volume, from, path } => self.rename_folder(volume, &from, &path).err(),
            Decision::Rename { file, path } => self.rename(file, &path).err(),
            Decision::OpenFolder { path } => match ui::text::absolute(&path) {
                Some(folder) => {
                    let driver = self.driver.as_mut();
                    driver
                        .and_then(|driver| driver.command(Command::OpenFolder { folder, name: None }).err())
                        .map(|reject| ui::text::sentence(&reject.0))
                }
                None => Some("Give the whole path, beginning with / or ~.".to_owned()),
            },
            Decision::Discard { files } => {
                self.send(Command::Discard { files });
                None
            }
            Decision::Export { kind, what, paper, dest } => match ui::text::absolute(&dest) {
                Some(dest) => self.begin_export(ctx, kind, what, paper, &dest).err(),
                None => Some("Give the whole path, beginning with / or ~.".to_owned()),
            },
            Decision::SaveOutput { save, dest } => match ui::text::absolute(&dest) {
                Some(dest) => self.save_output(ctx, save, dest).err(),
                None => Some("Give the whole path, beginning with / or ~.".to_owned()),
            },
            Decision::AllowKernel { name, print } => {
                self.use_kernel(Some(name), Some(print));
                None
            }
            Decision::Grant { note, grant } => self.grant(note, grant).err(),
            Decision::Share { volume, hub } => self.share(volume, hub).err(),
            Decision::Join { address, folder } => match ui::text::absolute(&folder) {
                Some(folder) => self.join(ctx, address, folder).err(),
                None => Some("Give the whole path, beginning with / or ~.".to_owned()),
            },
            Decision::CloseAnyway => {
                self.closing = Closing::Yes;
                ctx.send_viewport_cmd(egui::ViewportCommand::Close);
                None
            }
            Decision::Never => {
                if self.closing == Closing::Asked {
                    self.closing = Closing::No;
                }
                None
            }
        };
        match (refused, &mut self.overlay) {
            (Some(why), Overlay::Dialog(dialog)) => dialog.refuse(why),
            _ => self.close_overlay(),
        }
        ctx.request_repaint();
    }

    /// What floats goes; the note has the keyboard again.
    pub(super) fn close_overlay(&mut self) {
        self.overlay = Overlay::None;
        self.here.editor.focus = self.here.editor.caret.is_some();
    }

    /// Draws what floats.
    pub(super) fn overlays(&mut self, ctx: &egui::Context) {
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ui::tokens::Colours::dark(dark);
        self.slash_menu(ctx);
        self.exports(ctx);
        match &mut self.overlay {
            Overlay::None => {}
            Overlay::Palette(palette) => match palette.show(ctx, colours, dark) {
                Some(Some(choice)) => self.chosen(ctx, choice),
                Some(None) => self.close_overlay(),
                None => {}
            },
            Overlay::Search(seek) => {
                let (what, kept, linked) = (seek.show(ctx, colours, dark), seek.taken(), seek.linked());
                match what {
                    Some(Some(aim)) => self.go_to_hit(aim),
                    Some(None) => self.close_overlay(),
                    None => {}
                }
                if let Some((query, keep)) = kept {
                    self.keep_search(ctx, &query, keep);
                }
                // A run's steps keep their names as they are.
                if let Some(note) =
                    linked.filter(|note| self.session().is_some_and(|session| session.place(*note).is_some()))
                {
                    // An edit of nothing: the note has a document from now on, so its blocks keep their names whatever
                    // other programs write into its file.
                    self.send(Command::Amend { note, at: 0, old: String::new(), new: String::new() });
                }
            }
            Overlay::Dialog(dialog) => {
                if let Some(decision) = dialog.show(ctx, colours, dark) {
                    self.decided(ctx, decision);
                }
            }
            Overlay::Settings(page) => {
                let Some(driver) = &self.driver else { return };
                let session = driver.session();
                let (changes, close) = page.show(ctx, session.settings(), session.agents(), dark);
                let wishes = std::mem::take(&mut page.wishes);
                wishes.into_iter().for_each(|wish| _ = self.send(wish));
                self.set(ctx, changes);
                if close {
                    self.close_overlay();
                }
            }
        }
        if let Some(what) = self.toasts.show(ctx, colours, dark).and_then(commands::what) {
            self.run(ctx, what);
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
