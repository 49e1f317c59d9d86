//! Changes from other devices: entries on the left, newest first, and on the right the selected note before and after.
//!
//! The texts are computed elsewhere.

use super::super::history::SideBySide;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, EventFilter, Key, Layout, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::commands::CommandId;
use engine::{MergeKind, MergeRecord, Session};
use host::Driver;
use host::history::TextComparison;
use notebook::actions::PageAction;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use text::untrusted_text;
use ui::empty_state;
use ui::icons;
use ui::text::shown_name;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::time::when;
use ui::widgets::{icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name, text_button};

/// Width of the list, in points. On a narrower page, it's above the texts.
const MERGE_LIST_WIDTH: f32 = 264.0;
const MIN_TWO_COLUMN_MERGES_WIDTH: f32 = 620.0;
const MERGE_ROW_HEIGHT: f32 = 48.0;
/// Height of the header above the texts, in points.
const MERGE_HEADER_HEIGHT: f32 = 44.0;

type MergeTexts = anyhow::Result<Option<Arc<TextComparison>>>;

#[derive(Default)]
pub(crate) struct MergesReport {
    entries: Vec<MergeRecord>,
    chosen: usize,
    /// The entry whose texts are shown or requested.
    shown: Option<MergeRecord>,
    waits: Option<Receiver<MergeTexts>>,
    since: Option<f64>,
    trouble: Option<String>,
    sides: SideBySide,
}

impl MergesReport {
    /// Updates the entries from the session's report, newest first. The selection is kept.
    pub(super) fn refresh<'a>(&mut self, entries: impl Iterator<Item = &'a MergeRecord>) {
        let before = self.entries.get(self.chosen).map(|entry| (entry.note, entry.from));
        self.entries = entries.cloned().collect();
        let same = |entry: &MergeRecord| Some((entry.note, entry.from)) == before;
        self.chosen = self.entries.iter().position(same).unwrap_or(0);
    }

    /// Requests the texts of the selected entry, and stores them.
    pub(crate) fn step(&mut self, driver: &Driver) {
        match self.waits.as_ref().map(Receiver::try_recv) {
            Some(Ok(texts)) => {
                (self.waits, self.since) = (None, None);
                match texts {
                    Ok(Some(compared)) => self.sides.set_comparison(compared),
                    Ok(None) => {}
                    Err(why) => self.trouble = Some(why.to_string()),
                }
            }
            Some(Err(TryRecvError::Disconnected)) => self.waits = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        let wanted = self.entries.get(self.chosen);
        if wanted != self.shown.as_ref() {
            let other = wanted.map(|one| (one.note, one.from)) != self.shown.as_ref().map(|one| (one.note, one.from));
            if other {
                self.sides = SideBySide::default();
            }
            (self.shown, self.trouble) = (wanted.cloned(), None);
            self.waits =
                wanted.filter(|entry| entry.has_texts()).map(|entry| driver.start_merge_comparison(entry.clone()));
        }
    }

    pub(super) fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) {
        if self.entries.is_empty() {
            let hint = "When another device edits a note, you see here what it was before and after.";
            empty_state::show_message(ui, "Other devices have changed nothing yet.", None, hint);
            return;
        }
        self.keys(ui);
        let area = ui.available_rect_before_wrap();
        let line = Stroke::new(1.0, ThemeColors::of(ui).line);
        ui.painter().hline(area.x_range(), area.top() + 0.5, line);
        let (list, rest) = if area.width() < MIN_TWO_COLUMN_MERGES_WIDTH + MERGE_LIST_WIDTH {
            let (list, rest) = area.split_top_bottom_at_y(area.top() + (area.height() * 0.3).min(200.0));
            ui.painter().hline(list.x_range(), list.bottom() - 0.5, line);
            (list, rest)
        } else {
            let (list, rest) = area.split_left_right_at_x(area.left() + MERGE_LIST_WIDTH);
            ui.painter().vline(list.right() - 0.5, list.y_range(), line);
            (list, rest)
        };
        self.list(&mut ui::layout::part(ui, "merges", list, list));
        let mut ui = ui::layout::part(ui, "texts", rest, rest);
        self.texts(&mut ui, session, actions);
    }

    /// Handles the keys that move between changes.
    fn keys(&mut self, ui: &Ui) {
        let pressed = |modifiers, key| ui.input_mut(|input| input.consume_key(modifiers, key));
        if pressed(egui::Modifiers::ALT, Key::ArrowDown) {
            self.sides.go_to_change(false);
        }
        if pressed(egui::Modifiers::ALT, Key::ArrowUp) {
            self.sides.go_to_change(true);
        }
    }

    fn list(&mut self, ui: &mut Ui) {
        ui.spacing_mut().item_spacing.y = 0.0;
        let mut chosen = None;
        egui::ScrollArea::vertical().id_salt("merges").auto_shrink(false).show(ui, |ui| {
            for (place, entry) in self.entries.iter().enumerate() {
                chosen = row(ui, place, entry, place == self.chosen).or(chosen);
            }
        });
        if let Some(chosen) = chosen.filter(|chosen| *chosen < self.entries.len()) {
            self.chosen = chosen;
            ui.memory_mut(|memory| memory.request_focus(id(chosen)));
            ui.ctx().request_repaint();
        }
    }

    fn texts(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PageAction>) {
        let Some(entry) = self.entries.get(self.chosen).cloned() else { return };
        let colours = ThemeColors::of(ui);
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), MERGE_HEADER_HEIGHT), Sense::hover());
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
        let inner = rect.shrink2(vec2(space::L, 0.0));
        let layout = Layout::right_to_left(Align::Center);
        let mut tools = ui.new_child(UiBuilder::new().max_rect(inner).id_salt("tools").layout(layout));
        tools.spacing_mut().item_spacing.x = space::S;
        if session.locate_file(entry.note).is_some() && text_button(&mut tools, "Open note", false).clicked() {
            actions.push(PageAction::Open(entry.note));
        }
        if let MergeKind::Twins { other, .. } = &entry.what
            && session.locate_file(*other).is_some()
            && text_button(&mut tools, "Open the other", false).clicked()
        {
            actions.push(PageAction::Open(*other));
        }
        if matches!(entry.what, MergeKind::Deleted) && text_button(&mut tools, "Trash", false).clicked() {
            actions.push(PageAction::Run(CommandId::ViewTrash));
        }
        if self.sides.changes() > 1 {
            if icon_button(&mut tools, icons::CARET_DOWN, "Next change", Some("Alt+ArrowDown")).clicked() {
                self.sides.go_to_change(false);
            }
            if icon_button(&mut tools, icons::CARET_UP, "Previous change", Some("Alt+ArrowUp")).clicked() {
                self.sides.go_to_change(true);
            }
        }
        let room = tools.min_rect().left() - space::L - inner.left();
        let words = entry.describe();
        let bold = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
        let middle = rect.center().y;
        let name = shown_name(&entry.path);
        let width = paint_clipped_text(ui, pos2(inner.left(), middle - 10.0), room, name, &bold, colours.ink);
        let at = pos2(inner.left() + width + space::S, middle - 8.0);
        paint_clipped_text(ui, at, room - width - space::S, &words, &theme::caption(), colours.muted);
        let heard = ui.interact(rect.with_max_x(inner.left() + room), ui.scope_id().with("title"), Sense::hover());
        let said = format!("{name} {words}");
        set_accessible_name(&heard, Role::Heading, &said);
        heard.on_hover_text(untrusted_text::escape_block(&said).into_owned());
        if let Some(why) = &self.trouble {
            let text = format!("Can't show the texts: {why}.");
            empty_state::show_banner(ui, icons::WARNING_CIRCLE, &text, colours.bad, false);
        } else if !entry.has_texts() {
            empty_state::show_message(ui, &format!("“{name}” {words}."), None, "Its text didn't change.");
        } else if self.sides.compared().is_some() {
            sides_head(ui, &entry);
            self.sides.show(ui, false);
        } else if self.waits.is_some() {
            let now = ui.input(|input| input.time);
            let since = *self.since.get_or_insert(now);
            if now - since > empty_state::SKELETON_DELAY_SECONDS {
                empty_state::show_skeleton(
                    ui,
                    size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL),
                    space::XL,
                );
            } else {
                ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(empty_state::SKELETON_DELAY_SECONDS));
            }
        }
    }
}

/// Draws the titles of the two sides.
fn sides_head(ui: &mut Ui, entry: &MergeRecord) {
    let names = match &entry.what {
        MergeKind::Twins { called, .. } => (shown_name(&entry.path).to_owned(), shown_name(called).to_owned()),
        _ => ("Before".to_owned(), "After".to_owned()),
    };
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 28.0), Sense::hover());
    set_accessible_name(&response, Role::Label, &format!("Left: {}, right: {}", names.0, names.1));
    let half = (rect.width() - 2.0 * space::L) / 2.0;
    let left = pos2(rect.left() + space::L + space::M, rect.top() + 10.0);
    paint_clipped_text(ui, left, half - space::XL, &names.0, &theme::caption(), colours.muted);
    paint_clipped_text(
        ui,
        left + vec2(half + 22.0, 0.0),
        half - space::XXL,
        &names.1,
        &theme::caption(),
        colours.muted,
    );
}

fn glyph(what: &MergeKind) -> &'static str {
    match what {
        MergeKind::Text { met: false, .. } => icons::PENCIL,
        MergeKind::Text { met: true, .. } => icons::BRANCH,
        MergeKind::Twins { .. } => icons::COPY,
        MergeKind::Renamed { .. } => icons::NOTE,
        MergeKind::Deleted => icons::TRASH,
        MergeKind::Kept | MergeKind::Back => icons::UNDO,
    }
}

fn id(place: usize) -> egui::Id {
    egui::Id::unique(("merge", place))
}

/// Draws an entry. Returns the index of the entry that becomes selected.
fn row(ui: &mut Ui, place: usize, entry: &MergeRecord, chosen: bool) -> Option<usize> {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), MERGE_ROW_HEIGHT), Sense::hover());
    // Only the selected row is in the Tab order. Arrow keys move between rows.
    let sense = if chosen { Sense::click() } else { Sense::CLICK };
    let rect = rect.shrink2(vec2(space::S, 1.0));
    let response = ui.interact(rect, id(place), sense);
    let (name, when) = (shown_name(&entry.path), when(entry.to.as_seconds()));
    let said = format!("{name} {}, {when}", entry.describe());
    response
        .widget_info(|| egui::WidgetInfo::selected(Role::ListItem, true, chosen, untrusted_text::escape_line(&said)));
    if ui.is_rect_visible(rect) {
        let colours = ThemeColors::of(ui);
        if chosen {
            ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
        } else if response.hovered() {
            ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
        }
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        let icon = pos2(rect.left() + 15.0, rect.top() + 14.0);
        ui.painter().text(icon, Align2::CENTER_CENTER, glyph(&entry.what), theme::icon_font(14.0), colours.muted);
        let left = rect.left() + 30.0;
        let room = rect.right() - left - space::S;
        paint_clipped_text(ui, pos2(left, rect.top() + 4.0), room, name, &theme::small(), colours.ink);
        paint_clipped_text(ui, pos2(left, rect.top() + 24.0), room, &when, &theme::caption(), colours.muted);
    }
    if response.clicked() {
        return Some(place);
    }
    if !response.has_focus() {
        return None;
    }
    let arrows = EventFilter { vertical_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
    let pressed = |key| ui.input_mut(|input| input.consume_key(egui::Modifiers::NONE, key));
    let next = match (pressed(Key::ArrowUp), pressed(Key::ArrowDown)) {
        (true, _) => place.checked_sub(1)?,
        (_, true) => place + 1,
        _ => return None,
    };
    let way = vec2(0.0, if next > place { MERGE_ROW_HEIGHT } else { -MERGE_ROW_HEIGHT });
    ui.scroll_to_rect(rect.translate(way), None);
    Some(next)
}
