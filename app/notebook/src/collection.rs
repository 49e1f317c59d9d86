//! The page of a collection: its views as tabs, filters and sorting, and a table, cards or list. Edits are written to
//! the `.base` file or to notes' properties, one value at a time.

mod cards;
mod cell;
mod embed;
mod list;
pub mod query_worker;
mod table;
mod toolbar;

use crate::actions::{CollectionEdit, PageAction};
use collection::{Collection, CollectionChange, CollectionRow, CollectionTable, apply_change};
use eframe::egui;
use egui::{Align2, Rect, Ui};
pub use embed::{CollectionEmbeds, HeldCollections};
use engine::{Note, Session};
use host::clock;
use query_worker::{CollectionAnswer, CollectionQuery};
use serde_json::Value;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use store::DocId;
use text::text_edit;
use ui::empty_state;
use ui::text::shown_name;
use ui::theme::{self, ThemeColors, space};

/// A line of a table: a group header or a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLine {
    /// The header of the group at this index.
    Group(usize),
    /// The row at this index.
    Row(usize),
}

/// State of editing a cell.
struct CellEditor {
    file: DocId,
    column: String,
    text: String,
    /// Whether the text field has had focus.
    begun: bool,
    /// Whether editing began by typing a character.
    typed: bool,
    trouble: Option<&'static str>,
}

/// Source of a collection's text.
#[derive(Clone, Copy)]
pub struct CollectionSource<'a> {
    /// The note that contains it.
    pub note: &'a Note,
    /// The part of the note, and the byte offset where it begins; `None` if it's the whole note.
    part: Option<(&'a str, usize)>,
    /// The note that embeds it, if any.
    inside: Option<DocId>,
}

impl<'a> CollectionSource<'a> {
    /// Creates the source of a collection that is a file of its own.
    pub fn file(note: &'a Note) -> CollectionSource<'a> {
        CollectionSource { note, part: None, inside: None }
    }

    /// Returns the collection as YAML.
    pub fn text(&self) -> String {
        self.part.map_or_else(|| self.note.text(), |(text, _)| text.to_owned())
    }

    /// Returns the note that `this` refers to.
    fn this(&self) -> DocId {
        self.inside.unwrap_or(self.note.id)
    }
}

/// A collection with one of its views, on its own page or inside a note.
#[derive(Default)]
pub struct CollectionPage {
    /// The parsed text: note, revision, offset, and hash of the text.
    read: Option<(DocId, u64, usize, u64)>,
    base: Option<anyhow::Result<Arc<Collection>>>,
    /// Index of the current view.
    pub view: usize,
    /// Name of the initial view.
    begin: Option<String>,
    /// Whether its text is shown instead of the view.
    pub as_text: bool,
    /// The current lines of the table.
    lines: Vec<TableLine>,
    /// The table that the lines were built from.
    pub lined: Option<Arc<CollectionTable>>,
    folded: HashSet<String>,
    refold: bool,
    /// The selected cell: line and column.
    chosen: Option<(usize, usize)>,
    reveal: bool,
    /// Scroll offset of the table.
    offset: egui::Vec2,
    editing: Option<CellEditor>,
    /// The column being resized, and its current width.
    stretched: Option<(String, f32)>,
    /// The filter condition being edited.
    draft: toolbar::FilterDraft,
    /// Whether buttons show only icons for lack of space.
    compact: bool,
    /// Since when the page has been waiting for a table, in seconds.
    since: Option<f64>,
    /// Full height and width of the content as last drawn, in points.
    high: f32,
    wide: f32,
    /// Whether it has keyboard focus.
    focused: bool,
    /// A requested view that doesn't exist.
    missing: Option<String>,
}

/// Context for drawing a part of the page.
struct CollectionContext<'a> {
    session: &'a Session,
    source: CollectionSource<'a>,
    base: &'a Arc<Collection>,
    /// Whether the pane has keyboard focus.
    is_here: bool,
    actions: &'a mut Vec<PageAction>,
}

impl CollectionContext<'_> {
    /// Writes a change to the collection's text.
    fn change(&mut self, change: &CollectionChange) {
        let text = self.source.text();
        match apply_change(&text, change) {
            Ok(new) => {
                let mut edits = text_edit::compute_edits(&text, &new);
                let start = self.source.part.map_or(0, |(_, start)| start);
                edits.iter_mut().for_each(|edit| edit.at += start);
                if !edits.is_empty() {
                    self.push_edit(CollectionEdit::Change { note: self.source.note.id, edits });
                }
            }
            Err(why) => self.actions.push(PageAction::Say(format!("Can't write that into the collection: {why}."))),
        }
    }

    fn push_edit(&mut self, deed: CollectionEdit) {
        self.actions.push(PageAction::Collection(self.source.this(), deed));
    }

    /// Sets a property of a note.
    fn set(&mut self, file: DocId, key: &str, value: Option<Value>) {
        self.push_edit(CollectionEdit::Set { file, key: key.to_owned(), value });
    }

    /// Creates a note that the view will include.
    fn make(&mut self, view: usize) {
        let inside = self.source.inside.and_then(|note| self.session.locate_file(note));
        let name = inside.map(|(_, path)| shown_name(path.rsplit('/').next().unwrap_or(path)));
        let (folder, properties) = self.base.required_properties(view, name);
        self.push_edit(CollectionEdit::New { volume: self.source.note.volume, folder, properties });
    }

    fn is_note(&self, row: &CollectionRow) -> bool {
        let volume = self.session.volume(self.source.note.volume);
        let file = volume.and_then(|volume| volume.files.get(&row.path));
        file.is_some_and(|file| file.kind == store::FileKind::Note)
    }

    /// Returns the value of a note's property as it's in the note.
    fn property(&self, file: DocId, key: &str) -> Value {
        let outline = self.session.volume(self.source.note.volume).and_then(|volume| volume.links.outline(file));
        let found = outline.and_then(|outline| {
            let properties = &outline.properties;
            properties.get(key).or_else(|| {
                properties.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)).map(|(_, value)| value)
            })
        });
        found.cloned().unwrap_or(Value::Null)
    }
}

impl CollectionPage {
    /// Resets the page when another note is shown.
    pub fn reset_for_note(&mut self) {
        *self = CollectionPage::default();
    }

    /// Selects the initial view, as requested by a link.
    pub fn begin_with(&mut self, view: &str) {
        self.begin = Some(view.to_owned()).filter(|view| !view.is_empty());
    }

    fn sync(&mut self, source: &CollectionSource<'_>) {
        let start = source.part.map_or(0, |(_, start)| start);
        let (note, revision) = (source.note.id, source.note.revision());
        let known = self.read.as_ref().map(|(note, revision, start, hash)| ((*note, *revision, *start), *hash));
        if known.map(|(known, _)| known) != Some((note, revision, start)) {
            let text = source.text();
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let hash = hasher.finish();
            self.read = Some((note, revision, start, hash));
            if known.map(|(_, hash)| hash) != Some(hash) {
                self.base = Some(Collection::parse(&text).map(Arc::new).map_err(anyhow::Error::from));
            }
        }
        if let Some(Ok(base)) = &self.base {
            if let Some(wanted) = self.begin.take() {
                match base.view_index(Some(&wanted)) {
                    Some(view) => self.view = view,
                    None => self.missing = Some(wanted),
                }
            }
            self.view = self.view.min(base.views.len().saturating_sub(1));
        }
    }

    /// Draws the view. `is_here`: whether its pane is the active one.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        source: CollectionSource<'_>,
        is_here: bool,
        actions: &mut Vec<PageAction>,
    ) {
        self.sync(&source);
        let base = match &self.base {
            Some(Ok(base)) => base.clone(),
            Some(Err(why)) => {
                let says = format!("Can't read this collection: {}.", why.to_string().trim_end_matches('.'));
                if source.inside.is_some() {
                    self.say(ui, &says, ThemeColors::of(ui).warn);
                } else if empty_state::show_message(ui, &says, Some("Show its text"), "") {
                    actions.push(PageAction::Collection(source.this(), CollectionEdit::Text));
                }
                return;
            }
            None => return,
        };
        let hash = self.read.as_ref().map_or(0, |(.., hash)| *hash);
        let asked = CollectionQuery {
            by: ui.scope_id().with("table"),
            volume: source.note.volume,
            base: &base,
            hash,
            view: self.view,
            this: Some(source.this()),
            now: clock::local_now(),
        };
        let answer = query_worker::query_table(ui.ctx(), &asked);
        let mut scene = CollectionContext { session, source, base: &base, is_here, actions };
        self.show_toolbar(ui, &mut scene, &answer);
        let CollectionAnswer { table: Some(table), .. } = &answer else {
            self.show_waiting(ui, &answer, session, source.note);
            return;
        };
        self.since = None;
        self.line_up(table);
        if let Some(missing) = &self.missing {
            let colours = ThemeColors::of(ui);
            let text = format!("The view “{missing}” doesn't exist. Another view is shown.");
            empty_state::show_banner(ui, ui::icons::WARNING, &text, colours.warn, false);
        }
        if let Some(problem) = table.problems.first() {
            let colours = ThemeColors::of(ui);
            let text = format!("Can't read a part of this collection: {problem}.");
            empty_state::show_banner(ui, ui::icons::WARNING, &text, colours.warn, false);
        }
        if table.rows.is_empty() {
            let words = "No note fits this view.";
            if source.inside.is_some() {
                return self.say(ui, words, ThemeColors::of(ui).muted);
            }
            let mut inner = ui.new_child(egui::UiBuilder::new().max_rect(ui.available_rect_before_wrap()));
            if empty_state::show_message(&mut inner, words, Some("New note"), "Change its filters with “Filter”.") {
                scene.make(self.view);
            }
            return;
        }
        let kind = base.views.get(self.view).map_or("table", |view| view.kind.as_str());
        let instead = match kind {
            "" | "table" | "cards" | "list" => None,
            "map" => Some("Maps aren't supported. This view is shown as a table.".to_owned()),
            other => {
                Some(format!("There is no view of the kind “{other}” here: this is a table of what it would show."))
            }
        };
        if let Some(words) = instead {
            empty_state::show_banner(ui, ui::icons::INFO, &words, ThemeColors::of(ui).muted, false);
        }
        match kind {
            "cards" => self.show_cards(ui, &mut scene, table),
            "list" => self.show_list(ui, &mut scene, table),
            _ => self.show_table(ui, &mut scene, table),
        }
    }

    /// Draws a message on one line inside a note, where a page would center it.
    fn say(&mut self, ui: &mut Ui, words: &str, colour: egui::Color32) {
        let style = theme::small();
        let mut job = egui::text::LayoutJob::default();
        job.wrap.max_width = (ui.available_width() - 2.0 * space::L).max(80.0);
        job.append(
            &text::untrusted_text::escape_block(words),
            0.0,
            ui::widgets::format(style.font, style.line, colour),
        );
        let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
        let at = ui.available_rect_before_wrap().min + egui::vec2(space::L, space::S);
        let rect = Rect::from_min_size(at, galley.size());
        let response = ui.interact(rect, ui.scope_id().with("said"), egui::Sense::hover());
        ui::widgets::set_accessible_name(&response, egui::accesskit::Role::Label, words);
        ui.painter().galley(at, galley, colour);
        self.high = rect.bottom() + space::S - ui.max_rect().top();
    }

    fn show_waiting(&mut self, ui: &mut Ui, answer: &CollectionAnswer, session: &Session, note: &Note) {
        let now = ui.input(|input| input.time);
        let since = *self.since.get_or_insert(now);
        ui.ctx().request_repaint_after(std::time::Duration::from_millis(100));
        if now - since < empty_state::SKELETON_DELAY_SECONDS {
            return;
        }
        let all = session.volume(note.volume).map_or(0, |volume| volume.files.len());
        let (looked, told) = answer.seen;
        let words = match looked {
            0 => format!("Looking through {told} of {all} files…"),
            looked => format!("Working out {looked} of {all} files…"),
        };
        let area = ui.available_rect_before_wrap();
        let colours = ThemeColors::of(ui);
        let response = ui.interact(area, ui.scope_id().with("waiting"), egui::Sense::hover());
        ui::widgets::set_accessible_name(&response, egui::accesskit::Role::Status, &words);
        let at = area.center_top() + egui::vec2(0.0, space::XXXL);
        ui.painter().text(at, Align2::CENTER_TOP, words, theme::small().font, colours.muted);
        #[allow(clippy::cast_precision_loss, reason = "counts of files")]
        let part = (told + looked) as f32 / (2 * all.max(1)) as f32;
        let bar = Rect::from_center_size(at + egui::vec2(0.0, space::XXL), egui::vec2(240.0, 4.0));
        ui.painter().rect_filled(bar, 2.0, colours.line);
        let done = bar.with_max_x(bar.left() + bar.width() * part.clamp(0.0, 1.0));
        ui.painter().rect_filled(done, 2.0, colours.accent);
    }

    /// Builds the lines of a table from its groups and their collapsed state.
    fn line_up(&mut self, table: &Arc<CollectionTable>) {
        let same = self.lined.as_ref().is_some_and(|lined| Arc::ptr_eq(lined, table));
        if same && !std::mem::take(&mut self.refold) {
            return;
        }
        // The selection stays on the same row.
        let chosen = self.chosen.and_then(|(line, column)| {
            let Some(TableLine::Row(row)) = self.lines.get(line) else { return None };
            Some((self.lined.as_ref()?.rows.get(*row)?.file, column))
        });
        self.lines.clear();
        if table.groups.is_empty() {
            self.lines.extend((0..table.rows.len()).map(TableLine::Row));
        }
        let mut first = 0;
        for (group, (name, count)) in table.groups.iter().enumerate() {
            self.lines.push(TableLine::Group(group));
            if !self.folded.contains(name) {
                self.lines.extend((first..first + count).map(TableLine::Row));
            }
            first += count;
        }
        if let Some((file, column)) = chosen {
            let is = |row: &usize| table.rows.get(*row).is_some_and(|row| row.file == file);
            let line = self.lines.iter().position(|line| matches!(line, TableLine::Row(row) if is(row)));
            self.chosen = line.map(|line| (line, column.min(table.columns.len().saturating_sub(1))));
        }
        self.lined = Some(table.clone());
    }

    /// Shows the next or previous view, wrapping around; returns the number of views.
    pub fn turn_view(&mut self, back: bool) -> Option<usize> {
        let count = self.base.as_ref()?.as_ref().ok()?.views.len();
        let step = if back { count - 1 } else { 1 };
        self.show_view((self.view + step) % count);
        Some(count)
    }

    fn row<'t>(&self, table: &'t CollectionTable, line: usize) -> Option<&'t CollectionRow> {
        match self.lines.get(line)? {
            TableLine::Row(row) => table.rows.get(*row),
            TableLine::Group(_) => None,
        }
    }

    fn fold(&mut self, group: &str) {
        if !self.folded.remove(group) {
            self.folded.insert(group.to_owned());
        }
        self.refold = true;
    }
}

/// Undo and redo stacks of edits made in collections.
#[derive(Default)]
pub struct CollectionUndo {
    /// Edits that can be undone: the collection, and the edited note.
    pub done: Vec<(DocId, DocId)>,
    /// Edits that can be redone.
    pub undone: Vec<(DocId, DocId)>,
    /// Notes that are kept open for undo.
    pub held: Vec<DocId>,
}

/// Maximum number of edits that can be undone.
pub const MAX_COLLECTION_UNDO_STEPS: usize = 64;
