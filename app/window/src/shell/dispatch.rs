//! Dispatches commands of the command table, actions of views, palette choices and dialog decisions.

use super::commands::{self, ShortcutTable, TreeCommand, WindowCommand};
use crate::app_window::AppWindow;
use crate::overlays::command_palette::{CommandPalette, PaletteChoice};
use crate::overlays::dialogs::{Dialog, DialogDecision};
use crate::overlays::settings::{self, SettingsSection};
use crate::overlays::window_overlay::WindowOverlay;
use crate::pages::system_file::SystemFilePage;
use crate::pages::welcome::WelcomePage;
use crate::shell::dock_state::{LeftPanel, RightPanel};
use crate::shell::host_link::{HostLink, SafeMode};
use crate::shell::notice_state::NoticeState;
use crate::shell::page_view::PageView;
use crate::shell::pane_state::PaneState;
use crate::shell::shutdown::ShutdownState;
use anyhow::anyhow;
use eframe::egui;
use egui_tiles::LinearDir;
use engine::keymap::KeymapPreset;
use engine::{Command, KernelStateMove};
use notebook::actions::PageAction;
use notebook::page;
use std::path::PathBuf;
use store::DocId;

/// Maximum number of commands in the log of recently run ones.
const MAX_RECENT_COMMANDS: usize = 8;

impl AppWindow {
    /// Performs the actions that views returned.
    pub(crate) fn perform_actions(&mut self, ctx: &egui::Context, actions: Vec<PageAction>) {
        for action in actions {
            match action {
                PageAction::Do(command) => _ = self.host.send(command, &mut self.notices),
                PageAction::Run(id) => {
                    if let Some(what) = commands::window_command(id) {
                        self.run_command(ctx, what);
                    }
                }
                PageAction::InCell(cell, id) => {
                    if let Some(what) = commands::window_command(id)
                        && self.panes.place_caret_in_cell(&self.host, cell)
                    {
                        self.run_command(ctx, what);
                    }
                }
                PageAction::Clipboard(command) => self.use_clipboard(ctx, command),
                PageAction::Edit(edit) => self.panes.apply_edits(&mut self.host, &mut self.notices, vec![edit]),
                PageAction::Open(note) => self.panes.open(&mut self.host, &mut self.notices, note),
                PageAction::Hit(aim) => self.panes.go_to_hit(
                    &mut self.host,
                    &mut self.dock,
                    &mut self.overlay,
                    &mut self.notices,
                    &mut self.prefs,
                    aim,
                ),
                PageAction::OpenAt(note, at) => {
                    self.panes.open(&mut self.host, &mut self.notices, note);
                    self.panes.active.page.point_out(at);
                }
                PageAction::SearchFor(query) => {
                    self.dock.show_search_panel(&mut self.panes, &mut self.prefs, ctx);
                    self.dock.search.open_query(query);
                }
                PageAction::Replace { query, with, notes } => {
                    self.jobs.replacement.begin(&mut self.notices, query, with, notes)
                }
                PageAction::ShowWorkspace => {
                    let inside = self.host.driver.folder().join("config.yaml");
                    self.jobs.show_in_folder(&self.host, &mut self.notices, &inside);
                }
                PageAction::Rename(file) => self.overlay.ask_rename(&self.host, file),
                PageAction::File(file, action) => self.panes.run_file_action(
                    &mut self.host,
                    &mut self.input,
                    &mut self.notices,
                    &self.jobs,
                    ctx,
                    file,
                    action,
                ),
                PageAction::NameNote { note, name, writes } => {
                    self.panes.name_note(&mut self.host, &mut self.notices, note, &name, writes)
                }
                PageAction::Delete(file) => self.panes.delete(&mut self.host, &mut self.notices, file),
                PageAction::OpenBeside(note) => {
                    if !self.panes.go_to_note(&mut self.host, &mut self.notices, note) {
                        self.panes.new_tab(&mut self.host, &mut self.notices, Some(note));
                    }
                }
                PageAction::Tree(wish) => self.panes.apply_tree_action(
                    &mut self.host,
                    &mut self.overlay,
                    &mut self.notices,
                    &mut self.prefs,
                    ctx,
                    wish,
                ),
                PageAction::Here(pane) => self.panes.go_to_pane(&mut self.host, &mut self.notices, pane),
                PageAction::CloseTab(pane) => self.panes.close_tab(&mut self.host, &mut self.notices, pane),
                PageAction::Follow(link) => self.panes.follow_link(
                    &mut self.host,
                    &mut self.dock,
                    &mut self.overlay,
                    &mut self.notices,
                    &mut self.prefs,
                    (ctx, &link),
                ),
                PageAction::FollowBeside(link) => self.panes.follow_link_beside(
                    &mut self.host,
                    &mut self.dock,
                    &mut self.overlay,
                    &mut self.notices,
                    &mut self.prefs,
                    (ctx, &link),
                ),
                PageAction::FollowOutside(link) => ctx.open_url(egui::OpenUrl::new_tab(link)),
                PageAction::CopyPicture(name) => {
                    self.jobs.copy_picture(&self.host, &self.panes, &mut self.notices, ctx, &name)
                }
                PageAction::SavePicture(name) => {
                    self.panes.ask_save_picture(&self.host, &mut self.overlay, &mut self.notices, &name)
                }
                PageAction::Learn(word) => self.host.learn_word(&mut self.notices, word),
                PageAction::Move { edits, caret } => {
                    self.panes.move_rows(&mut self.host, &mut self.notices, edits, caret)
                }
                PageAction::Carry { from, to, edit, caret } => {
                    self.panes.carry_rows(&mut self.host, &mut self.notices, *from, to, edit, caret)
                }
                PageAction::Place(at) => self.panes.active.editor.place_caret(at),
                PageAction::Memory(wish) => {
                    self.dock.remember(&mut self.host, &mut self.panes, &mut self.notices, &mut self.prefs, *wish)
                }
                PageAction::ShowOutline => self.dock.toggle(RightPanel::Outline, &mut self.prefs.right_open),
                PageAction::ShowAgent => self.dock.show_pending_decision(&self.host, &mut self.prefs),
                PageAction::ShowStep(run, step) => self.panes.show_step(&mut self.host, &mut self.notices, run, step),
                PageAction::ShowSession(session) => self.dock.show_session(&mut self.prefs, session),
                PageAction::ShowChanges(run) => self.panes.show_changes(&mut self.host, &mut self.notices, run),
                PageAction::Say(text) => self.notices.toasts.show_message(text),
                PageAction::ToLine { cell, line } => self.panes.show_line(&self.host, &mut self.notices, cell, line),
                PageAction::SaveOutput(cell) => {
                    self.panes.ask_save(&self.host, &mut self.overlay, &mut self.notices, cell)
                }
                PageAction::SetTheme(theme) => self.set(ctx, vec![settings::SettingsChange::Theme(theme)]),
                PageAction::SetUpPython { cell, module } => {
                    self.overlay.ask_python_setup(&mut self.host, &self.panes, &mut self.notices, cell, module)
                }
                PageAction::ShowPackages { cell, missing } => self.overlay.show_packages(
                    &self.host,
                    &self.panes,
                    &mut self.notices,
                    (Some(cell), missing.as_deref()),
                ),
                PageAction::UseScience { cell, module } if self.host.science.status().installed.is_none() => {
                    self.overlay.show_science_pack(&self.host, Some(cell), Some(module))
                }
                PageAction::UseScience { cell, .. } => {
                    self.panes.use_science(&mut self.host, &mut self.overlay, &mut self.notices, Some(cell))
                }
                PageAction::ShowSystemFile(path) => {
                    self.panes.view = Some(PageView::SystemFile(SystemFilePage::new(path)))
                }
                PageAction::CopySystemFile(path) => {
                    self.panes.copy_system_file(&mut self.host, &mut self.notices, &self.jobs, ctx, &path)
                }
                PageAction::SourceControl(action) => self.host.use_source_control(&mut self.notices, ctx, action),
                PageAction::Share(volume) => self.overlay.ask_share(&self.host, volume),
                PageAction::Collection(collection, deed) => self.panes.apply_collection_edit(
                    &mut self.host,
                    &mut self.overlay,
                    &mut self.notices,
                    ctx,
                    collection,
                    deed,
                ),
            }
            ctx.request_repaint();
        }
    }

    /// Performs a command of the command table.
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
                self.overlay =
                    WindowOverlay::Palette(CommandPalette::commands(&self.input.recent, &self.input.shortcuts));
            }
            WindowCommand::Switcher => {
                self.overlay =
                    WindowOverlay::Palette(CommandPalette::notes(self.host.session(), note, &self.input.shortcuts));
            }
            WindowCommand::Collections => {
                self.overlay = WindowOverlay::Palette(CommandPalette::collections(self.host.session()));
            }
            WindowCommand::Search => self.overlay.open_search(&self.host),
            WindowCommand::SearchPanel => {
                self.dock.open_search_panel(&self.host, &mut self.panes, &mut self.prefs, ctx, false)
            }
            WindowCommand::ReplaceInNotes => {
                self.dock.open_search_panel(&self.host, &mut self.panes, &mut self.prefs, ctx, true)
            }
            WindowCommand::UndoReplaceInNotes => self.jobs.replacement.begin_undo(&mut self.notices),
            WindowCommand::NewCollection => {
                self.panes.new_collection(&mut self.host, &mut self.overlay, &mut self.notices)
            }
            WindowCommand::TurnView { back } => self.panes.turn_view(&self.host, &mut self.notices, back),
            WindowCommand::Figure(turn) => {
                if self.panes.view.is_some() || !self.panes.active.page.cells.figures.apply_figure_command(ctx, turn) {
                    self.notices.toasts.show_message("No figure is visible. Scroll to one first.");
                }
            }
            WindowCommand::NewNote => self.panes.new_untitled(&mut self.host, &mut self.overlay, &mut self.notices),
            WindowCommand::UndoNewNote => self.panes.undo_linked_note(&mut self.host, &mut self.notices),
            WindowCommand::NewNoteIn => {
                self.overlay.ask_name(&self.host, &mut self.panes, &mut self.notices, String::new(), None)
            }
            WindowCommand::OpenFolder => self.overlay.ask_folder(&self.host),
            WindowCommand::OpenRepository => self.overlay.ask_repository(),
            WindowCommand::UseObsidian => self.jobs.use_obsidian(&self.host, &self.panes, &mut self.notices, ctx),
            WindowCommand::Rescan => self.host.rescan(&mut self.notices),
            WindowCommand::CloseVolume => self.panes.close_volume(&mut self.host, &mut self.notices, &self.prefs, None),
            WindowCommand::ShowBlame => self.panes.toggle_blame(&self.host, &mut self.notices),
            WindowCommand::TrustVolume => self.panes.trust_volume(&mut self.host, &mut self.notices),
            WindowCommand::ReopenVolume => self.panes.reopen_volume(&mut self.host, &mut self.notices),
            WindowCommand::Save => {
                if self.host.send(Command::Save, &mut self.notices) {
                    self.notices.status.on_save_requested();
                }
            }
            WindowCommand::Undo if self.panes.in_collection(&self.host) => {
                self.panes.undo_collection_edit(&mut self.host, &mut self.notices, ctx, false)
            }
            WindowCommand::Redo if self.panes.in_collection(&self.host) => {
                self.panes.undo_collection_edit(&mut self.host, &mut self.notices, ctx, true)
            }
            WindowCommand::Undo => self.panes.undo(&mut self.host, &mut self.notices, false),
            WindowCommand::Redo => self.panes.undo(&mut self.host, &mut self.notices, true),
            WindowCommand::CloseNote => self.panes.close_tab(&mut self.host, &mut self.notices, self.panes.active.id),
            WindowCommand::NewTab => {
                self.panes.new_tab(&mut self.host, &mut self.notices, None);
                self.run_command(ctx, WindowCommand::Switcher);
            }
            WindowCommand::ReopenTab => self.panes.reopen_tab(&mut self.host, &mut self.notices),
            WindowCommand::NextTab => self.panes.turn_tabs(&mut self.host, &mut self.notices, false),
            WindowCommand::PreviousTab => self.panes.turn_tabs(&mut self.host, &mut self.notices, true),
            WindowCommand::SplitRight => self.panes.split(&mut self.host, &mut self.notices, LinearDir::Horizontal),
            WindowCommand::SplitDown => self.panes.split(&mut self.host, &mut self.notices, LinearDir::Vertical),
            WindowCommand::RunCell { on } => self.run_cell(ctx, on),
            WindowCommand::RunAll => {
                self.host.note_command(&mut self.notices, on_note(|note| Command::RunAll { note }))
            }
            WindowCommand::RunStale => {
                self.host.note_command(&mut self.notices, on_note(|note| Command::RunStale { note }))
            }
            WindowCommand::RunClean => {
                self.host.note_command(&mut self.notices, on_note(|note| Command::RunClean { note }))
            }
            WindowCommand::React(to) => {
                self.host.note_command(&mut self.notices, note.map(|note| Command::SetReactivity { note, to }))
            }
            WindowCommand::Kernel => self.panes.find_kernels(&mut self.host, &mut self.notices, &mut self.jobs),
            WindowCommand::Grant => self.overlay.ask_for_grant(&self.host, &mut self.panes, &mut self.notices),
            WindowCommand::Variables => {
                self.dock.toggle(RightPanel::Variables, &mut self.prefs.right_open);
            }
            WindowCommand::Stop => {
                self.host.note_command(&mut self.notices, on_note(|note| Command::Interrupt { note }))
            }
            WindowCommand::Restart => self.host.restart_kernel(&mut self.notices, note),
            WindowCommand::UndoRun { redo } => {
                let to = if redo { KernelStateMove::Redo } else { KernelStateMove::Undo };
                self.host.note_command(&mut self.notices, note.map(|note| Command::MoveState { note, to }))
            }
            WindowCommand::ReceiveState => {
                let take = |note| Command::MoveState { note, to: KernelStateMove::Receive };
                self.host.note_command(&mut self.notices, note.map(take))
            }
            WindowCommand::States(view) => {
                self.overlay.show_saved_states(&self.host, &self.panes, &mut self.notices, view)
            }
            WindowCommand::Packages => {
                self.overlay.show_packages(&self.host, &self.panes, &mut self.notices, (None, None))
            }
            WindowCommand::Region { back } => self.dock.regions.go_to_region(&mut self.panes, ctx, back),
            WindowCommand::Left => self.dock.toggle_left(self.dock.left, &mut self.prefs, ctx),
            WindowCommand::Files => self.dock.toggle_left(LeftPanel::Files, &mut self.prefs, ctx),
            WindowCommand::Tags => self.dock.toggle_left(LeftPanel::Tags, &mut self.prefs, ctx),
            WindowCommand::Tree(TreeCommand::Sort(order)) => {
                self.set(ctx, vec![settings::SettingsChange::TreeOrder(order)])
            }
            WindowCommand::Tree(TreeCommand::Collapse) => self.dock.tree.collapse_folders(),
            WindowCommand::Tree(TreeCommand::Reveal) => {
                self.dock.reveal_open_note(&self.host, &mut self.notices, (&mut self.prefs, ctx), note)
            }
            WindowCommand::Right => self.prefs.right_open = !self.prefs.right_open,
            WindowCommand::Theme => self.prefs.next_theme(),
            WindowCommand::Spelling => self.host.toggle_spelling(&mut self.notices),
            WindowCommand::ScriptRuns => self.host.toggle_script_runs(&mut self.notices),
            WindowCommand::Correct => self.panes.suggest_corrections(&self.host, &mut self.notices, ctx),
            WindowCommand::Larger => self.prefs.step_text_scale(0.1),
            WindowCommand::Smaller => self.prefs.step_text_scale(-0.1),
            WindowCommand::NormalSize => self.prefs.scale = 1.0,
            WindowCommand::Find => self.panes.open_find(&self.host, &mut self.input, &mut self.notices, false),
            WindowCommand::Replace => self.panes.open_find(&self.host, &mut self.input, &mut self.notices, true),
            WindowCommand::NextMatch => self.panes.next_match(&self.host, &mut self.input, &mut self.notices, false),
            WindowCommand::PreviousMatch => self.panes.next_match(&self.host, &mut self.input, &mut self.notices, true),
            WindowCommand::Fold => self.panes.fold_here(&self.host, &mut self.notices, ctx),
            WindowCommand::FoldAll => self.panes.fold_all(&self.host, ctx, true),
            WindowCommand::UnfoldAll => self.panes.fold_all(&self.host, ctx, false),
            WindowCommand::SelectNext => self.panes.select_same(&self.host, ctx, false),
            WindowCommand::SelectAll => self.panes.select_same(&self.host, ctx, true),
            WindowCommand::Go(go) => self.panes.run_go(
                &mut self.host,
                &mut self.dock,
                &mut self.overlay,
                &mut self.notices,
                &mut self.prefs,
                go,
            ),
            WindowCommand::Write(writing) => self.panes.run_writing(&mut self.host, &mut self.notices, ctx, writing),
            WindowCommand::Keys => self.overlay.open_settings(&self.host, SettingsSection::Keys),
            WindowCommand::Settings => self.overlay.open_settings(&self.host, SettingsSection::Appearance),
            WindowCommand::File(filing) => {
                self.panes.run_filing(&mut self.host, &mut self.overlay, &mut self.notices, &mut self.prefs, filing)
            }
            WindowCommand::Agent(asked) => {
                self.dock.run_agent(&mut self.host, &mut self.panes, &mut self.notices, &mut self.prefs, asked)
            }
            WindowCommand::Remember(what) => {
                self.panes.run_remembering(&mut self.host, &mut self.dock, &mut self.notices, what)
            }
            WindowCommand::Cells(wish) => self.run_cells(ctx, wish),
            WindowCommand::Export(exporting) => self.panes.run_exporting(
                &self.host,
                &mut self.overlay,
                &mut self.notices,
                &mut self.jobs,
                ctx,
                exporting,
            ),
            WindowCommand::Contrast => {
                let contrast = !self.prefs.contrast;
                self.set(ctx, vec![settings::SettingsChange::Contrast(contrast)]);
            }
            WindowCommand::ChooseTheme => self.overlay.choose_theme(&self.host, &mut self.notices),
            WindowCommand::PastePlain => self.input.paste_plain(ctx),
            WindowCommand::Sample => self.jobs.open_sample(&self.host, &mut self.panes, ctx),
            WindowCommand::Help => self.jobs.open_help(&self.host, ctx),
            WindowCommand::ReportBug => self.jobs.write_bug_report(&self.host, &mut self.notices, ctx),
            WindowCommand::Quit => ctx.send_viewport_cmd(egui::ViewportCommand::Close),
        }
        ctx.request_repaint();
    }

    /// Changes settings and applies them.
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
            self.panes.close_other_tabs(&mut self.host, &mut self.notices);
        }
        if resize {
            ctx.send_viewport_cmd(egui::ViewportCommand::InnerSize(settings.window.into()));
        }
        self.dock.tree.set(&settings);
        if self.host.send(Command::Set { settings: Box::new(settings.clone()) }, &mut self.notices) {
            self.input.shortcuts = ShortcutTable::from_settings(&settings);
            self.prefs.load_settings(&settings);
        }
        ctx.request_repaint();
    }

    /// Shows the welcome page once, applies the settings changed on it, and marks completed first steps.
    pub(crate) fn follow_first_steps(&mut self, ctx: &egui::Context) {
        let done = std::mem::take(&mut self.host.done_steps).into_iter();
        let mut changes: Vec<_> = done.map(settings::SettingsChange::FirstStepDone).collect();
        if let Some(PageView::Welcome(page)) = &mut self.panes.view {
            changes.append(&mut page.changes);
        }
        // Choosing the first note would close the page again.
        if self.host.session().settings().show_welcome && self.panes.has_chosen_note {
            self.panes.view = Some(PageView::Welcome(WelcomePage::default()));
            changes.push(settings::SettingsChange::Welcome(false));
        }
        self.set(ctx, changes);
    }

    fn run_cell(&mut self, ctx: &egui::Context, on: bool) {
        let (Some(note), Some(cell)) = (self.panes.active.note, self.panes.cell_of_caret(&self.host, ctx)) else {
            self.notices.toasts.show_message("Put the caret into a Python cell first; a cell starts with ```python.");
            return;
        };
        if !self.host.send(Command::Run { note, cell }, &mut self.notices) {
            return;
        }
        if self.host.preset() == KeymapPreset::Jupyter {
            self.after_run(ctx, on);
            return;
        }
        if !on {
            return;
        }
        let dark = ctx.global_style().visuals.dark_mode;
        self.panes.with_note(&self.host, ctx, dark, |world, editor, _| {
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

    /// Performs the user's choice in a palette.
    pub(crate) fn apply_palette_choice(&mut self, ctx: &egui::Context, choice: PaletteChoice) {
        self.panes.close_overlay(&mut self.overlay);
        match choice {
            PaletteChoice::Command(id) => {
                self.input.recent.retain(|recent| *recent != id);
                self.input.recent.insert(0, id);
                if let Some(what) = commands::window_command(id) {
                    self.run_command(ctx, what);
                }
            }
            PaletteChoice::Note(note) => {
                self.panes.open(&mut self.host, &mut self.notices, note);
                if self.panes.active.editor.caret.is_none() {
                    self.panes.active.page.restore_caret(&mut self.panes.active.editor);
                }
            }
            PaletteChoice::Heading(note, at) => {
                self.panes.open(&mut self.host, &mut self.notices, note);
                self.panes.active.page.point_out(at);
            }
            PaletteChoice::New(name) => {
                self.overlay.ask_name(&self.host, &mut self.panes, &mut self.notices, name, None)
            }
            PaletteChoice::Search(text) => self.overlay.open_search_for(&self.host, &text),
            PaletteChoice::Template(note) => self.panes.insert_template(&mut self.host, &mut self.notices, note),
            PaletteChoice::Theme(name) => self.set(ctx, vec![settings::SettingsChange::CustomTheme(name)]),
            PaletteChoice::Word { range, word } => {
                self.panes.replace_word(&mut self.host, &mut self.notices, ctx, range, word)
            }
            PaletteChoice::Learn(word) => self.host.learn_word(&mut self.notices, word),
            PaletteChoice::Kernel(name) => {
                self.panes.use_kernel(&mut self.host, &mut self.overlay, &mut self.notices, name, None)
            }
            PaletteChoice::SciencePack => self.overlay.show_science_pack(&self.host, None, None),
            PaletteChoice::Interpreter => self.overlay.ask_interpreter(&self.host, &self.panes, &mut self.notices),
            PaletteChoice::Line(line) => {
                self.input.record_line(&line);
                self.run_line(ctx, &line);
            }
        }
        ctx.request_repaint();
    }

    /// Performs the user's decision in a dialog.
    pub(crate) fn apply_dialog_decision(&mut self, ctx: &egui::Context, decision: DialogDecision) {
        let refused = match decision {
            DialogDecision::NewNote { volume, path } => {
                self.panes.make_note(&mut self.host, &mut self.notices, volume, &path).err()
            }
            DialogDecision::RenameFolder { volume, from, path } => self.host.rename_folder(volume, &from, &path).err(),
            DialogDecision::Rename { file, path } => self.host.rename(&mut self.notices, file, &path).err(),
            DialogDecision::QuickNote { text } => {
                self.panes.add_to_today(&mut self.host, &mut self.notices, &text).err()
            }
            DialogDecision::OpenFolder { folder } => {
                self.panes.open_folder(&mut self.host, &mut self.notices, &self.prefs, &folder, None).err()
            }
            DialogDecision::SubmitForm => return self.overlay.submit_form(ctx),
            DialogDecision::OpenRepository => return self.overlay.ask_repository(),
            DialogDecision::Discard { files } => {
                self.host.send(Command::Discard { files }, &mut self.notices);
                None
            }
            DialogDecision::Export { kind, what, paper, dest } => match ui::text::absolute(&dest) {
                Some(dest) => self.jobs.begin_export(&self.host, ctx, kind, what, paper, &dest).err(),
                None => Some(anyhow!("Give the whole path, beginning with / or ~.")),
            },
            DialogDecision::SaveOutput { save, dest } => match ui::text::absolute(&dest) {
                Some(dest) => self.jobs.save_output(ctx, save, dest).err(),
                None => Some(anyhow!("Give the whole path, beginning with / or ~.")),
            },
            DialogDecision::AllowKernel { name, print } => {
                self.panes.use_kernel(&mut self.host, &mut self.overlay, &mut self.notices, Some(name), Some(print));
                None
            }
            DialogDecision::ChooseKernel { name } => {
                // The kernel may need approval in a dialog of its own.
                self.panes.close_overlay(&mut self.overlay);
                self.panes.use_kernel(&mut self.host, &mut self.overlay, &mut self.notices, Some(name), None);
                return;
            }
            DialogDecision::UseScience { cell } if self.host.science.status().installed.is_none() => {
                self.overlay.show_science_pack(&self.host, cell, None);
                return;
            }
            DialogDecision::UseScience { cell } => {
                self.panes.close_overlay(&mut self.overlay);
                self.panes.use_science(&mut self.host, &mut self.overlay, &mut self.notices, cell);
                return;
            }
            DialogDecision::RerunCell { note, cell } => {
                self.host.rerun_cell(&mut self.notices, note, cell);
                None
            }
            DialogDecision::AddPackage => {
                if let WindowOverlay::Dialog(Dialog::NotePackages(form)) = &mut self.overlay {
                    form.add();
                }
                return ctx.request_repaint();
            }
            DialogDecision::ChangeSavedStates { note, change } => {
                self.overlay.change_saved_states(&mut self.host, note, change);
                return ctx.request_repaint();
            }
            DialogDecision::RunCell { note, cell } => {
                self.host.send(Command::Run { note, cell }, &mut self.notices);
                None
            }
            DialogDecision::UseInterpreter { note, interpreter } => {
                self.host.use_interpreter(&mut self.notices, note, interpreter).err()
            }
            DialogDecision::Grant { note, grant } => self.host.grant(&mut self.notices, note, grant).err(),
            DialogDecision::Share { volume, hub } => {
                self.panes.share(&mut self.host, &mut self.overlay, &mut self.notices, volume, hub).err()
            }
            DialogDecision::Join { address, folder } => match ui::text::absolute(&folder) {
                Some(folder) => {
                    let (host, overlay, notices) = (&mut self.host, &mut self.overlay, &mut self.notices);
                    self.panes.join_volume(host, overlay, notices, &self.jobs, ctx, (address, folder)).err()
                }
                None => Some(anyhow!("Give the whole path, beginning with / or ~.")),
            },
            DialogDecision::CloseAnyway => {
                self.shutdown = ShutdownState::Yes;
                ctx.send_viewport_cmd(egui::ViewportCommand::Close);
                None
            }
            DialogDecision::StopAndClose => {
                self.shutdown = ShutdownState::Confirmed;
                ctx.send_viewport_cmd(egui::ViewportCommand::Close);
                None
            }
            DialogDecision::StartSafely => return self.start_safely(),
            DialogDecision::ShowInFolder { path } => {
                self.jobs.show_in_folder(&self.host, &mut self.notices, &path);
                None
            }
            DialogDecision::Never => {
                if self.shutdown == ShutdownState::Asked {
                    self.shutdown = ShutdownState::No;
                }
                if self.host.safe_mode == SafeMode::Asked {
                    self.host.safe_mode = SafeMode::Off;
                    self.panes = PaneState::from_settings(self.host.session().settings());
                    self.start_normally();
                }
                None
            }
        };
        match (refused, &mut self.overlay) {
            (Some(why), WindowOverlay::Dialog(dialog)) => dialog.show_error(why.to_string()),
            _ => self.panes.close_overlay(&mut self.overlay),
        }
        ctx.request_repaint();
    }

    /// Draws dialogs, palette, menus and toasts.
    pub(crate) fn show_overlays(&mut self, ctx: &egui::Context) {
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ui::theme::ThemeColors::for_dark_mode(dark);
        self.panes.slash_menu(&mut self.host, &mut self.input, &mut self.notices, ctx);
        self.jobs.poll_export(&self.host, &mut self.notices, ctx);
        match &mut self.overlay {
            WindowOverlay::None => {}
            WindowOverlay::Palette(palette) => match palette.show(ctx, colours, dark) {
                Some(Some(choice)) => self.apply_palette_choice(ctx, choice),
                Some(None) => self.panes.close_overlay(&mut self.overlay),
                None => {}
            },
            WindowOverlay::Search(seek) => {
                let (what, kept, linked) =
                    (seek.show(ctx, colours, dark), seek.take_saved_change(), seek.take_copied_link());
                let panel_query = seek.take_panel_query();
                match what {
                    Some(Some(aim)) => self.panes.go_to_hit(
                        &mut self.host,
                        &mut self.dock,
                        &mut self.overlay,
                        &mut self.notices,
                        &mut self.prefs,
                        aim,
                    ),
                    Some(None) => self.panes.close_overlay(&mut self.overlay),
                    None => {}
                }
                let kept =
                    kept.and_then(|(query, keep)| self.host.saved_search_change(&mut self.notices, &query, keep));
                if let Some(change) = kept {
                    self.set(ctx, vec![change]);
                }
                if let Some(query) = panel_query {
                    self.panes.close_overlay(&mut self.overlay);
                    self.perform_actions(ctx, vec![PageAction::SearchFor(query)]);
                }
                // Steps of a run have stable IDs anyway.
                if let Some(note) = linked.filter(|note| self.host.session().locate_file(*note).is_some()) {
                    // An empty edit gives the note a document. Its blocks then keep their IDs whatever other programs
                    // write to the file.
                    self.host.send(
                        Command::Amend { note, at: 0, old: String::new(), new: String::new() },
                        &mut self.notices,
                    );
                }
            }
            WindowOverlay::Dialog(dialog) => {
                if let Some(decision) = dialog.show(ctx, colours, dark) {
                    self.apply_dialog_decision(ctx, decision);
                }
            }
            WindowOverlay::Settings(page) => {
                let (changes, close) = page.show(ctx, self.host.session(), dark);
                let wishes = std::mem::take(&mut page.wishes);
                wishes.into_iter().for_each(|wish| _ = self.host.send(wish, &mut self.notices));
                self.set(ctx, changes);
                if close {
                    self.panes.close_overlay(&mut self.overlay);
                }
            }
        }
        // They don't cover the field in which a message to the agent is written.
        let shows_agent = self.prefs.right_open && self.dock.right == RightPanel::Agent;
        let foot = ui::theme::size::STATUS_BAR_HEIGHT + if shows_agent { self.dock.agent.foot_height() } else { 0.0 };
        if let Some(what) = self.notices.toasts.show(ctx, colours, dark, foot).and_then(commands::window_command) {
            self.run_command(ctx, what);
        }
    }
}

impl WindowOverlay {
    pub(crate) fn open_settings(&mut self, host: &HostLink, section: SettingsSection) {
        *self = WindowOverlay::Settings(Box::new(settings::SettingsPage::new(
            section,
            (host.driver.search().clone(), host.server.clone(), host.folder_chooser.clone()),
            host.driver.folder().to_path_buf(),
        )));
    }

    pub(crate) fn ask_name(
        &mut self,
        host: &HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        name: String,
        volume: Option<DocId>,
    ) {
        let session = host.session();
        let volumes: Vec<(DocId, String)> = session
            .volumes()
            .filter(|volume| volume.root.is_some())
            .map(|volume| (volume.id, volume.name.clone()))
            .collect();
        if volumes.is_empty() {
            self.ask_folder(host);
            notices.toasts.show_message("Open a folder first. A note is a file in a folder.");
            return;
        }
        let own = volume.or_else(|| Some(session.locate_file(panes.active.note?)?.0));
        let chosen = volumes.iter().position(|(id, _)| Some(*id) == own).unwrap_or(0);
        *self = WindowOverlay::Dialog(Dialog::NewNote { volumes, chosen, name, trouble: None });
    }
}

impl HostLink {
    fn note_command(&mut self, notices: &mut NoticeState, command: Option<Command>) {
        match command {
            Some(command) => _ = self.send(command, notices),
            None => notices.toasts.show_message("No note is open."),
        }
    }

    fn rescan(&mut self, notices: &mut NoticeState) {
        let roots: Vec<PathBuf> = self.session().volumes().filter_map(|volume| volume.root.clone()).collect();
        for folder in roots {
            self.send(Command::OpenFolder { folder, name: None }, notices);
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
