//! Key dispatch, in this order: overlays, the command table, the note, text fields.
//!
//! The note processes each key before the next one. A key that follows text for a text field in the same frame waits
//! for the next frame, so that it sees the text.

use super::commands::WindowCommand;
use crate::app_window::AppWindow;
use crate::overlays::command_palette::PaletteChoice;
use crate::overlays::dialogs::DialogDecision;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::commands::{CellCommand, FormatCommand};
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::cell_edits::CellEdit;
use editor::editor_keys::KeyOutcome;
use editor::input_order::InputOrder;
use editor::note_editor::{self, EditContext, Editor, ImePreedit, plain_ends};
use eframe::egui;
use egui::accesskit::{Action as Wish, ActionData, ActionRequest};
use egui::{Event as Raw, ImeEvent, Key, Modifiers};
use egui_tiles::LinearDir;
use notebook::actions::ClipboardCommand;

impl AppWindow {
    /// Handles this frame's keys and removes the handled ones from the input.
    pub(crate) fn dispatch_keys(&mut self, ctx: &egui::Context) {
        let events = ctx.input_mut(|input| std::mem::take(&mut input.events));
        let writes = self.panes.writes(ctx) && matches!(self.overlay, WindowOverlay::None);
        self.input.paste_lone_html(ctx, &events, writes);
        let events = self.input.filter_paste_events(&mut self.host, &mut self.panes, &mut self.notices, ctx, events);
        let (events, mut later) = self.filter_input_events(ctx, events);
        let (mut keep, mut typed) = (Vec::with_capacity(events.len()), false);
        let floats = |window: &AppWindow| {
            let names = window.panes.active.title_field.as_ref().map(|field| field.note);
            (!matches!(window.overlay, WindowOverlay::None), window.input.find.is_some(), names)
        };
        let begun = floats(self);
        for event in events {
            let about_keys = matches!(
                event,
                Raw::Key { pressed: true, .. }
                    | Raw::Text(_)
                    | Raw::Paste(_)
                    | Raw::PasteImage(_)
                    | Raw::Cut
                    | Raw::Copy
                    | Raw::Ime(_)
            );
            // A field that a key just opened gets the keyboard focus in the next frame.
            let waits = !later.is_empty() || (begun != floats(self));
            if about_keys && waits {
                later.push(event);
                continue;
            }
            match &event {
                Raw::PasteImage(picture) if self.panes.writes(ctx) => {
                    self.panes.paste_picture(&self.host, &mut self.input, &mut self.notices, ctx, picture.clone());
                    continue;
                }
                Raw::Key { key, pressed: true, modifiers, .. } => {
                    if typed {
                        later.push(event);
                        continue;
                    }
                    if self.key(ctx, *key, *modifiers) {
                        continue;
                    }
                    typed = true;
                }
                Raw::Text(_) | Raw::Paste(_) | Raw::Cut | Raw::Copy | Raw::Ime(_) => {
                    if self.text(ctx, &event) {
                        continue;
                    }
                    typed = true;
                }
                Raw::AccessKitActionRequest(request)
                    if self.panes.handle_accessibility_action(&mut self.host, &mut self.notices, ctx, request) =>
                {
                    continue;
                }
                _ => {}
            }
            keep.push(event);
        }
        ctx.input_mut(|input| input.events = keep);
        InputOrder::requeue_events(ctx, later);
    }

    fn key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if self.shutdown.is_saving() {
            return true;
        }
        if self.panes.active.page.has_menu() {
            // These keys move within the menu and choose from it.
            if matches!(key, Key::ArrowUp | Key::ArrowDown | Key::Tab | Key::Enter | Key::Space) {
                return false;
            }
            self.panes.close_menu();
            if key == Key::Escape {
                return true;
            }
        }
        let what = self.input.shortcuts.command_for(key, modifiers);
        if !matches!(self.overlay, WindowOverlay::None) {
            return self.overlay_key(ctx, key, modifiers, what);
        }
        if key == Key::Escape && self.panes.release_dragged_rows() {
            return true;
        }
        if self.panes.writes(ctx) && self.vim_escape(ctx, key, modifiers) {
            return true;
        }
        if self.input.complete_key(&mut self.host, &mut self.panes, &mut self.notices, key, modifiers)
            || (self.panes.writes(ctx)
                && self.input.code_key(&mut self.host, &mut self.panes, &mut self.notices, ctx, key, modifiers))
        {
            return true;
        }
        if self.panes.writes(ctx) && self.input.is_vims(&self.host, key, modifiers) {
            return self.vim_key(ctx, key, modifiers);
        }
        // With VS Code's keys, Ctrl+B makes selected text bold. Without a selection it toggles the left panel.
        let on_words = what == Some(WindowCommand::Left)
            && key == Key::B
            && self.panes.writes(ctx)
            && !self.panes.active.editor.selected().is_empty();
        let what = if on_words { Some(WindowCommand::Write(FormatCommand::Bold)) } else { what };
        if let Some(what) = what
            && self.panes.means(&self.host, ctx, what)
        {
            self.run_command(ctx, what);
            return true;
        }
        let mut actions = Vec::new();
        let is_used = self.dock.search_panel_key(&mut self.panes, ctx, (key, modifiers), &mut actions);
        self.perform_actions(ctx, actions);
        if is_used {
            return true;
        }
        if self.panes.view.is_some() {
            let closes = key == Key::Escape && modifiers.is_none();
            self.panes.view = self.panes.view.take().filter(|_| !closes);
            self.panes.active.editor.focus = closes && self.panes.active.editor.caret.is_some();
            return closes;
        }
        if self.find_key(ctx, key, modifiers) {
            return true;
        }
        if !self.panes.writes(ctx) {
            return self.panes.unfocused_key(&self.host, ctx, key, modifiers);
        }
        if self.input.slash_key(&mut self.host, &mut self.panes, &mut self.notices, ctx, key, modifiers) {
            return true;
        }
        if self.vim_key(ctx, key, modifiers) || self.input.jupyter_key(&self.host, &mut self.panes, ctx, key, modifiers)
        {
            return true;
        }
        if key == Key::Escape && modifiers.is_none() {
            return self.panes.escape(&self.host, &mut self.input);
        }
        self.panes.write(
            &mut self.host,
            &mut self.notices,
            ctx,
            |editor, world| editor.key(key, modifiers, world),
            modifiers.shift,
        )
    }

    fn overlay_key(
        &mut self,
        ctx: &egui::Context,
        key: Key,
        modifiers: Modifiers,
        what: Option<WindowCommand>,
    ) -> bool {
        let closes = key == Key::Escape && modifiers.is_none();
        let enters = key == Key::Enter && modifiers.is_none();
        match &mut self.overlay {
            WindowOverlay::None => false,
            WindowOverlay::Palette(palette) => {
                if what == Some(WindowCommand::Search) && !palette.typed_query().is_empty() {
                    let text = palette.typed_query().to_owned();
                    self.panes.close_overlay(&mut self.overlay);
                    self.overlay.open_search_for(&self.host, &text);
                    return true;
                }
                if closes
                    || matches!(what, Some(WindowCommand::Palette | WindowCommand::Switcher | WindowCommand::Search))
                {
                    self.panes.close_overlay(&mut self.overlay);
                    if let Some(what) = what.filter(|_| !closes) {
                        self.run_command(ctx, what);
                    }
                    return true;
                }
                let beside = key == Key::Enter && modifiers.command_only();
                if enters || beside {
                    if let Some(choice) = palette.take_choice() {
                        let is_place = matches!(choice, PaletteChoice::Note(_) | PaletteChoice::Heading(..));
                        if beside && is_place && self.panes.active.note.is_some() {
                            self.panes.split(&mut self.host, &mut self.notices, LinearDir::Horizontal);
                        }
                        self.apply_palette_choice(ctx, choice);
                    }
                    return true;
                }
                modifiers.is_none() && palette.key(key)
            }
            WindowOverlay::Settings(page) => {
                if page.is_asking() {
                    let change = page.key(key, modifiers, self.host.session().settings());
                    self.set(ctx, change.into_iter().collect());
                    ctx.request_repaint();
                    return true;
                }
                let again = matches!(what, Some(WindowCommand::Keys | WindowCommand::Settings));
                if closes || again {
                    self.panes.close_overlay(&mut self.overlay);
                }
                closes || again
            }
            WindowOverlay::Search(seek) => {
                if closes || matches!(what, Some(WindowCommand::Palette | WindowCommand::Switcher)) {
                    self.panes.close_overlay(&mut self.overlay);
                    if let Some(what) = what.filter(|_| !closes) {
                        self.run_command(ctx, what);
                    }
                    return true;
                }
                if enters {
                    if let Some(aim) = seek.take_choice() {
                        self.panes.go_to_hit(
                            &mut self.host,
                            &mut self.dock,
                            &mut self.overlay,
                            &mut self.notices,
                            &mut self.prefs,
                            aim,
                        );
                    }
                    return true;
                }
                if modifiers.matches_exact(Modifiers::COMMAND) && key == Key::D {
                    seek.toggle_saved_search();
                    return true;
                }
                modifiers.is_none() && seek.key(key)
            }
            WindowOverlay::Dialog(dialog) => {
                if closes {
                    if !dialog.is_busy() {
                        self.apply_dialog_decision(ctx, DialogDecision::Never);
                    }
                    return true;
                }
                // A focused button handles Enter itself.
                let on_field = ctx.memory(|memory| memory.focused()).is_none_or(|id| {
                    ["dialog field", "dialog folder"].into_iter().any(|name| id == egui::Id::unique(name))
                });
                if enters && on_field {
                    if let Some(decision) = dialog.decision_on_enter() {
                        self.apply_dialog_decision(ctx, decision);
                    }
                    return true;
                }
                matches!(what, Some(WindowCommand::Quit)) && {
                    self.run_command(ctx, WindowCommand::Quit);
                    true
                }
            }
        }
    }

    /// Handles text that is typed, composed, pasted, copied or cut in the note. Returns whether it was used.
    fn text(&mut self, ctx: &egui::Context, event: &Raw) -> bool {
        if matches!(event, Raw::Text(_)) {
            self.panes.close_menu();
            self.panes.take_caret(&self.host, &mut self.overlay, &mut self.input, ctx);
        }
        if self.shutdown.is_saving() || !self.panes.writes(ctx) || !matches!(self.overlay, WindowOverlay::None) {
            return false;
        }
        match event {
            // Enter has already arrived as a key.
            Raw::Text(text) if matches!(text.as_str(), "" | "\n" | "\r") => true,
            Raw::Paste(text) if self.vim_paste(ctx, text) => true,
            Raw::Cut if self.vim_cut(ctx) => true,
            Raw::Paste(text) => self.input.start_paste(&mut self.host, &mut self.panes, &mut self.notices, ctx, text),
            Raw::Text(text) if self.vim_text(ctx, text) || self.jupyter_text(ctx, text) => true,
            Raw::Text(text) => {
                let done = self.panes.write(
                    &mut self.host,
                    &mut self.notices,
                    ctx,
                    |editor, world| editor.write(text, world),
                    false,
                );
                self.input.sync_slash(&self.host, &mut self.panes, ctx, text == "/");
                done
            }
            Raw::Copy | Raw::Cut => {
                let text = self.panes.selected_text(&self.host);
                if text.is_empty() {
                    return false;
                }
                ctx.copy_text(text);
                *event == Raw::Copy
                    || self.panes.write(
                        &mut self.host,
                        &mut self.notices,
                        ctx,
                        |editor, world| editor.write("", world),
                        false,
                    )
            }
            Raw::Ime(event) => self.composed(ctx, event),
            _ => false,
        }
    }

    /// Performs a clipboard command from a menu.
    pub(crate) fn use_clipboard(&mut self, ctx: &egui::Context, command: ClipboardCommand) {
        self.panes.active.editor.focus = self.panes.active.editor.caret.is_some();
        match command {
            ClipboardCommand::Cut => _ = self.text(ctx, &Raw::Cut),
            ClipboardCommand::Copy => _ = self.text(ctx, &Raw::Copy),
            ClipboardCommand::Paste => self.input.request_paste(ctx),
            ClipboardCommand::PastePlain => self.input.paste_plain(ctx),
        }
    }

    fn composed(&mut self, ctx: &egui::Context, event: &ImeEvent) -> bool {
        match event {
            ImeEvent::Preedit { text, .. } if matches!(text.as_str(), "" | "\n" | "\r") => {
                self.panes.active.editor.preedit = None
            }
            ImeEvent::Preedit { text, active_range_chars } => {
                self.panes.active.editor.preedit =
                    Some(ImePreedit { text: text.clone(), active: active_range_chars.clone() });
                self.panes.active.editor.reveal = true;
            }
            ImeEvent::Commit(text) => {
                self.panes.active.editor.preedit = None;
                if !matches!(text.as_str(), "" | "\n" | "\r") && !self.vim_text(ctx, text) {
                    self.panes.write(
                        &mut self.host,
                        &mut self.notices,
                        ctx,
                        |editor, world| editor.write(text, world),
                        false,
                    );
                }
            }
            ImeEvent::DeleteSurrounding { before_chars, after_chars } => {
                let (before, behind) = (*before_chars, *after_chars);
                self.panes.write(
                    &mut self.host,
                    &mut self.notices,
                    ctx,
                    |editor, world| editor.delete_surrounding(before, behind, world),
                    false,
                );
            }
            #[allow(deprecated, reason = "egui sends them no longer; the match is whole")]
            ImeEvent::Enabled | ImeEvent::Disabled => {}
        }
        ctx.request_repaint();
        true
    }
}

impl PaneState {
    /// Returns whether the note has the keyboard focus.
    fn writes(&self, ctx: &egui::Context) -> bool {
        let focused = ctx.memory(|memory| memory.focused());
        self.view.is_none()
            && self.active.editor.caret.is_some()
            && (focused == Some(note_editor::field()) || self.active.editor.focus)
    }

    fn close_menu(&mut self) {
        self.active.page.close_menu(&mut self.active.editor);
    }

    /// Ends the innermost state: several carets, the find bar, a selection, or editing. Returns whether there was a
    /// caret.
    fn escape(&mut self, host: &HostLink, input: &mut InputState) -> bool {
        let Some(caret) = self.active.editor.caret else { return false };
        if !self.active.editor.more.is_empty() {
            self.active.editor.more.clear();
        } else if input.find.is_some() {
            self.close_find(host, input);
        } else if !caret.is_empty() {
            self.active.editor.place_caret(caret.at);
        } else {
            self.active.editor.end_editing();
        }
        true
    }

    /// Runs a step at every caret of the open note, and applies the resulting edits. Returns whether it did anything.
    pub(crate) fn write(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        step: impl FnMut(&mut Editor, &mut EditContext<'_>) -> KeyOutcome,
        extend: bool,
    ) -> bool {
        let dark = ctx.global_style().visuals.dark_mode;
        let now = ctx.input(|input| input.time);
        let done = self.with_note(host, ctx, dark, |world, editor, page| {
            let done = editor.for_each_caret(world, step);
            if let KeyOutcome::Page(direction) = done {
                let anchor = editor.caret.map(|caret| caret.anchor);
                page.move_caret_by_page(direction, editor, world);
                if let (Some(caret), Some(anchor)) = (&mut editor.caret, anchor.filter(|_| extend)) {
                    caret.anchor = anchor;
                }
            }
            editor.touched = now;
            done
        });
        ctx.request_repaint();
        match done {
            Some(KeyOutcome::Not) | None => false,
            Some(KeyOutcome::Moved | KeyOutcome::Page(_)) => true,
            Some(KeyOutcome::Edits(edits)) => {
                self.apply_edits(host, notices, edits);
                self.active.editor.reveal = true;
                true
            }
        }
    }

    /// Returns whether a command's key applies in the current place. Keys that run a cell do so only in a cell.
    fn means(&mut self, host: &HostLink, ctx: &egui::Context, what: WindowCommand) -> bool {
        match what {
            WindowCommand::RunCell { .. }
            | WindowCommand::Cells(CellCommand::RunInsert | CellCommand::Work(CellEdit::Split)) => {
                self.writes(ctx) && self.cell_of_caret(host, ctx).is_some()
            }
            WindowCommand::TurnView { .. } => self.has_collection(host),
            // Other text fields handle these keys themselves.
            WindowCommand::Undo | WindowCommand::Redo => !ctx.text_edit_focused(),
            WindowCommand::Write(_) | WindowCommand::SelectNext | WindowCommand::SelectAll => {
                self.writes(ctx) || (self.view.is_none() && ctx.memory(|memory| memory.focused()).is_none())
            }
            _ => true,
        }
    }

    /// Handles keys while nothing has the keyboard focus, so that the page can still be scrolled.
    fn unfocused_key(&mut self, host: &HostLink, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if ctx.memory(|memory| memory.focused()).is_some() {
            return false;
        }
        match key {
            Key::PageDown if modifiers.is_none() => self.active.page.turn_by(1.0),
            Key::PageUp if modifiers.is_none() => self.active.page.turn_by(-1.0),
            Key::Home if modifiers.is_none() || modifiers.command_only() => self.active.page.scroll_to_byte(0),
            Key::End if modifiers.is_none() || modifiers.command_only() => self.active.page.scroll_to_byte(usize::MAX),
            Key::A if modifiers.command_only() && self.active.note.is_some() => {
                let length = self.open_note(host).map_or(0, engine::Note::length);
                self.active.editor.select_all(length);
            }
            _ => return false,
        }
        true
    }

    /// Restores the caret for the first letter typed while letters are commands.
    fn take_caret(
        &mut self,
        host: &HostLink,
        overlay: &mut WindowOverlay,
        input: &mut InputState,
        ctx: &egui::Context,
    ) {
        let free = matches!(overlay, WindowOverlay::None) && self.view.is_none();
        let idle = self.active.editor.caret.is_none() && ctx.memory(|memory| memory.focused()).is_none();
        if free && idle && self.active.note.is_some() && input.commands_by_letter(host) {
            self.active.page.restore_caret(&mut self.active.editor);
        }
    }

    /// Handles text that a screen reader or another assistive program writes into the caret's row.
    fn handle_accessibility_action(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        request: &ActionRequest,
    ) -> bool {
        if request.target_node != note_editor::field().accesskit_id() {
            return false;
        }
        let Some(ActionData::Value(text)) = &request.data else { return false };
        match request.action {
            Wish::ReplaceSelectedText => {
                self.write(host, notices, ctx, |editor, world| editor.write(text, world), false)
            }
            Wish::SetValue => self.write(
                host,
                notices,
                ctx,
                |editor, world| {
                    let Some(target) = editor.edit_target(world) else { return KeyOutcome::Not };
                    let text = plain_ends(text);
                    KeyOutcome::edit(target.replace(0..target.shown.len(), &text, text.len()))
                },
                false,
            ),
            _ => false,
        }
    }

    /// Returns the selected source text.
    pub(crate) fn selected_text(&self, host: &HostLink) -> String {
        let Some(note) = self.open_note(host) else {
            return String::new();
        };
        let mut ranges = self.active.editor.selected();
        ranges.sort_by_key(|range| range.start);
        let parts: Vec<String> = ranges.into_iter().filter_map(|range| note.slice(range.start, range.len())).collect();
        parts.join("\n")
    }
}
