//! Other people in the open note: their carets and selections with name and color. Also defines the user's own carets
//! that are reported to them.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, Id, Rect, Sense, Ui, pos2, vec2};
use engine::{Note, Session};
use std::ops::Range;
use std::time::Duration;
use store::DocId;
use text::text_edit::shift_offset;
use text::untrusted_text;
use ui::theme::{self, ThemeColors, space};
use ui::widgets::set_accessible_name;

/// How long a name is shown next to a caret that moved, in seconds.
const CURSOR_NAME_SECONDS: f64 = 3.0;

/// The user's carets: the note, and each caret with the other end of its selection, in bytes.
pub type SharedCarets = (Option<DocId>, Vec<(usize, usize)>);

/// Another person in the note.
pub struct RemoteUser {
    /// Name chosen by the user, or the name of the device.
    pub name: String,
    peer: String,
    moves: u64,
    /// Carets and the other ends of their selections, in bytes of the current note.
    carets: Vec<(usize, usize)>,
}

/// Returns the other people in a note.
pub fn remote_users(session: &Session, note: &Note) -> Vec<RemoteUser> {
    let others = session.sync().peers_at(note.id).iter();
    let person = |one: &engine::RemotePeer| {
        let mut carets = one.carets.clone();
        match note.shifts_since(one.revision) {
            Some(shifts) => {
                for shift in shifts {
                    let through = |at: usize| shift_offset(at, shift.at, shift.delete, shift.insert, false);
                    carets.iter_mut().for_each(|(at, anchor)| (*at, *anchor) = (through(*at), through(*anchor)));
                }
            }
            None => carets.clear(),
        }
        RemoteUser { name: one.name.clone(), peer: one.peer.clone(), moves: one.moves, carets }
    };
    others.map(person).collect()
}

/// Returns other people's selections that touch a row, with their colors.
pub fn selection_fills(
    people: &[RemoteUser],
    own: &Range<usize>,
    colours: &ThemeColors,
) -> Vec<(Range<usize>, Color32)> {
    let touches = |range: &Range<usize>| !range.is_empty() && range.start <= own.end && range.end >= own.start;
    let of = |person: &RemoteUser| {
        let colour = colours.person_color(&person.name).gamma_multiply(0.22);
        let ranges = person.carets.iter().map(|(at, anchor)| *at.min(anchor)..*at.max(anchor));
        ranges.filter(touches).map(|range| (range, colour)).collect::<Vec<_>>()
    };
    people.iter().flat_map(of).collect()
}

/// Draws other people's carets in a row; `place` maps a byte of the note to the screen.
pub fn paint_carets(ui: &Ui, people: &[RemoteUser], own: &Range<usize>, place: impl Fn(usize) -> Option<Rect>) {
    for person in people {
        for (number, (at, _)) in person.carets.iter().enumerate() {
            if !own.contains(at) && *at != own.end {
                continue;
            }
            if let Some(rect) = place(*at) {
                caret(ui, person, number, rect);
            }
        }
    }
}

fn caret(ui: &Ui, person: &RemoteUser, number: usize, rect: Rect) {
    let colours = ThemeColors::of(ui);
    let colour = colours.person_color(&person.name);
    let line = Rect::from_min_max(rect.min, pos2(rect.min.x + 2.0, rect.max.y.max(rect.min.y + 18.0)));
    ui.painter().rect_filled(line, 0.0, colour);
    let id = Id::unique(("caret of", &person.peer, number));
    let response = ui.interact(line.expand2(vec2(space::XS, 2.0)), id, Sense::hover());
    set_accessible_name(&response, Role::Label, &format!("{} is here", person.name));
    if number > 0 {
        return;
    }
    let now = ui.input(|input| input.time);
    let known: Option<(u64, f64)> = ui.data(|data| data.get_temp(id));
    let since = match known.filter(|(moves, _)| *moves == person.moves) {
        Some((_, since)) => since,
        None => {
            ui.data_mut(|data| data.insert_temp(id, (person.moves, now)));
            now
        }
    };
    let left = since + CURSOR_NAME_SECONDS - now;
    if left > 0.0 {
        ui.ctx().request_repaint_after(Duration::from_secs_f64(left));
    } else if !response.hovered() {
        ui.painter().circle_filled(line.center_top(), 3.0, colour);
        return;
    }
    let font = theme::inter_font(theme::InterCut::SemiBold, 11.0);
    let galley =
        ui.painter().layout_no_wrap(untrusted_text::escape_line(&person.name).into_owned(), font, colours.paper);
    let size = galley.size() + vec2(2.0 * space::XS, 2.0);
    let flag = Rect::from_min_size(pos2(line.left(), line.top() - size.y), size);
    ui.painter().rect_filled(flag, 3.0, colour);
    ui.painter().galley(flag.min + vec2(space::XS, 1.0), galley, colours.paper);
}

/// Shows other people in the note in the status bar: a dot in each person's color, and text. Returns the width.
pub fn show_remote_users(ui: &Ui, session: &Session, note: &Note, right: f32) -> f32 {
    let mut names: Vec<&str> = session.sync().peers_at(note.id).iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let text = match names.as_slice() {
        [] => return 0.0,
        [one] => format!("{one} is here"),
        [one, two] => format!("{one} and {two} are here"),
        many => format!("{} others are here", many.len()),
    };
    let colours = ThemeColors::of(ui);
    let galley = ui.painter().layout_no_wrap(
        untrusted_text::escape_line(&text).into_owned(),
        theme::tabular_font(12.0),
        colours.muted,
    );
    let dots = names.len().min(4) as f32 * 10.0 + 2.0;
    let width = galley.size().x + dots;
    let middle = ui.max_rect().center().y;
    for (place, name) in names.iter().take(4).enumerate() {
        let at = pos2(right - width + 4.0 + place as f32 * 10.0, middle);
        ui.painter().circle_filled(at, 3.5, colours.person_color(name));
    }
    let at = Align2::RIGHT_CENTER.anchor_size(pos2(right, middle), galley.size()).min;
    let rect = Rect::from_min_max(pos2(right - width, at.y), pos2(right, at.y + galley.size().y));
    ui.painter().galley(at, galley, colours.muted);
    let response = ui.interact(rect, ui.scope_id().with("company"), Sense::hover());
    set_accessible_name(&response, Role::Label, &text);
    response.on_hover_text(untrusted_text::escape_line(&names.join(", ")).into_owned());
    width
}
