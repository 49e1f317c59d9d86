//! What `[[` offers: notes whose names hold what was typed, behind `#` the headings of the note. Nothing is changed
//! before one is chosen.

use crate::{AppWindow, WindowOverlay};
use editor::note_editor::NoteEdit;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Area, Id, Key, Modifiers, Order, Sense, pos2, vec2};
use engine::{Session, Volume};
use store::DocId;
use text::links::without_md_extension;
use text::outline::LinkKind;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{floating_frame, paint_clipped_text, set_accessible_name};

/// As many are offered.
const MAX_LINK_SUGGESTIONS: usize = 8;
/// What is typed stands at most this many bytes behind the brackets.
const MAX_LINK_QUERY_BYTES: usize = 200;

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LinkSuggestion {
    name: String,
    about: String,
    /// What comes between the brackets.
    insert: String,
}

/// What is offered at the moment.
#[derive(Default)]
pub(crate) struct LinkCompletion {
    /// Where the text between the brackets begins, and what it is.
    open: Option<(usize, String)>,
    offers: Vec<LinkSuggestion>,
    chosen: usize,
    made: Option<(DocId, u64, String)>,
    /// Brackets that were left without a choice.
    left: Option<usize>,
}

impl AppWindow {
    /// Looks at what stands before the caret, and draws what is offered.
    pub(crate) fn show_link_completion(&mut self, ctx: &egui::Context) {
        let typed = self.typed();
        if typed.as_ref().map(|(from, _)| *from) != self.completion.left {
            self.completion.left = None;
        }
        self.completion.open = typed.filter(|_| self.completion.left.is_none());
        let Some(((_, query), session)) =
            self.completion.open.clone().zip(self.driver.as_ref().map(host::Driver::session))
        else {
            self.completion.made = None;
            return;
        };
        let Some(note) = self.active_pane.note else { return };
        let Some(volume) = session.locate_file(note).and_then(|(volume, _)| session.volume(volume)) else { return };
        let key = (note, volume.links.revision(), query.clone());
        if self.completion.made.as_ref() != Some(&key) {
            self.completion.offers = offers(session, volume, note, &query);
            self.completion.chosen = 0;
            self.completion.made = Some(key);
        }
        if self.completion.offers.is_empty() {
            self.completion.open = None;
            return;
        }
        let Some(caret) = self.active_pane.editor.stands else { return };
        if let Some(chosen) = self.completion.show(ctx, caret) {
            self.completion.chosen = chosen;
            self.accept();
        }
    }

    /// What was typed behind `[[`, and where that begins.
    fn typed(&self) -> Option<(usize, String)> {
        let editor = &self.active_pane.editor;
        let caret = editor.caret.filter(|caret| caret.is_empty() && editor.more.is_empty())?;
        if self.view.is_some() || !matches!(self.overlay, WindowOverlay::None) || self.commands_by_letter() {
            return None;
        }
        let note = self.session()?.note(self.active_pane.note?)?;
        let before = (0..4).find_map(|less| {
            let length = caret.at.min(MAX_LINK_QUERY_BYTES) - less.min(caret.at);
            note.slice(caret.at - length, length)
        })?;
        let line = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
        let query = &line[line.rfind("[[")? + 2..];
        (!query.contains("]]") && !query.contains('|')).then(|| (caret.at - query.len(), query.to_owned()))
    }

    /// A key while something is offered; whether it meant that.
    pub(crate) fn complete_key(&mut self, key: Key, modifiers: Modifiers) -> bool {
        let Some((from, _)) = &self.completion.open else { return false };
        let count = self.completion.offers.len();
        if !modifiers.is_none() || count == 0 {
            return false;
        }
        match key {
            Key::ArrowDown => self.completion.chosen = (self.completion.chosen + 1) % count,
            Key::ArrowUp => self.completion.chosen = (self.completion.chosen + count - 1) % count,
            Key::Enter => self.accept(),
            Key::Escape => self.completion.left = Some(*from),
            _ => return false,
        }
        true
    }

    /// Writes what was chosen.
    fn accept(&mut self) {
        let Some((at, query)) = self.completion.open.take() else { return };
        let Some(offer) = self.completion.offers.get(self.completion.chosen).cloned() else { return };
        let note = self.session().zip(self.active_pane.note).and_then(|(session, note)| session.note(note));
        let closed = note.and_then(|note| note.slice(at + query.len(), 2)).is_some_and(|rest| rest == "]]");
        let delete = query.len() + if closed { 2 } else { 0 };
        let insert = format!("{}]]", offer.insert);
        let caret = at + insert.len();
        self.apply_edits(vec![NoteEdit { at, delete, insert, caret, anchor: caret }]);
        self.completion.made = None;
    }
}

impl LinkCompletion {
    /// Draws what is offered; gives what was clicked.
    fn show(&self, ctx: &egui::Context, caret: egui::Rect) -> Option<usize> {
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ThemeColors::for_dark_mode(dark);
        let mut clicked = None;
        let at = caret.left_bottom() + vec2(-space::M, space::XS);
        Area::new(Id::unique("completion")).order(Order::Foreground).fixed_pos(at).constrain(true).show(ctx, |ui| {
            floating_frame(colours, dark).inner_margin(egui::Margin::same(4)).show(ui, |ui| {
                ui.spacing_mut().item_spacing.y = 0.0;
                for (index, offer) in self.offers.iter().enumerate() {
                    let (rect, response) = ui.allocate_exact_size(vec2(380.0, size::MIN_CLICK_HEIGHT), Sense::click());
                    if index == self.chosen {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                    } else if response.hovered() {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.raised));
                    }
                    let y = rect.center().y;
                    let at = pos2(rect.left() + space::S, y - 10.0);
                    let room = rect.width() - 2.0 * space::S;
                    let width = paint_clipped_text(ui, at, room, &offer.name, &theme::small(), colours.ink);
                    let at = pos2(at.x + width + space::S, y - 8.0);
                    let rest = room - width - space::S;
                    if rest > 40.0 {
                        paint_clipped_text(ui, at, rest, &offer.about, &theme::caption(), colours.muted);
                    }
                    set_accessible_name(&response, Role::ListBoxOption, &offer.name);
                    if response.clicked() {
                        clicked = Some(index);
                    }
                }
            });
        });
        clicked
    }
}

/// What is offered for a text between brackets.
fn offers(session: &Session, volume: &Volume, own: DocId, query: &str) -> Vec<LinkSuggestion> {
    if let Some((target, part)) = query.split_once('#') {
        let note = volume.links.resolve(own, LinkKind::Wiki, target);
        let outline = note.and_then(|note| volume.links.outline(note));
        let headings = outline.map_or(&[][..], |outline| &outline.headings);
        let fits = headings.iter().filter(|heading| rank(&heading.text, part).is_some());
        let offer = |heading: &text::outline::NoteHeading| LinkSuggestion {
            name: heading.text.clone(),
            about: format!("heading {}", heading.level),
            insert: format!("{target}#{}", heading.text.replace(['#', '|', '[', ']'], " ")),
        };
        return fits.take(MAX_LINK_SUGGESTIONS).map(offer).collect();
    }
    let recent = &session.settings().recent;
    let mut best: Vec<((usize, usize, usize), &str, DocId)> = Vec::new();
    for (path, row) in &volume.files {
        if !row.kind.is_text() || row.id == own {
            continue;
        }
        let stem = without_md_extension(path);
        let name = stem.rsplit('/').next().unwrap_or(stem);
        let Some(found) = rank(name, query).or_else(|| rank(stem, query).map(|rank| rank + 10)) else { continue };
        let newest = recent.iter().position(|recent| *recent == row.id).unwrap_or(recent.len());
        let key = (found, newest, name.len());
        if best.len() == MAX_LINK_SUGGESTIONS && best.last().is_some_and(|(worst, ..)| *worst <= key) {
            continue;
        }
        let place = best.partition_point(|(other, ..)| *other <= key);
        best.insert(place, (key, stem, row.id));
        best.truncate(MAX_LINK_SUGGESTIONS);
    }
    let mut offers: Vec<LinkSuggestion> = best
        .into_iter()
        .map(|(_, stem, id)| {
            let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
            let alone = volume.links.resolve(own, LinkKind::Wiki, name) == Some(id);
            let insert = if alone { name } else { stem }.to_owned();
            LinkSuggestion { name: name.to_owned(), about: folder.replace('/', " / "), insert }
        })
        .collect();
    let query = query.trim();
    let known = offers.iter().any(|offer| offer.name.eq_ignore_ascii_case(query));
    if !query.is_empty() && !known && volume.links.resolve(own, LinkKind::Wiki, query).is_none() {
        let about = "a note that is not there yet".to_owned();
        offers.push(LinkSuggestion { name: query.to_owned(), about, insert: query.to_owned() });
    }
    offers
}

/// How well a name fits: 0 where it begins so, 1 where a word of it does, 2 where it stands inside.
fn rank(name: &str, query: &str) -> Option<usize> {
    let begins = |rest: &str| {
        let mut letters = rest.chars().flat_map(char::to_lowercase);
        query.chars().flat_map(char::to_lowercase).all(|letter| letters.next() == Some(letter))
    };
    let mut before = None;
    let mut inside = None;
    for (at, letter) in name.char_indices() {
        if begins(&name[at..]) {
            match before {
                None => return Some(0),
                Some(before) if !char::is_alphanumeric(before) => return Some(1),
                Some(_) => inside = Some(2),
            }
        }
        before = Some(letter);
    }
    if query.is_empty() { Some(0) } else { inside }
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn beginnings_come_first() {
        assert_eq!(rank("Sea water", "sea"), Some(0));
        assert_eq!(rank("Deep sea", "Sea"), Some(1));
        assert_eq!(rank("Undersea", "sea"), Some(2));
        assert_eq!((rank("Shore", "sea"), rank("Shore", "")), (None, Some(0)));
    }
}
