//! The versions of a note, newest first, grouped by day and editing session; a session can be unfolded.

use super::{glyph, hue};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, EventFilter, Key, Rect, Sense, Ui, pos2, vec2};
use jiff::Zoned;
use std::collections::BTreeSet;
use text::commit_mark::short_commit;
use text::history::{ChangeAuthor, EditSitting, NoteHistory, NoteVersion, group_into_sittings};
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

const VERSION_ROW_HEIGHT: f32 = 48.0;

enum VersionRow {
    Day(String),
    /// An editing session with several versions: its index.
    Sitting(usize),
    /// A version, and whether it's shown inside an unfolded session.
    Version(usize, bool),
}

/// The version list, with its rows.
#[derive(Default)]
pub(super) struct VersionList {
    sittings: Vec<EditSitting>,
    lines: Vec<VersionRow>,
    /// Unfolded editing sessions, by their first version.
    open: BTreeSet<usize>,
    reveal: Option<usize>,
    /// Whether the selected version should get the keyboard focus.
    focus: bool,
}

/// Returns a short label for a time: the time of day if it's today, and otherwise the date.
pub(crate) fn short_date_label(seconds: i64) -> String {
    ui::time::zoned(seconds).map_or_else(String::new, |time| {
        let (date, today) = (time.date(), Zoned::now().date());
        if date == today { time.strftime("%H:%M").to_string() } else { date.strftime("%-d %b %Y").to_string() }
    })
}

/// Returns the label of a time range on one day.
fn span(from: i64, to: i64) -> String {
    let time = |seconds| ui::time::zoned(seconds).map(|time| time.strftime("%H:%M").to_string());
    match (time(from), time(to)) {
        (Some(from), Some(to)) if from == to => to,
        (Some(from), Some(to)) => format!("{from} – {to}"),
        (None, Some(to)) => to,
        (_, None) => "Before the first edit".to_owned(),
    }
}

fn characters(count: u64) -> String {
    let shown = ui::text::format_thousands(usize::try_from(count).unwrap_or(usize::MAX));
    if count == 1 { "1 character".to_owned() } else { format!("{shown} characters") }
}

impl VersionList {
    /// Sets the versions of a note, and scrolls to the selected one.
    pub(super) fn set_history(&mut self, story: &NoteHistory, chosen: usize) {
        self.focus |= self.sittings.is_empty();
        let day = |seconds: i64| {
            ui::time::zoned(seconds)
                .map_or(i64::MIN, |time| i64::from(time.year()) * 400 + i64::from(time.day_of_year()))
        };
        self.sittings = group_into_sittings(&story.versions, day);
        self.reveal(chosen);
    }

    /// Unfolds the session with a version, and scrolls to it.
    pub(super) fn reveal(&mut self, version: usize) {
        let around = self.sittings.iter().find(|sitting| sitting.versions.contains(&version));
        if let Some(sitting) = around.filter(|sitting| sitting.versions.len() > 1) {
            self.open.insert(sitting.versions.start);
        }
        self.reveal = Some(version);
        self.make();
    }

    fn make(&mut self) {
        self.lines.clear();
        let today = Zoned::now().date();
        let mut last = None;
        for (place, sitting) in self.sittings.iter().enumerate().rev() {
            let date = ui::time::zoned(sitting.to).map(|time| time.date());
            if last.replace(date) != Some(date) {
                let words = date.map_or_else(|| "Original".to_owned(), |date| ui::time::day_words(date, today));
                self.lines.push(VersionRow::Day(words));
            }
            if sitting.versions.len() == 1 {
                self.lines.push(VersionRow::Version(sitting.versions.start, false));
                continue;
            }
            self.lines.push(VersionRow::Sitting(place));
            if self.open.contains(&sitting.versions.start) {
                self.lines.extend(sitting.versions.clone().rev().map(|version| VersionRow::Version(version, true)));
            }
        }
    }

    /// Draws the list. Returns the newly selected version.
    pub(super) fn show(&mut self, ui: &mut Ui, story: &NoteHistory, chosen: usize) -> Option<usize> {
        let (mut picked, mut toggled, mut stepped) = (None, None, None);
        let reveal = self.reveal.take();
        let row = |height: f32, line: &VersionRow| if matches!(line, VersionRow::Day(_)) { 32.0 } else { height };
        let height: f32 = self.lines.iter().map(|line| row(VERSION_ROW_HEIGHT, line)).sum();
        egui::ScrollArea::vertical().id_salt("versions").auto_shrink(false).show_viewport(ui, |ui, viewport| {
            ui.set_height(height + space::L);
            let page = ui.max_rect();
            let mut top = page.top() + space::XS;
            for (index, line) in self.lines.iter().enumerate() {
                let high = row(VERSION_ROW_HEIGHT, line);
                let rect = Rect::from_min_size(pos2(page.left(), top), vec2(page.width(), high));
                top += high;
                if reveal.is_some() && matches!(line, VersionRow::Version(version, _) if Some(*version) == reveal) {
                    ui.scroll_to_rect(rect.expand2(vec2(0.0, 40.0)), None);
                }
                let seen = rect.bottom() - page.top() >= viewport.top() && rect.top() - page.top() <= viewport.bottom();
                let is_chosen = matches!(line, VersionRow::Version(version, _) if *version == chosen);
                // The selected row is drawn even when it's out of view, so that it keeps the keyboard focus.
                if !seen && !is_chosen {
                    continue;
                }
                match line {
                    VersionRow::Day(words) => day(ui, rect, index, words),
                    VersionRow::Sitting(place) => {
                        let Some(sitting) = self.sittings.get(*place) else { continue };
                        let open = self.open.contains(&sitting.versions.start);
                        if sat(ui, rect, story, sitting, open) {
                            toggled = Some(sitting.versions.start);
                        }
                    }
                    VersionRow::Version(at, below) => {
                        let Some(version) = story.versions.get(*at) else { continue };
                        let now = at + 1 == story.versions.len();
                        let (clicked, step) = one(ui, rect, version, (*at, *below), is_chosen, now);
                        if clicked {
                            picked = Some(*at);
                        }
                        stepped = step.map(|newer| (*at, newer)).or(stepped);
                    }
                }
            }
        });
        if let Some(next) = stepped.and_then(|(at, newer)| self.beside(at, newer)) {
            (picked, self.reveal) = (Some(next), Some(next));
            self.make();
        }
        if let Some(first) = toggled {
            if !self.open.remove(&first) {
                self.open.insert(first);
            }
            self.make();
        }
        if std::mem::take(&mut self.focus) {
            ui.memory_mut(|memory| memory.request_focus(id(chosen)));
        }
        if let Some(picked) = self.reveal {
            ui.memory_mut(|memory| memory.request_focus(id(picked)));
            ui.ctx().request_repaint();
        }
        picked
    }

    /// Returns the next newer or older version, and unfolds its session.
    fn beside(&mut self, version: usize, newer: bool) -> Option<usize> {
        let next = if newer { version + 1 } else { version.checked_sub(1)? };
        let around = self.sittings.iter().find(|sitting| sitting.versions.contains(&next))?;
        if around.versions.len() > 1 {
            self.open.insert(around.versions.start);
        }
        Some(next)
    }
}

fn id(version: usize) -> egui::Id {
    egui::Id::unique(("version", version))
}

fn day(ui: &Ui, rect: Rect, index: usize, words: &str) {
    let response = ui.interact(rect, ui.scope_id().with(("day", index)), Sense::hover());
    set_accessible_name(&response, Role::Heading, words);
    let font = theme::inter_font(theme::InterCut::SemiBold, 12.0);
    let at = rect.left_bottom() + vec2(space::L, -space::S);
    ui.painter().text(at, Align2::LEFT_BOTTOM, words, font, ThemeColors::of(ui).muted);
}

/// Draws an editing session. Returns whether it was clicked.
fn sat(ui: &Ui, rect: Rect, story: &NoteHistory, sitting: &EditSitting, open: bool) -> bool {
    let colours = ThemeColors::of(ui);
    let rect = rect.shrink2(vec2(space::S, 1.0));
    let response = ui.interact(rect, ui.scope_id().with(("sitting", sitting.versions.start)), Sense::click());
    let versions = story.versions.get(sitting.versions.clone()).unwrap_or_default();
    let mut who: Vec<String> = Vec::new();
    for version in versions {
        let words = version.who.describe();
        if !who.contains(&words) {
            who.push(words);
        }
    }
    let (time, count) = (span(sitting.from, sitting.to), format!("{} versions", versions.len()));
    set_accessible_name(&response, Role::TreeItem, &format!("{time}: {count}"));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(open));
    if response.hovered() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    let caret = if open { icons::CARET_DOWN } else { icons::CARET_RIGHT };
    let at = pos2(rect.left() + 15.0, rect.top() + 14.0);
    ui.painter().text(at, Align2::CENTER_CENTER, caret, theme::icon_font(12.0), colours.muted);
    let left = rect.left() + 30.0;
    let room = rect.right() - left - space::S;
    let bold = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
    paint_clipped_text(ui, pos2(left, rect.top() + 4.0), room, &time, &bold, colours.ink);
    let words = format!("{count}  ·  {}", who.join(", "));
    paint_clipped_text(ui, pos2(left, rect.top() + 24.0), room, &words, &theme::caption(), colours.muted);
    response.clicked()
}

/// Draws a version. Returns whether it was clicked, and whether a key moves to the one above (`true`) or below.
fn one(
    ui: &Ui,
    rect: Rect,
    version: &NoteVersion,
    (at, below): (usize, bool),
    chosen: bool,
    now: bool,
) -> (bool, Option<bool>) {
    let colours = ThemeColors::of(ui);
    let rect = rect.shrink2(vec2(space::S, 1.0));
    // Only the selected row is in the Tab order. Arrow keys move between rows.
    let sense = if chosen { Sense::click() } else { Sense::CLICK };
    let response = ui.interact(rect, id(at), sense);
    let who = text::untrusted_text::escape_line(&version.who.describe()).into_owned();
    let is_named = |id: &&String| !matches!(&version.who, ChangeAuthor::Commit { id: own, .. } if own == *id);
    let what = match (version.is_only_in_git, version.commits.iter().find(is_named)) {
        (true, _) => "only in Git".to_owned(),
        (false, Some(id)) => format!("committed as {}", short_commit(id)),
        (false, None) => characters(version.operations),
    };
    let has_commit = version.is_only_in_git || version.commits.iter().any(|id| is_named(&id));
    let in_git = if has_commit { format!(", {what}") } else { String::new() };
    let name = format!("{}, {who}{in_git}", ui::time::when(version.to));
    response.widget_info(|| egui::WidgetInfo::selected(Role::TreeItem, true, chosen, &name));
    if chosen {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
    } else if response.hovered() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    let left = rect.left() + if below { 46.0 } else { 30.0 };
    let icon = pos2(left - 15.0, rect.top() + 14.0);
    ui.painter().text(
        icon,
        Align2::CENTER_CENTER,
        glyph(&version.who),
        theme::icon_font(14.0),
        hue(&version.who, colours),
    );
    let mut right = rect.right() - space::S;
    if now {
        let font = theme::inter_font(theme::InterCut::SemiBold, 11.0);
        let at = pos2(right, rect.top() + 14.0);
        right = ui.painter().text(at, Align2::RIGHT_CENTER, "now", font, colours.accent).left() - space::S;
    }
    let time = span(version.from, version.to);
    paint_clipped_text(ui, pos2(left, rect.top() + 4.0), right - left, &time, &theme::small(), colours.ink);
    let words = format!("{who}  ·  {what}");
    let room = rect.right() - space::S - left;
    paint_clipped_text(ui, pos2(left, rect.top() + 24.0), room, &words, &theme::caption(), colours.muted);
    let mut step = None;
    if response.has_focus() {
        let filter = EventFilter { vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        let pressed = |key| ui.input_mut(|input| input.consume_key(egui::Modifiers::NONE, key));
        if pressed(Key::ArrowUp) {
            step = Some(true);
        } else if pressed(Key::ArrowDown) {
            step = Some(false);
        }
    }
    (response.clicked(), step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_said_as_people_say_them() {
        let date = |text: &str| text.parse::<jiff::civil::Date>().expect("a date");
        let today = date("2026-11-22");
        let said = |text: &str| ui::time::day_words(date(text), today);
        assert_eq!([said("2026-11-22"), said("2026-11-21"), said("2026-11-18")], ["Today", "Yesterday", "Wednesday"]);
        assert_eq!([said("2026-02-03"), said("2025-12-31")], ["3 February", "31 December 2025"]);
        assert_eq!(ui::time::when(0), "Before the first edit");
        assert_eq!(
            [characters(1), characters(999), characters(2_500)],
            ["1 character", "999 characters", "2\u{202f}500 characters"]
        );
    }
}
