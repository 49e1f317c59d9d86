//! Code completion and hover descriptions in cells, provided by the kernel.

use crate::overlays::code_completion::{
    CodeContext, CodePosition, CompletionList, EnvironmentModules, HoverCard, MIN_COMPLETION_CHARS, begins_number,
    import_statements, known_names, show_card,
};
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::{Key, Modifiers, Pos2};
use engine::KernelPhase;
use host::{CompletionChoice, InquiryAnswer, KernelInquiry};
use std::ops::Range;
use std::sync::mpsc::TryRecvError;

impl InputState {
    /// Checks whether the caret is in code, and draws available help.
    pub(crate) fn code_help(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) {
        self.receive_help(host, panes);
        let place = panes.place_in_code(host);
        if place != self.code_completion.seen {
            let before = std::mem::replace(&mut self.code_completion.seen, place);
            let typed = before
                .zip(place)
                .is_some_and(|((note, revision, at), now)| note == now.0 && revision != now.1 && now.2 > at);
            self.moved_in_code(host, panes, typed);
        }
        self.rest_on_code(host, panes);
        if !matches!(overlay, WindowOverlay::None) || panes.view.is_some() {
            (self.code_completion.list, self.code_completion.card) = (None, None);
        }
        let caret = panes.active.editor.stands;
        if let (Some(list), Some(caret)) = (&self.code_completion.list, caret) {
            if let Some(chosen) = list.show(ctx, caret.left_bottom()) {
                self.take_code(host, panes, notices, chosen);
            }
        } else if let Some(card) = &self.code_completion.card
            && let Some(text) = &card.text
            && let Some(at) = card.point.or(caret.map(|caret| caret.left_bottom()))
        {
            show_card(ctx, at, text);
        }
    }

    /// Updates the completion list after the caret has moved. `typed`: because text was typed.
    fn moved_in_code(&mut self, host: &mut HostLink, panes: &mut PaneState, typed: bool) {
        self.code_completion.card = None;
        let around = self.code_completion.seen.and_then(|(_, _, at)| panes.code_context(host, at));
        let Some(around) = around.filter(|_| typed && !self.commands_by_letter(host)) else {
            (self.code_completion.list, self.code_completion.left) = (None, None);
            return;
        };
        let word = around.start + around.word;
        if self.code_completion.left.is_some_and(|left| left != word) {
            self.code_completion.left = None;
        }
        let begun = around.begins_name();
        let enough = around.typed().chars().count() >= MIN_COMPLETION_CHARS && begun
            || (around.dotted() && !begins_number(&around));
        let steered = match &mut self.code_completion.list {
            Some(list) if list.range.start == word => {
                list.narrow(around.typed(), word);
                list.steered
            }
            _ => {
                self.code_completion.list = None;
                false
            }
        };
        if (enough && self.code_completion.left.is_none()) || self.code_completion.list.is_some() {
            self.ask_names(host, around, steered);
        }
    }

    /// Requests completions.
    fn ask_names(&mut self, host: &mut HostLink, around: CodeContext, steered: bool) {
        let kernel = host.session().note(around.place.0).map(|note| note.kernel);
        let inquiry = |host: &HostLink| KernelInquiry::Complete {
            code: around.code.clone(),
            at: around.at,
            imports: host.session().note(around.place.0).map(import_statements).unwrap_or_default(),
        };
        let answer = if kernel == Some(KernelPhase::Idle) {
            host.driver.ask_kernel(around.place.0, inquiry(host))
        } else if around.dotted() || around.names_import() {
            // Modules and their contents are the same in a kernel that has run nothing.
            self.list_environment(host, &around);
            host.driver.ask_warm_kernel(around.place.0, inquiry(host))
        } else {
            None
        };
        if let Some(answer) = answer {
            self.code_completion.waits = Some((around, answer, steered));
            return;
        }
        let note = host.session().note(around.place.0);
        let choices = note.map(|note| known_names(note, &around)).unwrap_or_default();
        self.offer(&around, around.start + around.word..around.start + around.at, choices, steered);
    }

    /// Lists the modules in the environment of the note's own kernel, which are known before it runs.
    fn list_environment(&mut self, host: &HostLink, around: &CodeContext) {
        let session = host.session();
        let named = session.note(around.place.0).and_then(|note| note.kernel_name());
        let spec = session.kernels().iter().find(|spec| Some(spec.name.as_str()) == named);
        let known = self.code_completion.environment.as_ref().map(|listed| &listed.kernel_json);
        match spec {
            None => self.code_completion.environment = None,
            Some(spec) if known == Some(&spec.path) => {}
            Some(spec) => self.code_completion.environment = Some(EnvironmentModules::list(spec.path.clone())),
        }
    }

    /// Processes the kernel's answers.
    fn receive_help(&mut self, host: &HostLink, panes: &mut PaneState) {
        if let Some(card) = &mut self.code_completion.card
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
        let Some((_, waits, _)) = &self.code_completion.waits else { return };
        let answer = match waits.try_recv() {
            Err(TryRecvError::Empty) => return,
            Ok(answer) => Some(answer),
            Err(TryRecvError::Disconnected) => None,
        };
        let Some((around, _, steered)) = self.code_completion.waits.take() else { return };
        // Drop answers for an earlier caret position.
        if panes.place_in_code(host) != Some(around.place) {
            return;
        }
        if let Some(InquiryAnswer::Choices { from, to, mut choices }) = answer {
            let range = around.start + from..around.start + to;
            if around.names_module() && !around.dotted() {
                self.add_environment_modules(around.typed(), &mut choices);
            } else if range.end == around.place.2 && !around.dotted() && from == around.word {
                // Adds names that no run has bound yet.
                let more = host.session().note(around.place.0).map(|note| known_names(note, &around));
                for choice in more.into_iter().flatten() {
                    if !choices.iter().any(|known| known.text == choice.text) {
                        choices.push(choice);
                    }
                }
            }
            self.offer(&around, range, choices, steered);
        }
    }

    fn add_environment_modules(&mut self, typed: &str, choices: &mut Vec<CompletionChoice>) {
        let Some(listed) = &mut self.code_completion.environment else { return };
        if let Ok(modules) = listed.answer.try_recv() {
            listed.modules = modules;
        }
        for module in listed.modules.iter().filter(|module| module.starts_with(typed)) {
            if !choices.iter().any(|known| known.text == *module) {
                choices.push(CompletionChoice { text: module.clone(), kind: "module".to_owned() });
            }
        }
        choices.sort_by(|one, other| one.text.cmp(&other.text));
    }

    fn offer(&mut self, around: &CodeContext, range: Range<usize>, choices: Vec<CompletionChoice>, steered: bool) {
        // A single choice that is already typed in full needs no list.
        let whole = matches!(choices.as_slice(), [only] if only.text == around.typed());
        let fits = range.end == around.place.2 && !choices.is_empty() && !whole;
        self.code_completion.list = fits.then_some(CompletionList { range, choices, chosen: 0, steered });
    }

    /// Handles a key press in code. Returns whether completion or help used it.
    pub(crate) fn code_key(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        key: Key,
        modifiers: Modifiers,
    ) -> bool {
        if self.code_completion.card.take().is_some_and(|card| card.point.is_none()) && key == Key::Escape {
            return true;
        }
        // The list doesn't include text typed in this frame yet.
        let caret = panes.active.editor.caret.map(|caret| caret.at);
        self.code_completion.list.take_if(|list| Some(list.range.end) != caret);
        if let Some(list) = &mut self.code_completion.list {
            let (count, chosen, steered) = (list.choices.len(), list.chosen, list.steered);
            match key {
                Key::ArrowDown if modifiers.is_none() => list.step((list.chosen + 1) % count),
                Key::ArrowUp if modifiers.is_none() => list.step((list.chosen + count - 1) % count),
                Key::Tab if modifiers.is_none() => self.take_code(host, panes, notices, chosen),
                Key::Enter if modifiers.is_none() && steered => self.take_code(host, panes, notices, chosen),
                Key::Escape if modifiers.is_none() => {
                    self.code_completion.left = Some(list.range.start);
                    self.code_completion.list = None;
                }
                Key::Enter => {
                    self.code_completion.list = None;
                    return false;
                }
                _ => return false,
            }
            return true;
        }
        let tab = key == Key::Tab && (modifiers.is_none() || modifiers.shift_only());
        if !tab || panes.view.is_some() || self.commands_by_letter(host) {
            return false;
        }
        let Some(around) = panes.place_in_code(host).and_then(|(_, _, at)| panes.code_context(host, at)) else {
            return false;
        };
        let in_word = around.begins_name() || (around.typed().is_empty() && around.dotted());
        // If there's nothing to complete, Tab indents or outdents the line as usual.
        let known = if modifiers.is_none() {
            in_word && {
                self.ask_names(host, around, true);
                self.code_completion.waits.is_some() || self.code_completion.list.is_some()
            }
        } else {
            !around.line().trim().is_empty() && {
                let at = around.place.2;
                self.describe(host, &around, at, None);
                self.code_completion.card.is_some()
            }
        };
        if !known {
            return false;
        }
        ctx.request_repaint();
        true
    }

    pub(crate) fn describe(&mut self, host: &mut HostLink, around: &CodeContext, at: usize, point: Option<Pos2>) {
        let idle = host.session().note(around.place.0);
        if idle.is_none_or(|note| note.kernel != KernelPhase::Idle) {
            return;
        }
        let inquiry = KernelInquiry::Describe { code: around.code.clone(), at: around.at };
        let waits = host.driver.ask_kernel(around.place.0, inquiry);
        self.code_completion.card = waits.map(|waits| HoverCard { at, point, waits: Some(waits), text: None });
    }

    /// Shows the description of the name under the resting pointer, and hides it when the pointer leaves.
    fn rest_on_code(&mut self, host: &mut HostLink, panes: &mut PaneState) {
        let resting = panes.active.page.resting;
        let by_pointer = self.code_completion.card.as_ref().filter(|card| card.point.is_some()).map(|card| card.at);
        let Some((at, point)) = resting else {
            if by_pointer.is_some() {
                self.code_completion.card = None;
            }
            return;
        };
        if by_pointer == Some(at)
            || self.code_completion.list.is_some()
            || (self.code_completion.card.is_some() && by_pointer.is_none())
        {
            return;
        }
        let on_name = |around: &CodeContext| {
            let rest = &around.code[around.at..];
            let begins = around.code[around.word..].chars().next();
            rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') && begins.is_some_and(|c| !c.is_numeric())
        };
        if let Some(around) = panes.code_context(host, at).filter(on_name) {
            self.describe(host, &around, at, Some(point));
        } else {
            self.code_completion.card = None;
        }
    }

    /// Inserts the chosen completion.
    fn take_code(&mut self, host: &mut HostLink, panes: &mut PaneState, notices: &mut NoticeState, chosen: usize) {
        let Some(list) = self.code_completion.list.take() else { return };
        let Some(choice) = list.choices.get(chosen) else { return };
        let caret = list.range.start + choice.text.len();
        let (at, delete) = (list.range.start, list.range.len());
        panes.apply_edits(
            host,
            notices,
            vec![NoteEdit { at, delete, insert: choice.text.clone(), caret, anchor: caret }],
        );
        self.code_completion.seen = panes.place_in_code(host);
    }
}

impl PaneState {
    /// Returns the caret's position, if there's one caret without a selection.
    fn place_in_code(&self, host: &HostLink) -> Option<CodePosition> {
        let editor = &self.active.editor;
        let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty() && !editor.behind)?;
        let note = self.open_note(host)?;
        Some((note.id, note.revision(), caret.at))
    }

    /// Returns whether a byte of the open note is in a cell's code.
    pub(crate) fn is_code(&self, host: &HostLink, at: usize) -> bool {
        self.code_context(host, at).is_some()
    }

    /// Returns the code around a byte of the open note, if it's in a cell.
    fn code_context(&self, host: &HostLink, at: usize) -> Option<CodeContext> {
        let note = self.open_note(host)?;
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
}
