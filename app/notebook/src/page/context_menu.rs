//! The context menu of the page: actions for what is under the pointer. It draws and returns actions; commands from the
//! command table are shown with their keys.

use super::NotePage;
use crate::actions::{ClipboardCommand, PageAction};
use crate::link_targets::{MAX_SHOWN_ADDRESS_CHARS, OutsideLink, outside_link};
use crate::saved_states::restart_warning;
use editor::display_map::RowIndex;
use editor::markdown_keys::{TableEdit, edit_table};
use editor::motion;
use editor::note_editor::{EditContext, EditTarget, Editor, NoteEdit, target_of};
use editor::output_table::DataTable;
use editor::render::embeds::{TAG, link_in_source};
use editor::row_layout::{RowLayout, RowPart};
use editor::row_splitter::RowKind;
use editor::spelling;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Id, Popup, PopupAnchor, PopupKind, Pos2, Rect, Response, Sense, Ui, Vec2, pos2, vec2};
use engine::commands::CommandId;
use engine::keymap::effective_keymap;
use engine::{Command, Note};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};
use store::{BlockId, DocId};
use ui::icons;
use ui::menus::{MENU_WIDTH, menu_below, menu_frame, menu_item, menu_note, menu_separator};
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{paint_focus_ring, paint_hover_fill, set_accessible_name};

/// Maximum number of corrections offered for a word.
const MAX_MENU_SUGGESTIONS: usize = 5;

/// Size of the buttons beside a cell, in points.
const MENU_BUTTON_SIZE: f32 = size::MIN_CLICK_HEIGHT;

/// Key bindings of commands.
type CommandKeys = BTreeMap<CommandId, Vec<String>>;

/// The open menu.
pub(super) struct ContextMenu {
    at: Pos2,
    /// Byte of the note under the pointer.
    byte: usize,
    subject: MenuSubject,
    keys: CommandKeys,
}

/// A cell that was drawn: its box, and the bottom of its output.
pub(super) struct CellEnd {
    pub(super) cell: BlockId,
    pub(super) number: usize,
    pub(super) frame: Rect,
    pub(super) bottom: f32,
}

/// What the context menu applies to.
enum MenuSubject {
    Text {
        word: Option<MisspelledWord>,
        table: Option<RowIndex>,
    },
    Link(String),
    Picture(String),
    /// A cell's code, its output, or a figure in its output.
    Cell {
        cell: BlockId,
        output: bool,
        /// The offset of the figure from the bottom of the cell's box.
        figure: Option<Vec2>,
        /// The index of the output whose table has the selected value.
        table: Option<usize>,
    },
}

/// A misspelled word under the pointer.
struct MisspelledWord {
    range: Range<usize>,
    word: String,
    /// The suggestions, once they have arrived.
    found: Option<Vec<String>>,
    answer: Receiver<Vec<String>>,
}

impl NotePage {
    /// Draws the menu button beside a cell's code.
    pub(super) fn show_cell_menu(
        &mut self,
        ui: &Ui,
        end: &CellEnd,
        world: &EditContext<'_>,
        actions: &mut Vec<PageAction>,
    ) {
        let half = MENU_BUTTON_SIZE / 2.0;
        let middle = pos2(end.frame.right() + space::XS + half, end.frame.top() + half);
        let more = cell_button(ui, end, middle, &format!("Menu of cell {}", end.number), icons::MORE);
        let printed = self.cells.output_text(end.cell);
        menu_below(&more, "Cell", |ui| {
            let keys = effective_keymap(world.session.settings());
            cell_items(ui, world.note, end.cell, printed, false, &keys, actions);
        });
    }

    /// Draws the button that inserts a cell below this one. It overlaps the row below, which is drawn first.
    pub(super) fn show_insert_button(&self, ui: &Ui, end: &CellEnd, actions: &mut Vec<PageAction>) {
        let middle = pos2(end.frame.left() + space::S + size::CELL_GUTTER_WIDTH / 2.0, end.bottom + space::S - 2.0);
        let plus = cell_button(ui, end, middle, &format!("Insert a cell below cell {}", end.number), icons::PLUS);
        if plus.on_hover_text("Insert a cell below").clicked() {
            actions.push(PageAction::InCell(end.cell, CommandId::CellBelow));
        }
    }

    /// Returns whether the menu is open.
    pub fn has_menu(&self) -> bool {
        self.menu.is_some()
    }

    /// Closes the menu, and returns focus to the note.
    pub fn close_menu(&mut self, editor: &mut Editor) {
        if self.menu.take().is_some() {
            editor.focus = editor.caret.is_some();
        }
    }

    /// Opens the menu at a right click.
    pub(super) fn open_menu(
        &mut self,
        ui: &Ui,
        target: Option<&EditTarget>,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
    ) {
        let point = ui.input(|input| {
            let clicked = input.pointer.secondary_clicked();
            input.pointer.interact_pos().filter(|_| clicked)
        });
        let Some(point) = point.filter(|_| ui.rect_contains_pointer(ui.clip_rect())) else { return };
        let Some(byte) = self.hit(point, target, world) else { return };
        let subject = self.subject_at(ui, point, byte, target, world);
        self.menu = Some(ContextMenu { at: point, byte, subject, keys: effective_keymap(world.session.settings()) });
        editor.drag = None;
        ui.ctx().request_repaint();
    }

    /// Returns what is at a point of the page.
    fn subject_at(
        &mut self,
        ui: &Ui,
        point: Pos2,
        byte: usize,
        target: Option<&EditTarget>,
        world: &mut EditContext<'_>,
    ) -> MenuSubject {
        let none = MenuSubject::Text { word: None, table: None };
        let Some(seen) = self.seen.iter().find(|seen| seen.area.contains(point)) else { return none };
        let (spot, origin) = (seen.spot, seen.origin);
        let Some(row) = world.sheet.row(spot).cloned() else { return none };
        let editing = target.filter(|target| target.spot == Some(spot));
        let drawn = if editing.is_none() { Some(self.drawn_row(spot, &row, world)) } else { None };
        if row.kind == RowKind::Cell {
            let cell = world.sheet.block_rows(spot.block).id;
            let height = match (&drawn, editing) {
                (Some(drawn), _) => drawn.height,
                (None, Some(target)) => super::source_height(target, world),
                (None, None) => 0.0,
            };
            let output = point.y > origin.y + height;
            let offset = point - origin - vec2(0.0, height);
            let figure = (output && self.cells.has_figure_at(cell, offset)).then_some(offset);
            let table = if output { self.cells.select_table_cell(cell, point) } else { None };
            return MenuSubject::Cell { cell, output, figure, table };
        }
        if row.kind.is_fenced() {
            return none;
        }
        let start = world.sheet.start(spot.block) + row.content.start;
        let text = world.texts.get(spot.block).and_then(|block| block.text.get(row.content.clone())).unwrap_or("");
        if let Some(drawn) = &drawn {
            if let Some(at) = picture_at(drawn, (point - origin).to_pos2())
                && let Some((target, true)) = link_in_source(text, at)
            {
                return MenuSubject::Picture(target);
            }
            if let (_, Some(link)) = drawn.byte_at_point(text, point - origin) {
                return MenuSubject::Link(link.to_owned());
            }
        } else if let Some((target, picture)) = link_in_source(text, byte - start) {
            return if picture { MenuSubject::Picture(target) } else { MenuSubject::Link(target) };
        }
        let checked = !self.is_spelling_off && !matches!(row.kind, RowKind::Indented | RowKind::Html | RowKind::Meta);
        let word = checked.then(|| misspelled_word(ui, text, byte - start, start)).flatten();
        MenuSubject::Text { word, table: (row.kind == RowKind::Table).then_some(spot) }
    }

    /// Draws the open menu.
    pub(super) fn show_menu(
        &mut self,
        ui: &Ui,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
        actions: &mut Vec<PageAction>,
    ) {
        let Some(mut menu) = self.menu.take() else { return };
        let mut open = true;
        let (anchor, id) = (PopupAnchor::Position(menu.at), Id::unique("note menu"));
        let popup = Popup::new(id, ui.ctx().clone(), anchor, ui.layer_id()).kind(PopupKind::Menu).open_bool(&mut open);
        popup.frame(menu_frame(ui)).width(MENU_WIDTH).accessible_name("Menu").show(|ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            let ContextMenu { byte, subject, keys, .. } = &mut menu;
            match subject {
                MenuSubject::Text { word, table } => {
                    if let Some(word) = word {
                        spelling_items(ui, word, world.note.id, actions);
                        menu_separator(ui);
                    }
                    text_items(ui, *byte, keys, world, editor, actions);
                    if let Some(spot) = *table {
                        menu_separator(ui);
                        table_items(ui, spot, *byte, world, actions);
                    }
                }
                MenuSubject::Link(link) => link_items(ui, link, actions),
                MenuSubject::Picture(target) => {
                    if menu_item(ui, "Copy image", None, true) {
                        actions.push(PageAction::CopyPicture(target.clone()));
                    }
                    if menu_item(ui, "Save as…", None, true) {
                        actions.push(PageAction::SavePicture(target.clone()));
                    }
                }
                MenuSubject::Cell { cell, output, figure, table } => {
                    if let Some(shown) = table.and_then(|index| self.cells.shown_table(*cell, index)) {
                        value_items(ui, shown);
                        menu_separator(ui);
                    }
                    if let Some(offset) = *figure {
                        if menu_item(ui, "Copy as image", None, true) {
                            self.cells.copy_figure_at(ui.ctx(), *cell, offset);
                        }
                        run_item(ui, "Reset the view", CommandId::FigureReset, keys, actions);
                        menu_separator(ui);
                    }
                    if !*output {
                        text_items(ui, *byte, keys, world, editor, actions);
                        menu_separator(ui);
                    }
                    let printed = self.cells.output_text(*cell);
                    cell_items(ui, world.note, *cell, printed, *output, keys, actions);
                }
            }
        });
        if open {
            self.menu = Some(menu);
        } else {
            // Editing continues in the note.
            editor.focus = editor.caret.is_some();
            ui.ctx().request_repaint();
        }
    }
}

/// Draws the items for the selected value of an output table.
fn value_items(ui: &mut Ui, table: &mut DataTable) {
    if menu_item(ui, "Copy value", None, true) {
        table.copy_value(ui.ctx());
    }
    if menu_item(ui, "Copy row", None, true) {
        table.copy_row(ui.ctx());
    }
    if table.has_filter() && menu_item(ui, "Filter by value", None, true) {
        table.filter_by_value(ui.ctx());
    }
}

/// Draws a button beside a cell, which is visible while the pointer is over the cell and always reachable by keyboard.
fn cell_button(ui: &Ui, end: &CellEnd, middle: Pos2, name: &str, icon: &str) -> Response {
    let rect = Rect::from_center_size(middle, Vec2::splat(MENU_BUTTON_SIZE));
    let response = ui.interact(rect, ui.scope_id().with((icon, end.cell)), Sense::click());
    set_accessible_name(&response, Role::Button, name);
    let around = end.frame.with_max_y(end.bottom).expand2(vec2(MENU_BUTTON_SIZE, space::M));
    if ui.rect_contains_pointer(around) || response.has_focus() {
        let colours = ThemeColors::of(ui);
        let colour = if response.hovered() { colours.ink } else { colours.muted };
        paint_hover_fill(ui, &response);
        ui.painter().text(middle, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    }
    paint_focus_ring(ui, &response, theme::CONTROL_CORNER);
    response
}

/// Returns the key to show for a command.
fn key_of(keys: &CommandKeys, id: CommandId) -> Option<&str> {
    keys.get(&id)?.first().map(String::as_str)
}

/// Adds an item that runs a command from the command table.
fn run_item(ui: &mut Ui, name: &str, id: CommandId, keys: &CommandKeys, actions: &mut Vec<PageAction>) {
    if menu_item(ui, name, key_of(keys, id), true) {
        actions.push(PageAction::Run(id));
    }
}

fn text_items(
    ui: &mut Ui,
    byte: usize,
    keys: &CommandKeys,
    world: &EditContext<'_>,
    editor: &mut Editor,
    actions: &mut Vec<PageAction>,
) {
    let selected = editor.selected();
    for (name, key, command) in [("Cut", "Ctrl+X", ClipboardCommand::Cut), ("Copy", "Ctrl+C", ClipboardCommand::Copy)] {
        if menu_item(ui, name, Some(key), !selected.is_empty()) {
            actions.push(PageAction::Clipboard(command));
        }
    }
    let plain = key_of(keys, CommandId::TextPastePlain);
    for (name, key, command) in [
        ("Paste", Some("Ctrl+V"), ClipboardCommand::Paste),
        ("Paste as plain text", plain, ClipboardCommand::PastePlain),
    ] {
        if menu_item(ui, name, key, true) {
            // Paste replaces a selection that was clicked; otherwise it inserts at the click.
            if !selected.iter().any(|range| range.contains(&byte)) {
                editor.place_caret(byte);
            }
            actions.push(PageAction::Clipboard(command));
        }
    }
    if menu_item(ui, "Select all", Some("Ctrl+A"), true) {
        editor.select_all(world.sheet.bytes());
    }
}

fn spelling_items(ui: &mut Ui, word: &mut MisspelledWord, note: DocId, actions: &mut Vec<PageAction>) {
    if word.found.is_none() {
        word.found = word.answer.try_recv().ok();
    }
    match &word.found {
        None => _ = menu_item(ui, "Looking for suggestions…", None, false),
        Some(found) if found.is_empty() => _ = menu_item(ui, "No suggestions", None, false),
        Some(found) => {
            for suggestion in found.iter().take(MAX_MENU_SUGGESTIONS) {
                if menu_item(ui, suggestion, None, true) {
                    let caret = word.range.start + suggestion.len();
                    let (at, delete, insert) = (word.range.start, word.range.len(), suggestion.clone());
                    actions.push(PageAction::Edit(NoteEdit { at, delete, insert, caret, anchor: caret }));
                }
            }
        }
    }
    if menu_item(ui, "Add to dictionary", None, true) {
        actions.push(PageAction::Learn(word.word.clone()));
    }
    if menu_item(ui, "Turn off for this note", None, true) {
        let (key, value) = (spelling::SPELLING_PROPERTY.to_owned(), Some(false.into()));
        actions.push(PageAction::Do(Command::SetProperty { note, key, value }));
    }
}

fn link_items(ui: &mut Ui, link: &str, actions: &mut Vec<PageAction>) {
    if let Some(tag) = link.strip_prefix(TAG) {
        if menu_item(ui, &format!("Search for #{tag}"), None, true) {
            actions.push(PageAction::Follow(link.to_owned()));
        }
        return;
    }
    let outside = outside_link(link);
    if outside == Some(OutsideLink::Program) {
        if menu_item(ui, "Open in another program", None, true) {
            actions.push(PageAction::FollowOutside(link.to_owned()));
        }
        // The link's words may promise something else.
        menu_note(ui, &link.chars().take(MAX_SHOWN_ADDRESS_CHARS).collect::<String>());
    } else if menu_item(ui, "Open link", None, true) {
        actions.push(PageAction::Follow(link.to_owned()));
    }
    if outside.is_none() && menu_item(ui, "Open in new tab", None, true) {
        actions.push(PageAction::FollowBeside(link.to_owned()));
    }
    if menu_item(ui, "Copy link", None, true) {
        ui.ctx().copy_text(link.to_owned());
    }
}

fn table_items(ui: &mut Ui, spot: RowIndex, byte: usize, world: &mut EditContext<'_>, actions: &mut Vec<PageAction>) {
    let crlf = world.crlf();
    let Some(target) = target_of(spot, false, crlf, world) else { return };
    for (name, edit) in [
        ("Insert row above", TableEdit::RowAbove),
        ("Insert row below", TableEdit::RowBelow),
        ("Insert column left", TableEdit::ColumnLeft),
        ("Insert column right", TableEdit::ColumnRight),
        ("Delete row", TableEdit::DeleteRow),
        ("Delete column", TableEdit::DeleteColumn),
    ] {
        let made = edit_table(&target, target.shown_byte(byte), edit);
        if menu_item(ui, name, None, made.is_some())
            && let Some(made) = made
        {
            actions.push(PageAction::Edit(made));
        }
    }
}

/// Adds the items for a cell; `printed`: the text of its output.
fn cell_items(
    ui: &mut Ui,
    note: &Note,
    cell: BlockId,
    printed: Option<String>,
    output: bool,
    keys: &CommandKeys,
    actions: &mut Vec<PageAction>,
) {
    let in_cell = |ui: &mut Ui, name: &str, id: CommandId, actions: &mut Vec<PageAction>| {
        if menu_item(ui, name, key_of(keys, id), true) {
            actions.push(PageAction::InCell(cell, id));
        }
    };
    let note_id = note.id;
    if note.is_running_here(cell) {
        if menu_item(ui, "Stop", key_of(keys, CommandId::CellStop), true) {
            actions.push(PageAction::Do(Command::Interrupt { note: note_id }));
        }
    } else if menu_item(ui, "Run cell", key_of(keys, CommandId::CellRun), true) {
        actions.push(PageAction::Do(Command::Run { note: note_id, cell }));
    }
    in_cell(ui, "Run all above", CommandId::NoteRunAbove, actions);
    if output {
        menu_separator(ui);
    }
    if menu_item(ui, "Copy output", None, printed.is_some())
        && let Some(printed) = printed
    {
        ui.ctx().copy_text(printed);
    }
    if output {
        if menu_item(ui, "Save output…", key_of(keys, CommandId::CellSave), true) {
            actions.push(PageAction::SaveOutput(cell));
        }
        in_cell(ui, "Fold or show output", CommandId::CellFold, actions);
        return;
    }
    menu_separator(ui);
    in_cell(ui, "Insert cell above", CommandId::CellAbove, actions);
    in_cell(ui, "Insert cell below", CommandId::CellBelow, actions);
    in_cell(ui, "Move up", CommandId::RowUp, actions);
    in_cell(ui, "Move down", CommandId::RowDown, actions);
    menu_separator(ui);
    run_item(ui, "Restart kernel", CommandId::KernelRestart, keys, actions);
    menu_note(ui, restart_warning(note));
    in_cell(ui, "Delete cell", CommandId::CellDelete, actions);
}

/// Returns the start of an image's markup in the row's source, for the image at this point.
fn picture_at(drawn: &RowLayout, point: Pos2) -> Option<usize> {
    let corner = drawn.parts.iter().find_map(|part| match part {
        RowPart::Picture { rect, .. } if rect.contains(point) => Some(rect.min),
        _ => None,
    })?;
    drawn.parts.iter().find_map(|part| match part {
        RowPart::Text { at, map, .. } if at.to_pos2() == corner => Some(map.runs.first()?.source.start),
        _ => None,
    })
}

/// Returns the word around a byte of a row's source if it's misspelled, and starts looking up suggestions.
fn misspelled_word(ui: &Ui, text: &str, at: usize, start: usize) -> Option<MisspelledWord> {
    let range = motion::word_around(text, at);
    let word = text.get(range.clone())?.to_owned();
    if !word.chars().any(char::is_alphabetic) {
        return None;
    }
    let (tell, answer) = channel();
    let wake = ui.ctx().clone();
    spelling::with(ui.ctx(), |spelling| {
        let speller = spelling.speller.as_ref().filter(|_| !spelling.accepts(&word))?;
        speller.suggest(word.clone(), move |found| {
            // The menu may already be closed.
            let _ = tell.send(found);
            wake.request_repaint();
        });
        Some(())
    })??;
    Some(MisspelledWord { range: start + range.start..start + range.end, word, found: None, answer })
}
