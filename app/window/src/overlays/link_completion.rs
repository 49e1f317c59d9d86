//! Suggestions after `[[`: notes whose names contain the typed text, and after `#` the note's headings.
//!
//! Nothing changes until one is chosen.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Area, Id, Order, Sense, pos2, vec2};
use engine::{Session, Volume};
use store::DocId;
use text::links::{fold_name, without_md_extension};
use text::outline::LinkKind;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{floating_frame, paint_clipped_text, set_accessible_name};

/// Maximum number of suggestions.
const MAX_LINK_SUGGESTIONS: usize = 8;
/// Maximum length of the typed text after the brackets, in bytes.
pub(crate) const MAX_LINK_QUERY_BYTES: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkSuggestion {
    name: String,
    about: String,
    /// Text inserted between the brackets.
    pub(crate) insert: String,
}

/// State of link completion.
#[derive(Default)]
pub(crate) struct LinkCompletion {
    /// Start of the text between the brackets, and the text.
    pub(crate) open: Option<(usize, String)>,
    pub(crate) offers: Vec<LinkSuggestion>,
    pub(crate) chosen: usize,
    pub(crate) made: Option<(DocId, u64, String)>,
    /// Start of a link for which the suggestions were dismissed.
    pub(crate) left: Option<usize>,
}

/// Id of the list's area.
pub(crate) fn link_list() -> Id {
    Id::unique("completion")
}

impl LinkCompletion {
    /// Draws the suggestions. Returns the index of the clicked one.
    pub(crate) fn show(&self, ctx: &egui::Context, caret: egui::Rect) -> Option<usize> {
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ThemeColors::for_dark_mode(dark);
        let mut clicked = None;
        let at = caret.left_bottom() + vec2(-space::M, space::XS);
        Area::new(link_list()).order(Order::Foreground).fixed_pos(at).constrain(true).show(ctx, |ui| {
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

/// Returns the suggestions for a text between brackets.
pub(crate) fn offers(session: &Session, volume: &Volume, own: DocId, query: &str) -> Vec<LinkSuggestion> {
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
    let (recent, wanted) = (&session.settings().recent, fold_name(query));
    let mut best: Vec<((usize, usize, usize), &str, DocId)> = Vec::new();
    for (path, row) in &volume.files {
        if !row.kind.is_text() || row.id == own {
            continue;
        }
        let stem = without_md_extension(path);
        let plain = if stem.is_ascii() { std::borrow::Cow::Borrowed(stem) } else { fold_name(stem).into() };
        let name = plain.rsplit('/').next().unwrap_or(&plain);
        let Some(found) = rank(name, &wanted).or_else(|| rank(&plain, &wanted).map(|rank| rank + 10)) else { continue };
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
        offers.push(LinkSuggestion { name: query.to_owned(), about: "new note".to_owned(), insert: query.to_owned() });
    }
    offers
}

/// Ranks a match: 0 at the start of the name, 1 at the start of a word, 2 inside.
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
