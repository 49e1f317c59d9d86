//! Completes names in code and shows what they mean; asks the kernel.

use crate::app_window::AppWindow;
use crate::overlays::code_completion::{
    CodeContext, CodePosition, CompletionList, HoverCard, MIN_COMPLETION_CHARS, begins_number, known_names, show_card,
};
use crate::overlays::window_overlay::WindowOverlay;
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::{Key, Modifiers, Pos2};
use engine::KernelPhase;
use host::{CompletionChoice, InquiryAnswer, KernelInquiry};
use std::ops::Range;
use std::sync::mpsc::TryRecvError;

impl AppWindow {
    /// Checks whether the caret is in code, and draws available help.
    pub(crate) fn code_help(&mut self, ctx: &egui::Context) {
        self.receive_help();
        let place = self.place_in_code();
        if place != self.input.code_completion.seen {
            let before = std::mem::replace(&mut self.input.code_completion.seen, place);
            let typed = before
                .zip(place)
                .is_some_and(|((note, revision, at), now)| note == now.0 && revision != now.1 && now.2 > at);
            self.moved_in_code(typed);
        }
        self.rest_on_code();
        if !matches!(self.overlay, WindowOverlay::None) || self.panes.view.is_some() {
            (self.input.code_completion.list, self.input.code_completion.card) = (None, None);
        }
        let caret = self.panes.active.editor.stands;
        if let (Some(list), Some(caret)) = (&self.input.code_completion.list, caret) {
            if let Some(chosen) = list.show(ctx, caret.left_bottom()) {
                self.take_code(chosen);
            }
        } else if let Some(card) = &self.input.code_completion.card
            && let Some(text) = &card.text
            && let Some(at) = card.point.or(caret.map(|caret| caret.left_bottom()))
        {
            show_card(ctx, at, text);
        }
    }

    /// The place of the one caret, if nothing is selected.
    fn place_in_code(&self) -> Option<CodePosition> {
        let editor = &self.panes.active.editor;
        let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty() && !editor.behind)?;
        let note = self.panes.open_note(&self.host)?;
        Some((note.id, note.revision(), caret.at))
    }

    /// Whether a byte of the open note is in a cell's code.
    pub(crate) fn is_code(&self, at: usize) -> bool {
        self.code_context(at).is_some()
    }

    /// Returns the code around a byte of the open note, if it's in a cell.
    fn code_context(&self, at: usize) -> Option<CodeContext> {
        let note = self.panes.open_note(&self.host)?;
        let mut start = 0;
        for block in note.blocks() {
            let end = start + block.text.len();
            if (start..end).contains(&at) {
                let code = note.cell_parts(block.id)?.code.clone();
                let text = block.text.get(code.clone())?;
                let within = at.checked_sub(start + code.start).filter(|at| text.is_char_boundary(*at))?;
                let before = text.get(..within)?.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
                return Some(CodeContext {
                    place: (note.id, note.revision(), at),
                    code: text.to_owned(),
                    start: start + code.start,
                    at: within,
                    word: before.len(),
                });
            }
            start = end;
        }
        None
    }

    /// The caret has moved, because something was `typed` or not.
    fn moved_in_code(&mut self, typed: bool) {
        self.input.code_completion.card = None;
        let around = self.input.code_completion.seen.and_then(|(_, _, at)| self.code_context(at));
        let Some(around) = around.filter(|_| typed && !self.commands_by_letter()) else {
            (self.input.code_completion.list, self.input.code_completion.left) = (None, None);
            return;
        };
        let word = around.start + around.word;
        if self.input.code_completion.left.is_some_and(|left| left != word) {
            self.input.code_completion.left = None;
        }
        let begun = around.begins_name();
        let enough = around.typed().chars().count() >= MIN_COMPLETION_CHARS && begun
            || (around.dotted() && !begins_number(&around));
        let steered = match &mut self.input.code_completion.list {
            Some(list) if list.range.start == word => {
                list.narrow(around.typed(), word);
                list.steered
            }
            _ => {
                self.input.code_completion.list = None;
                false
            }
        };
        if (enough && self.input.code_completion.left.is_none()) || self.input.code_completion.list.is_some() {
            self.ask_names(around, steered);
        }
    }

    /// Requests completions.
    fn ask_names(&mut self, around: CodeContext, steered: bool) {
        let kernel = self.host.session().note(around.place.0).map(|note| note.kernel);
        if kernel == Some(KernelPhase::Idle) {
            let inquiry = KernelInquiry::Complete { code: around.code.clone(), at: around.at };
            if let Some(answer) = self.host.driver.ask_kernel(around.place.0, inquiry) {
                self.input.code_completion.waits = Some((around, answer, steered));
                return;
            }
        }
        let note = self.host.session().note(around.place.0);
        let choices = note.map(|note| known_names(note, &around)).unwrap_or_default();
        self.offer(&around, around.start + around.word..around.start + around.at, choices, steered);
    }

    /// Takes in what the kernel has answered.
    fn receive_help(&mut self) {
        if let Some(card) = &mut self.input.code_completion.card
            && let Some(waits) = &card.waits
        {
            match waits.try_recv() {
                Ok(InquiryAnswer::Description(text)) => {
                    card.text = text.map(|text| typeset::ansi::strip_codes(&text));
                    card.waits = None;
                }
                Ok(_) | Err(TryRecvError::Disconnected) => card.waits = None,
                Err(TryRecvError::Empty) => {}
            }
        }
        let Some((_, waits, _)) = &self.input.code_completion.waits else { return };
        let answer = match waits.try_recv() {
            Err(TryRecvError::Empty) => return,
            Ok(answer) => Some(answer),
            Err(TryRecvError::Disconnected) => None,
        };
        let Some((around, _, steered)) = self.input.code_completion.waits.take() else { return };
        // Drop answers for an earlier caret position.
        if self.place_in_code() != Some(around.place) {
            return;
        }
        if let Some(InquiryAnswer::Choices { from, to, mut choices }) = answer {
            let range = around.start + from..around.start + to;
            if range.end == around.place.2 && !around.dotted() && from == around.word {
                // Names that no run has bound yet.
                let more = self.host.session().note(around.place.0).map(|note| known_names(note, &around));
                for choice in more.into_iter().flatten() {
                    if !choices.iter().any(|known| known.text == choice.text) {
                        choices.push(choice);
                    }
                }
            }
            self.offer(&around, range, choices, steered);
        }
    }

    fn offer(&mut self, around: &CodeContext, range: Range<usize>, choices: Vec<CompletionChoice>, steered: bool) {
        // A word that is whole already needs no list.
        let whole = matches!(choices.as_slice(), [only] if only.text == around.typed());
        let fits = range.end == around.place.2 && !choices.is_empty() && !whole;
        self.input.code_completion.list = fits.then_some(CompletionList { range, choices, chosen: 0, steered });
    }

    /// A key while code is written. Whether it meant help.
    pub(crate) fn code_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if self.input.code_completion.card.take().is_some_and(|card| card.point.is_none()) && key == Key::Escape {
            return true;
        }
        // What was typed in this very frame is not in the list yet.
        let caret = self.panes.active.editor.caret.map(|caret| caret.at);
        self.input.code_completion.list.take_if(|list| Some(list.range.end) != caret);
        if let Some(list) = &mut self.input.code_completion.list {
            let (count, chosen, steered) = (list.choices.len(), list.chosen, list.steered);
            match key {
                Key::ArrowDown if modifiers.is_none() => list.step((list.chosen + 1) % count),
                Key::ArrowUp if modifiers.is_none() => list.step((list.chosen + count - 1) % count),
                Key::Tab if modifiers.is_none() => self.take_code(chosen),
                Key::Enter if modifiers.is_none() && steered => self.take_code(chosen),
                Key::Escape if modifiers.is_none() => {
                    self.input.code_completion.left = Some(list.range.start);
                    self.input.code_completion.list = None;
                }
                Key::Enter => {
                    self.input.code_completion.list = None;
                    return false;
                }
                _ => return false,
            }
            return true;
        }
        let tab = key == Key::Tab && (modifiers.is_none() || modifiers.shift_only());
        if !tab || self.panes.view.is_some() || self.commands_by_letter() {
            return false;
        }
        let Some(around) = self.place_in_code().and_then(|(_, _, at)| self.code_context(at)) else { return false };
        let in_word = around.begins_name() || (around.typed().is_empty() && around.dotted());
        // Where nothing is known, Tab moves the line in or out as everywhere.
        let known = if modifiers.is_none() {
            in_word && {
                self.ask_names(around, true);
                self.input.code_completion.waits.is_some() || self.input.code_completion.list.is_some()
            }
        } else {
            !around.line().trim().is_empty() && {
                let at = around.place.2;
                self.describe(&around, at, None);
                self.input.code_completion.card.is_some()
            }
        };
        if !known {
            return false;
        }
        ctx.request_repaint();
        true
    }

    pub(crate) fn describe(&mut self, around: &CodeContext, at: usize, point: Option<Pos2>) {
        let idle = self.host.session().note(around.place.0);
        if idle.is_none_or(|note| note.kernel != KernelPhase::Idle) {
            return;
        }
        let inquiry = KernelInquiry::Describe { code: around.code.clone(), at: around.at };
        let waits = self.host.driver.ask_kernel(around.place.0, inquiry);
        self.input.code_completion.card = waits.map(|waits| HoverCard { at, point, waits: Some(waits), text: None });
    }

    /// The pointer rests on a name, or has left it.
    fn rest_on_code(&mut self) {
        let resting = self.panes.active.page.resting;
        let by_pointer =
            self.input.code_completion.card.as_ref().filter(|card| card.point.is_some()).map(|card| card.at);
        let Some((at, point)) = resting else {
            if by_pointer.is_some() {
                self.input.code_completion.card = None;
            }
            return;
        };
        if by_pointer == Some(at)
            || self.input.code_completion.list.is_some()
            || (self.input.code_completion.card.is_some() && by_pointer.is_none())
        {
            return;
        }
        let on_name = |around: &CodeContext| {
            let rest = &around.code[around.at..];
            let begins = around.code[around.word..].chars().next();
            rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') && begins.is_some_and(|c| !c.is_numeric())
        };
        if let Some(around) = self.code_context(at).filter(on_name) {
            self.describe(&around, at, Some(point));
        } else {
            self.input.code_completion.card = None;
        }
    }

    /// Writes what was chosen.
    fn take_code(&mut self, chosen: usize) {
        let Some(list) = self.input.code_completion.list.take() else { return };
        let Some(choice) = list.choices.get(chosen) else { return };
        let caret = list.range.start + choice.text.len();
        let (at, delete) = (list.range.start, list.range.len());
        self.apply_edits(vec![NoteEdit { at, delete, insert: choice.text.clone(), caret, anchor: caret }]);
        self.input.code_completion.seen = self.place_in_code();
    }
}
