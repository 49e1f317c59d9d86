//! The conflicts of an unfolded file: the text of both sides, with buttons that choose.

use super::{PageScene, begin, note_line};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Galley, Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};
use host::source_control::{ConflictChoice, ConflictReading, ConflictRegion, DiffTarget, GitRequest};
use notebook::actions::PageAction;
use std::sync::Arc;
use ui::icons;
use ui::theme::{self, CARD_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, set_accessible_name, text_button};

/// Maximum number of conflicts of a file that are shown at once.
const MAX_SHOWN_CONFLICTS: usize = 100;
/// Maximum number of lines and bytes of a side that are shown.
const MAX_SIDE_LINES: usize = 40;
const MAX_SIDE_BYTES: usize = 8_000;
/// Minimum width of the list for showing both sides beside each other.
const MIN_SPLIT_WIDTH: f32 = 560.0;
/// Height of a side's title.
const TITLE_HEIGHT: f32 = 24.0;

/// Draws the conflicts of a file.
pub(crate) fn show(ui: &mut Ui, scene: &PageScene<'_>, path: &str, actions: &mut Vec<PageAction>) {
    ui.add_space(space::XS);
    let target = DiffTarget::Conflict(path.to_owned());
    let Some(reading) = scene.source.diff(scene.volume, &target, scene.status.number) else {
        note_line(ui, icons::HOURGLASS, "Reading the conflicts…");
        return;
    };
    if let Some(why) = &reading.trouble {
        note_line(ui, icons::WARNING, why);
        return;
    }
    let Some(conflict) = &reading.conflict else { return };
    if let Some(why) = &conflict.file.trouble {
        note_line(ui, icons::INFO, &format!("{}.", ui::text::sentence(why)));
    }
    whole_file(ui, scene, conflict, actions);
    let count = conflict.file.regions.len();
    for region in conflict.file.regions.iter().take(MAX_SHOWN_CONFLICTS) {
        show_region(ui, scene, conflict, region, actions);
    }
    if count > MAX_SHOWN_CONFLICTS {
        note_line(ui, icons::INFO, "More conflicts follow once these are resolved.");
    }
}

/// Draws the choice between both sides' whole files, or between the file and none.
fn whole_file(ui: &mut Ui, scene: &PageScene<'_>, conflict: &ConflictReading, actions: &mut Vec<PageAction>) {
    let (file, sides) = (&conflict.file, &conflict.sides);
    let has_both = file.kind.has_file(false) && file.kind.has_file(true);
    if !has_both {
        for is_theirs in [false, true] {
            let what = if file.kind.has_file(is_theirs) { "has the file" } else { "doesn't have the file" };
            note_line(ui, icons::INFO, &format!("{}: {what}", sides.side(is_theirs).name));
        }
    }
    if !scene.can_change() {
        return;
    }
    let yours = sides.is_yours_theirs();
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
        // Where neither side has the file, both choices delete it.
        let shown: &[bool] =
            if file.kind.has_file(false) || file.kind.has_file(true) { &[true, false] } else { &[true] };
        for is_yours in shown.iter().copied() {
            let is_theirs = is_yours == yours;
            let label = match (has_both, is_yours) {
                (true, true) => "Use your whole file",
                (true, false) => "Use their whole file",
                (false, _) if file.kind.has_file(is_theirs) => "Keep the file",
                (false, _) => "Delete the file",
            };
            let button = text_button(ui, label, false);
            set_accessible_name(&button, Role::Button, &format!("{label}: {}", file.path));
            let about = format!("Takes the file as it is on this side: {}", sides.side(is_theirs).name);
            let button = button.on_hover_text(text::untrusted_text::escape_block(&about).into_owned());
            if button.clicked() {
                let choice = if is_theirs { ConflictChoice::Theirs } else { ConflictChoice::Ours };
                choose(scene, conflict, (choice, None), actions);
            }
        }
        // A note without markers may have been edited until nothing is left to choose.
        if file.is_unmarked && file.regions.is_empty() {
            let button = text_button(ui, "Keep the text as it is", false);
            set_accessible_name(&button, Role::Button, &format!("Keep the text as it is: {}", file.path));
            if button.clicked() {
                begin(actions, scene.volume, GitRequest::Stage(vec![file.path.clone()]));
            }
        }
    });
    ui.add_space(space::S);
}

/// Draws both sides of a conflict in Git's order, which is that of “Keep both”.
fn show_region(
    ui: &mut Ui,
    scene: &PageScene<'_>,
    conflict: &ConflictReading,
    region: &ConflictRegion,
    actions: &mut Vec<PageAction>,
) {
    let (path, count) = (&conflict.file.path, conflict.file.regions.len());
    let title = format!("Conflict {} of {count}, line {}", region.number, region.line);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), TITLE_HEIGHT), Sense::hover());
    let muted = ThemeColors::of(ui).muted;
    paint_clipped_text(ui, rect.min + vec2(space::S, 2.0), rect.width(), &title, &theme::small(), muted);
    set_accessible_name(&response, Role::Heading, &title);

    let texts = [&region.ours, &region.theirs].map(|text| shown_text(text));
    let width = ui.available_width();
    let is_split = width >= MIN_SPLIT_WIDTH;
    let card_width = if is_split { (width - space::S) / 2.0 } else { width };
    let galleys = texts.clone().map(|text| lay_out(ui, &text, card_width - 2.0 * space::M));
    let heights = galleys.each_ref().map(|galley| TITLE_HEIGHT + galley.size().y + 2.0 * space::XS);
    let height = if is_split { heights[0].max(heights[1]) } else { heights[0] + space::S + heights[1] };
    let (area, _) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
    for (place, (galley, text)) in galleys.into_iter().zip(&texts).enumerate() {
        let is_theirs = place == 1;
        let at = match (is_split, is_theirs) {
            (_, false) => area.min,
            (true, true) => pos2(area.left() + card_width + space::S, area.top()),
            (false, true) => pos2(area.left(), area.top() + heights[0] + space::S),
        };
        let size = vec2(card_width, if is_split { height } else { heights[place] });
        let card = Rect::from_min_size(at, size);
        if ui.is_rect_visible(card) {
            let side = conflict.sides.side(is_theirs);
            let response = ui.interact(card, ui.scope_id().with(("side", path, region.number, place)), Sense::hover());
            set_accessible_name(&response, Role::Label, &format!("{}: {text}", side.name));
            paint_side(ui, card, &side.name, side.is_yours, galley);
        }
    }
    ui.add_space(space::XS);
    if scene.can_change() {
        let yours = conflict.sides.is_yours_theirs();
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(space::S, space::XS);
            let side = |is_theirs| if is_theirs { ConflictChoice::Theirs } else { ConflictChoice::Ours };
            let choices =
                [("Keep yours", side(yours)), ("Keep theirs", side(!yours)), ("Keep both", ConflictChoice::Both)];
            for (label, choice) in choices {
                let button = text_button(ui, label, false);
                let name = format!("{label} in conflict {} of {path}", region.number);
                set_accessible_name(&button, Role::Button, &name);
                if button.clicked() {
                    choose(scene, conflict, (choice, Some(region.number)), actions);
                }
            }
        });
    }
    ui.add_space(space::M);
}

fn choose(
    scene: &PageScene<'_>,
    conflict: &ConflictReading,
    (choice, region): (ConflictChoice, Option<usize>),
    actions: &mut Vec<PageAction>,
) {
    let (path, seen) = (conflict.file.path.clone(), conflict.file.seen.clone());
    begin(actions, scene.volume, GitRequest::Resolve { path, choice, region, seen });
}

/// Returns the beginning of a side's text for display.
fn shown_text(text: &str) -> String {
    if text.is_empty() {
        return "(no text)".to_owned();
    }
    let start = &text[..text.floor_char_boundary(MAX_SIDE_BYTES)];
    let mut shown: Vec<&str> = start.lines().take(MAX_SIDE_LINES).collect();
    let is_cut = start.len() < text.len() || start.lines().count() > MAX_SIDE_LINES;
    if is_cut {
        shown.push("…");
    }
    text::untrusted_text::escape_block(&shown.join("\n")).into_owned()
}

fn lay_out(ui: &Ui, text: &str, width: f32) -> Arc<Galley> {
    let (style, ink) = (theme::code(), ThemeColors::of(ui).ink);
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = width.max(40.0);
    job.append(text, 0.0, ui::widgets::format(style.font, style.line, ink));
    ui.fonts_mut(|fonts| fonts.layout_job(job))
}

fn paint_side(ui: &Ui, card: Rect, name: &str, is_yours: bool, galley: Arc<Galley>) {
    let colours = ThemeColors::of(ui);
    let stroke = Stroke::new(1.0, if is_yours { colours.accent } else { colours.line });
    ui.painter().rect(card, CARD_CORNER, colours.sunken, stroke, StrokeKind::Inside);
    let at = card.min + vec2(space::M, space::XS);
    paint_clipped_text(ui, at, card.width() - 2.0 * space::M, name, &theme::caption(), colours.muted);
    ui.painter().galley(card.min + vec2(space::M, TITLE_HEIGHT), galley, colours.ink);
}
