//! Keys on their way: to what floats, to the command table, to the note, to the text field, in this order. A key that
//! comes in the same frame behind typed text waits for the next one, so that it sees what was typed.

use super::commands::What;
use super::dialogs::{Decision, Dialog};
use super::editor;
use super::keys::{Done, replace_all};
use super::page::Action;
use super::turns::Turns;
use super::{Overlay, Window};
use eframe::egui;
use egui::{Event as Raw, Key, Modifiers};

impl Window {
    /// Takes this frame's keys out of the input, as far as they mean something here.
    pub(super) fn keyboard(&mut self, ctx: &egui::Context) {
        let events = ctx.input_mut(|input| std::mem::take(&mut input.events));
        let (mut keep, mut later, mut typed) = (Vec::with_capacity(events.len()), Vec::new(), false);
        for event in events {
            let about_keys = matches!(
                event,
                Raw::Key { pressed: true, .. } | Raw::Text(_) | Raw::Paste(_) | Raw::Cut | Raw::Copy | Raw::Ime(_)
            );
            if about_keys && !later.is_empty() {
                later.push(event);
                continue;
            }
            match &event {
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
                Raw::Text(_) | Raw::Paste(_) | Raw::Cut | Raw::Copy => {
                    if self.on_all(ctx, &event) {
                        continue;
                    }
                    typed = true;
                }
                _ => {}
            }
            keep.push(event);
        }
        ctx.input_mut(|input| input.events = keep);
        Turns::put_back(ctx, later);
    }

    /// Whether the keyboard belongs to the note.
    fn writes(&self, ctx: &egui::Context) -> bool {
        let focused = ctx.memory(|memory| memory.focused());
        self.here.editor.caret.is_some() && (focused == Some(editor::field()) || self.here.editor.focus)
    }

    fn key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if self.is_saving() {
            return true;
        }
        let what = self.shortcuts.iter().find(|shortcut| shortcut.fits(key, modifiers)).map(|shortcut| shortcut.what);
        if !matches!(self.overlay, Overlay::None) {
            return self.overlay_key(ctx, key, modifiers, what);
        }
        if let Some(what) = what
            && self.means(ctx, what)
        {
            self.run(ctx, what);
            return true;
        }
        let dark = ctx.global_style().visuals.dark_mode;
        if !self.writes(ctx) {
            return self.unfocused_key(ctx, key, modifiers);
        }
        let done = self.with_note(ctx, dark, |world, editor, page| {
            let done = editor.key(key, modifiers, world);
            if let Done::Page(direction) = done {
                page.leaf(direction, editor, world);
            }
            done
        });
        match done {
            Some(Done::Not) | None => false,
            Some(Done::Moved | Done::Page(_)) => true,
            Some(Done::Edit(edit)) => {
                self.perform(ctx, vec![Action::Edit(edit)]);
                self.here.editor.reveal = true;
                true
            }
        }
    }

    /// Whether a command's key means the command here: those that run a cell do in a cell.
    fn means(&mut self, ctx: &egui::Context, what: What) -> bool {
        match what {
            What::RunCell { .. } => self.writes(ctx) && self.cell_of_caret(ctx).is_some(),
            _ => true,
        }
    }

    /// Keys while nothing has the keyboard: the page can still be turned.
    fn unfocused_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if ctx.memory(|memory| memory.focused()).is_some() {
            return false;
        }
        match key {
            Key::PageDown if modifiers.is_none() => self.here.page.turn_by(1.0),
            Key::PageUp if modifiers.is_none() => self.here.page.turn_by(-1.0),
            Key::Home if modifiers.is_none() || modifiers.command_only() => self.here.page.jump(0),
            Key::End if modifiers.is_none() || modifiers.command_only() => self.here.page.jump(usize::MAX),
            Key::A if modifiers.command_only() && self.here.note.is_some() => {
                self.here.editor.place(0);
                (self.here.editor.all, self.here.editor.reveal) = (true, false);
            }
            _ => return false,
        }
        true
    }

    fn overlay_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers, what: Option<What>) -> bool {
        let closes = key == Key::Escape && modifiers.is_none();
        let enters = key == Key::Enter && modifiers.is_none();
        match &mut self.overlay {
            Overlay::None => false,
            Overlay::Palette(palette) => {
                if closes || matches!(what, Some(What::Palette | What::Switcher)) {
                    self.close_overlay();
                    if let Some(what) = what.filter(|_| !closes) {
                        self.run(ctx, what);
                    }
                    return true;
                }
                if enters {
                    let choice = palette.choice();
                    if let Some(choice) = choice {
                        self.chosen(ctx, choice);
                    }
                    return true;
                }
                modifiers.is_none() && palette.key(key)
            }
            Overlay::Dialog(dialog) => {
                if closes || (matches!(dialog, Dialog::Keys) && what == Some(What::Keys)) {
                    self.decided(ctx, Decision::Never);
                    return true;
                }
                // A button that has the focus answers Enter itself.
                let on_field =
                    ctx.memory(|memory| memory.focused()).is_none_or(|id| id == egui::Id::unique("dialog field"));
                if enters && on_field {
                    if let Some(decision) = dialog.enter() {
                        self.decided(ctx, decision);
                    }
                    return true;
                }
                matches!(what, Some(What::Quit)) && {
                    self.run(ctx, What::Quit);
                    true
                }
            }
        }
    }

    /// What is typed or copied while the whole note is selected.
    fn on_all(&mut self, ctx: &egui::Context, event: &Raw) -> bool {
        if !self.here.editor.all || !self.writes(ctx) || !matches!(self.overlay, Overlay::None) {
            return false;
        }
        let Some(note) = self.here.note.and_then(|note| self.driver.as_ref()?.session().note(note)) else {
            return false;
        };
        let insert = match event {
            Raw::Copy => {
                ctx.copy_text(note.text());
                return true;
            }
            Raw::Cut => {
                ctx.copy_text(note.text());
                ""
            }
            Raw::Text(text) | Raw::Paste(text) => text.as_str(),
            _ => return false,
        };
        let edit = replace_all(note.length(), insert);
        self.perform(ctx, vec![Action::Edit(edit)]);
        self.here.editor.focus = true;
        true
    }
}
