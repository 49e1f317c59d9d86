//! Help for who writes code in a cell: names that could stand at the caret, what a name under the caret or the pointer
//! is. The kernel knows both while it rests; while it runs, or is not there, the names that the note's cells bind must
//! do.

use crate::{AppWindow, WindowOverlay};
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Area, Id, Key, Modifiers, Order, Pos2, Sense, pos2, vec2};
use engine::{KernelPhase, Note};
use host::{CompletionChoice, InquiryAnswer, KernelInquiry};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, TryRecvError};
use store::DocId;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{floating_frame, set_accessible_name};

/// So many lines are in sight; the others come with the arrow keys.
const MAX_VISIBLE_CODE_CHOICES: usize = 8;
/// Names are offered by themselves once so many letters are typed.
const MIN_COMPLETION_CHARS: usize = 2;
/// Lines of a description.
const MAX_HOVER_CARD_LINES: usize = 16;
const HOVER_CARD_WIDTH: f32 = 520.0;
/// Python's own words, for when no kernel answers.
const PYTHON_BUILTIN_WORDS: &str = "False None True abs all and any as assert async await bool break bytes class \
    continue def del \
                     dict dir elif else enumerate except filter finally float for from getattr global if import in \
                     input int is isinstance lambda len list map match max min nonlocal not object open or pass \
                     print range raise repr return reversed round set setattr sorted str sum super try tuple type \
                     while with yield zip";

/// Where the caret is: note, its revision, the byte.
type CodePosition = (DocId, u64, usize);

/// Code around a place.
struct CodeContext {
    place: CodePosition,
    /// The cell's code, and where it begins in the note.
    code: String,
    start: usize,
    /// The caret, and where the word before it begins, in bytes of the code.
    at: usize,
    word: usize,
}

impl CodeContext {
    fn typed(&self) -> &str {
        &self.code[self.word..self.at]
    }

    /// Whether a name has been begun.
    fn begins_name(&self) -> bool {
        self.typed().chars().next().is_some_and(|c| !c.is_numeric())
    }

    /// Whether an attribute of something is meant.
    fn dotted(&self) -> bool {
        self.code[..self.word].ends_with('.')
    }

    /// What stands in the line before the caret.
    fn line(&self) -> &str {
        let begins = self.code[..self.at].rfind('\n').map_or(0, |newline| newline + 1);
        &self.code[begins..self.at]
    }
}

/// The list below the caret.
struct CompletionList {
    /// The bytes of the note that a choice replaces.
    range: Range<usize>,
    choices: Vec<CompletionChoice>,
    chosen: usize,
    /// Whether Enter takes: the user asked for the list, or went through it.
    steered: bool,
}

/// A description: of which byte of the note, where it is shown, and what it says once that is known.
struct HoverCard {
    at: usize,
    point: Option<Pos2>,
    waits: Option<Receiver<InquiryAnswer>>,
    text: Option<String>,
}

/// What is offered and described at the moment.
#[derive(Default)]
pub(crate) struct CodeCompletion {
    seen: Option<CodePosition>,
    list: Option<CompletionList>,
    /// Offers on their way: for which code.
    waits: Option<(CodeContext, Receiver<InquiryAnswer>, bool)>,
    /// The word that was left with Escape.
    left: Option<usize>,
    card: Option<HoverCard>,
}

impl AppWindow {
    /// Looks whether the caret stands in code, and draws what is known.
    pub(crate) fn code_help(&mut self, ctx: &egui::Context) {
        self.receive_help();
        let place = self.place_in_code();
        if place != self.code_completion.seen {
            let before = std::mem::replace(&mut self.code_completion.seen, place);
            let typed = before
                .zip(place)
                .is_some_and(|((note, revision, at), now)| note == now.0 && revision != now.1 && now.2 > at);
            self.moved_in_code(typed);
        }
        self.rest_on_code();
        if !matches!(self.overlay, WindowOverlay::None) || self.view.is_some() {
            (self.code_completion.list, self.code_completion.card) = (None, None);
        }
        let caret = self.active_pane.editor.stands;
        if let (Some(list), Some(caret)) = (&self.code_completion.list, caret) {
            if let Some(chosen) = list.show(ctx, caret.left_bottom()) {
                self.take_code(chosen);
            }
        } else if let Some(card) = &self.code_completion.card
            && let Some(text) = &card.text
            && let Some(at) = card.point.or(caret.map(|caret| caret.left_bottom()))
        {
            show_card(ctx, at, text);
        }
    }

    /// The place of the one caret, if nothing is selected.
    fn place_in_code(&self) -> Option<CodePosition> {
        let editor = &self.active_pane.editor;
        let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty() && !editor.behind)?;
        let note = self.session()?.note(self.active_pane.note?)?;
        Some((note.id, note.revision(), caret.at))
    }

    /// Whether a byte of the open note stands in a cell's code.
    pub(crate) fn is_code(&self, at: usize) -> bool {
        self.code_context(at).is_some()
    }

    /// The code around a byte of the open note, if it stands in a cell.
    fn code_context(&self, at: usize) -> Option<CodeContext> {
        let note = self.session()?.note(self.active_pane.note?)?;
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
        self.code_completion.card = None;
        let around = self.code_completion.seen.and_then(|(_, _, at)| self.code_context(at));
        let Some(around) = around.filter(|_| typed && !self.commands_by_letter()) else {
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
            self.ask_names(around, steered);
        }
    }

    /// Asks what could stand here.
    fn ask_names(&mut self, around: CodeContext, steered: bool) {
        let kernel = self.session().and_then(|session| session.note(around.place.0)).map(|note| note.kernel);
        if kernel == Some(KernelPhase::Idle)
            && let Some(driver) = &mut self.driver
        {
            let inquiry = KernelInquiry::Complete { code: around.code.clone(), at: around.at };
            if let Some(answer) = driver.ask_kernel(around.place.0, inquiry) {
                self.code_completion.waits = Some((around, answer, steered));
                return;
            }
        }
        let note = self.session().and_then(|session| session.note(around.place.0));
        let choices = note.map(|note| known_names(note, &around)).unwrap_or_default();
        self.offer(&around, around.start + around.word..around.start + around.at, choices, steered);
    }

    /// Takes in what the kernel has answered.
    fn receive_help(&mut self) {
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
        // What came too late for where the caret is now is not wanted any more.
        if self.place_in_code() != Some(around.place) {
            return;
        }
        if let Some(InquiryAnswer::Choices { from, to, mut choices }) = answer {
            let range = around.start + from..around.start + to;
            if range.end == around.place.2 && !around.dotted() && from == around.word {
                // Names that no run has bound yet.
                let session = self.session();
                let more =
                    session.and_then(|session| session.note(around.place.0)).map(|note| known_names(note, &around));
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
        self.code_completion.list = fits.then_some(CompletionList { range, choices, chosen: 0, steered });
    }

    /// A key while code is written. Whether it meant help.
    pub(crate) fn code_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        if self.code_completion.card.take().is_some_and(|card| card.point.is_none()) && key == Key::Escape {
            return true;
        }
        // What was typed in this very frame is not in the list yet.
        let caret = self.active_pane.editor.caret.map(|caret| caret.at);
        self.code_completion.list.take_if(|list| Some(list.range.end) != caret);
        if let Some(list) = &mut self.code_completion.list {
            let (count, chosen, steered) = (list.choices.len(), list.chosen, list.steered);
            match key {
                Key::ArrowDown if modifiers.is_none() => list.step((list.chosen + 1) % count),
                Key::ArrowUp if modifiers.is_none() => list.step((list.chosen + count - 1) % count),
                Key::Tab if modifiers.is_none() => self.take_code(chosen),
                Key::Enter if modifiers.is_none() && steered => self.take_code(chosen),
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
        if !tab || self.view.is_some() || self.commands_by_letter() {
            return false;
        }
        let Some(around) = self.place_in_code().and_then(|(_, _, at)| self.code_context(at)) else { return false };
        let in_word = around.begins_name() || (around.typed().is_empty() && around.dotted());
        // Where nothing is known, Tab moves the line in or out as everywhere.
        let known = if modifiers.is_none() {
            in_word && {
                self.ask_names(around, true);
                self.code_completion.waits.is_some() || self.code_completion.list.is_some()
            }
        } else {
            !around.line().trim().is_empty() && {
                let at = around.place.2;
                self.describe(&around, at, None);
                self.code_completion.card.is_some()
            }
        };
        if !known {
            return false;
        }
        ctx.request_repaint();
        true
    }

    fn describe(&mut self, around: &CodeContext, at: usize, point: Option<Pos2>) {
        let idle = self.session().and_then(|session| session.note(around.place.0));
        if idle.is_none_or(|note| note.kernel != KernelPhase::Idle) {
            return;
        }
        let Some(driver) = &mut self.driver else { return };
        let inquiry = KernelInquiry::Describe { code: around.code.clone(), at: around.at };
        let waits = driver.ask_kernel(around.place.0, inquiry);
        self.code_completion.card = waits.map(|waits| HoverCard { at, point, waits: Some(waits), text: None });
    }

    /// The pointer rests on a name, or has left it.
    fn rest_on_code(&mut self) {
        let resting = self.active_pane.page.resting;
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
        if let Some(around) = self.code_context(at).filter(on_name) {
            self.describe(&around, at, Some(point));
        } else {
            self.code_completion.card = None;
        }
    }

    /// Writes what was chosen.
    fn take_code(&mut self, chosen: usize) {
        let Some(list) = self.code_completion.list.take() else { return };
        let Some(choice) = list.choices.get(chosen) else { return };
        let caret = list.range.start + choice.text.len();
        let (at, delete) = (list.range.start, list.range.len());
        self.apply_edits(vec![NoteEdit { at, delete, insert: choice.text.clone(), caret, anchor: caret }]);
        self.code_completion.seen = self.place_in_code();
    }
}

/// Whether a dot belongs to a number.
fn begins_number(around: &CodeContext) -> bool {
    let before = around.code[..around.word].trim_end_matches('.');
    let word = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    before.get(word..).is_none_or(|word| word.is_empty() || word.starts_with(|c: char| c.is_numeric()))
        && !before.ends_with([')', ']', '}', '"', '\''])
}

/// The names that the cells of a note bind, and Python's own, that begin with what is typed.
fn known_names(note: &Note, around: &CodeContext) -> Vec<CompletionChoice> {
    let typed = around.typed();
    if around.dotted() || typed.is_empty() {
        return Vec::new();
    }
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for name in note.all_cell_names().iter().flat_map(|names| &names.defines) {
        if name.starts_with(typed) && name != typed {
            names.entry(name.clone()).or_insert("in this note");
        }
    }
    for word in PYTHON_BUILTIN_WORDS.split_whitespace().filter(|word| word.starts_with(typed) && *word != typed) {
        names.entry(word.to_owned()).or_default();
    }
    names.into_iter().map(|(text, kind)| CompletionChoice { text, kind: kind.to_owned() }).collect()
}

impl CompletionList {
    fn step(&mut self, to: usize) {
        (self.chosen, self.steered) = (to, true);
    }

    /// More was typed: what no longer fits goes, until the kernel has answered anew.
    fn narrow(&mut self, typed: &str, from: usize) {
        let kept = self.choices.get(self.chosen).map(|choice| choice.text.clone());
        self.choices.retain(|choice| choice.text.starts_with(typed));
        self.chosen = self.choices.iter().position(|choice| Some(&choice.text) == kept.as_ref()).unwrap_or(0);
        self.range = from..from + typed.len();
    }

    /// Draws it; gives what was clicked.
    fn show(&self, ctx: &egui::Context, at: Pos2) -> Option<usize> {
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ThemeColors::for_dark_mode(dark);
        let first = (self.chosen + 1).saturating_sub(MAX_VISIBLE_CODE_CHOICES);
        let mut clicked = None;
        let area = Area::new(Id::unique("code completion")).order(Order::Foreground);
        area.fixed_pos(at + vec2(-space::M, space::XS)).constrain(true).show(ctx, |ui| {
            floating_frame(colours, dark).inner_margin(egui::Margin::same(4)).show(ui, |ui| {
                ui.spacing_mut().item_spacing.y = 0.0;
                for (index, choice) in self.choices.iter().enumerate().skip(first).take(MAX_VISIBLE_CODE_CHOICES) {
                    let (rect, response) = ui.allocate_exact_size(vec2(320.0, size::MIN_CLICK_HEIGHT), Sense::click());
                    if index == self.chosen {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                    } else if response.hovered() {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.raised));
                    }
                    let code = theme::code();
                    let at = pos2(rect.left() + space::S, rect.center().y - code.line / 2.0);
                    let room = rect.width() - 2.0 * space::S;
                    let width = ui::widgets::paint_clipped_text(ui, at, room * 0.7, &choice.text, &code, colours.ink);
                    let about = pos2(at.x + width + space::S, rect.center().y - 8.0);
                    let rest = room - width - space::S;
                    ui::widgets::paint_clipped_text(ui, about, rest, &choice.kind, &theme::caption(), colours.muted);
                    set_accessible_name(&response, Role::ListBoxOption, &choice.text);
                    if response.clicked() {
                        clicked = Some(index);
                    }
                }
                let more = self.choices.len().saturating_sub(MAX_VISIBLE_CODE_CHOICES);
                if more > 0 {
                    let style = theme::caption();
                    let text = format!("{} of {}", self.chosen + 1, self.choices.len());
                    ui.horizontal(|ui| {
                        ui.add_space(space::S);
                        ui.label(egui::RichText::new(text).font(style.font).color(colours.muted));
                    });
                }
            });
        });
        clicked
    }
}

fn show_card(ctx: &egui::Context, at: Pos2, text: &str) {
    let dark = ctx.global_style().visuals.dark_mode;
    let colours = ThemeColors::for_dark_mode(dark);
    let area = Area::new(Id::unique("code card")).order(Order::Tooltip).interactable(false);
    area.fixed_pos(at + vec2(0.0, space::M)).constrain(true).show(ctx, |ui| {
        let frame = floating_frame(colours, dark).inner_margin(egui::Margin::symmetric(12, 8));
        let response = frame.show(ui, |ui| {
            ui.set_max_width(HOVER_CARD_WIDTH);
            let mut job = LayoutJob::default();
            let (head, doc) = text.split_once("\n\n").unwrap_or((text, ""));
            let (code, small) = (theme::code(), theme::small());
            job.append(head.trim_end(), 0.0, ui::widgets::format(code.font, code.line, colours.ink));
            if !doc.trim().is_empty() {
                let doc = format!("\n{}", doc.trim_end());
                job.append(&doc, 0.0, ui::widgets::format(small.font, small.line, colours.muted));
            }
            job.wrap.max_width = HOVER_CARD_WIDTH;
            job.wrap.max_rows = MAX_HOVER_CARD_LINES;
            ui.label(job);
        });
        set_accessible_name(
            &response.response,
            Role::Tooltip,
            &format!("What is known: {}", text.lines().next().unwrap_or("")),
        );
    });
}
