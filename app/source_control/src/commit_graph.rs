//! The history: commits of all branches with lines from each to its parents. Only what is in sight is drawn.

use super::diff_list::DiffList;
use super::{PageScene, ROW_HEIGHT, note_line, paint_row};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, Pos2, Rect, Sense, Stroke, Ui, pos2, vec2};
use host::source_control::{Commit, DiffTarget, GraphReading, GraphRow, MAX_GRAPH_LANES};
use notebook::actions::PageAction;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{paint_clipped_text, set_accessible_name};

/// Distance between two lanes.
const LANE_WIDTH: f32 = 14.0;
/// Maximum number of lanes that are drawn apart; further ones lie on the last.
const MAX_SHOWN_LANES: usize = 10;
/// Radius of a commit's point.
const POINT_RADIUS: f32 = 4.0;
/// Maximum number of names of branches and tags beside a commit.
const MAX_SHOWN_NAMES: usize = 3;
/// Maximum width of such a name, in points.
const MAX_NAME_WIDTH: f32 = 160.0;
/// Width of a commit's hash.
const HASH_WIDTH: f32 = 76.0;

/// What is kept of the graph between frames.
#[derive(Default)]
pub(crate) struct CommitGraphView {
    /// The graph, its number of lanes, and the place of the unfolded commit.
    measured: Option<(Arc<GraphReading>, usize)>,
    unfolded: Option<(Arc<GraphReading>, DiffTarget, Option<usize>)>,
    /// The status that the names are from, and the names of branches and tags by commit.
    names: Option<(u64, HashMap<String, Vec<String>>)>,
}

impl CommitGraphView {
    /// Draws the graph.
    pub(crate) fn show(
        &mut self,
        ui: &mut Ui,
        scene: &PageScene<'_>,
        (unfolded, diff): (&mut Option<DiffTarget>, &mut DiffList),
        actions: &mut Vec<PageAction>,
    ) {
        let Some(reading) = scene.source.graph(scene.volume, scene.status) else {
            note_line(ui, icons::HOURGLASS, "Reading the history…");
            return;
        };
        if let Some(why) = &reading.trouble {
            note_line(ui, icons::WARNING, why);
            return;
        }
        if reading.rows.is_empty() {
            note_line(ui, icons::INFO, "No commits yet");
            return;
        }
        self.name_commits(scene);
        let lanes = self.lane_count(&reading);
        let split = self.unfolded_row(&reading, unfolded.as_ref());
        let rows = reading.rows.as_slice();
        let end = split.map_or(rows.len(), |row| row + 1);
        let mut clicked = self.show_rows(ui, rows, 0..end, (lanes, split));
        if split.is_some() {
            if let Some(target) = unfolded.clone() {
                diff.show(ui, scene, &target, &[], actions);
            }
            clicked = clicked.or(self.show_rows(ui, rows, end..rows.len(), (lanes, split)));
        }
        if let Some(row) = clicked {
            *unfolded = (split != Some(row)).then(|| DiffTarget::Commit(rows[row].commit.id.clone()));
        }
        if reading.is_reading {
            note_line(ui, icons::HOURGLASS, "Reading older commits…");
        } else if !reading.is_complete {
            note_line(ui, icons::INFO, "There are more commits than are shown here.");
        }
    }

    /// Collects the names of branches and tags once for each status.
    fn name_commits(&mut self, scene: &PageScene<'_>) {
        let status = scene.status;
        if self.names.as_ref().is_some_and(|(number, _)| *number == status.number) {
            return;
        }
        let mut names: HashMap<String, Vec<String>> = HashMap::new();
        let branches = status.branches.iter().chain(&status.remote_branches).map(|one| (&one.id, &one.name));
        for (id, name) in branches.chain(status.tags.iter().map(|tag| (&tag.id, &tag.name))) {
            names.entry(id.clone()).or_default().push(name.clone());
        }
        self.names = Some((status.number, names));
    }

    fn lane_count(&mut self, reading: &Arc<GraphReading>) -> usize {
        if let Some((known, lanes)) = &self.measured
            && Arc::ptr_eq(known, reading)
        {
            return *lanes;
        }
        let used = reading.rows.iter().fold(1, |used, row| used | row.through | row.from_above | row.to_below);
        let lanes = (u64::BITS - used.leading_zeros()) as usize;
        let lanes = reading.rows.iter().map(|row| usize::from(row.lane) + 1).max().unwrap_or(1).max(lanes);
        let lanes = lanes.min(MAX_SHOWN_LANES);
        self.measured = Some((reading.clone(), lanes));
        lanes
    }

    /// Returns the row of the unfolded commit.
    fn unfolded_row(&mut self, reading: &Arc<GraphReading>, target: Option<&DiffTarget>) -> Option<usize> {
        let target @ DiffTarget::Commit(id) = target? else { return None };
        let is_known = |(known, of, _): &&(Arc<GraphReading>, DiffTarget, Option<usize>)| {
            Arc::ptr_eq(known, reading) && of == target
        };
        if let Some((_, _, row)) = self.unfolded.as_ref().filter(is_known) {
            return *row;
        }
        let row = reading.rows.iter().position(|row| row.commit.id == *id);
        self.unfolded = Some((reading.clone(), target.clone(), row));
        row
    }

    /// Draws some rows. Returns the one that was clicked.
    fn show_rows(
        &self,
        ui: &mut Ui,
        rows: &[GraphRow],
        range: Range<usize>,
        (lanes, open): (usize, Option<usize>),
    ) -> Option<usize> {
        let height = ROW_HEIGHT * range.len() as f32;
        let (area, _) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
        let clip = ui.clip_rect();
        let above = ((clip.top() - area.top()) / ROW_HEIGHT).floor().max(0.0) as usize;
        let below = ((clip.bottom() - area.top()) / ROW_HEIGHT).ceil().max(0.0) as usize;
        let mut clicked = None;
        let shown = (range.start + above).min(range.end)..(range.start + below).min(range.end);
        for (row, one) in shown.clone().zip(&rows[shown]) {
            let top = area.top() + ROW_HEIGHT * (row - range.start) as f32;
            let rect = Rect::from_min_size(pos2(area.left(), top), vec2(area.width(), ROW_HEIGHT));
            let response = ui.interact(rect, ui.scope_id().with(("commit", row)), Sense::click());
            if response.clicked() {
                clicked = Some(row);
            }
            let is_open = open == Some(row);
            let commit = &one.commit;
            set_accessible_name(&response, Role::Button, &commit_label(commit));
            ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(is_open));
            paint_row(ui, &response, is_open);
            let graph = rect.with_max_x(rect.left() + space::M + LANE_WIDTH * lanes as f32);
            paint_lanes(ui, graph, one, lanes);
            let names = self.names.as_ref().and_then(|(_, names)| names.get(&commit.id));
            let left = paint_names(ui, rect.with_min_x(graph.right()), names.map_or(&[], Vec::as_slice));
            paint_commit(ui, rect.with_min_x(left), commit);
        }
        clicked
    }
}

/// Returns a commit for screen readers.
pub(crate) fn commit_label(commit: &Commit) -> String {
    let id = commit.id.get(..8).unwrap_or(&commit.id);
    format!("Commit {id}: {}, by {}, {}", commit.summary, commit.author, ui::time::when(commit.author_time))
}

/// Paints hash, summary, author and time of a commit.
pub(crate) fn paint_commit(ui: &Ui, rect: Rect, commit: &Commit) {
    let colours = ThemeColors::of(ui);
    let about = format!("{}, {}", commit.author, ui::time::when(commit.author_time));
    let text = text::untrusted_text::escape_line(&about).into_owned();
    let galley = ui.painter().layout_no_wrap(text, theme::caption().font, colours.muted);
    let shown = galley.size().x.min(rect.width() * 0.45);
    let middle = rect.center().y;
    let id = commit.id.get(..8).unwrap_or(&commit.id);
    let at = pos2(rect.left() + space::S, middle);
    ui.painter().text(at, Align2::LEFT_CENTER, id, theme::tabular_font(12.0), colours.muted);
    let room = rect.width() - shown - HASH_WIDTH - space::S - 2.0 * space::M;
    let at = pos2(rect.left() + space::S + HASH_WIDTH, middle - 10.0);
    paint_clipped_text(ui, at, room.max(0.0), &commit.summary, &theme::small(), colours.ink);
    let at = pos2(rect.right() - shown - space::S, middle - 8.0);
    paint_clipped_text(ui, at, shown, &about, &theme::caption(), colours.muted);
}

fn lane_color(lane: usize, colours: &ThemeColors) -> Color32 {
    [colours.accent, colours.ok, colours.warn, colours.tool, colours.thought, colours.bad][lane % 6]
}

/// Paints the lines of a row, and the commit's point.
fn paint_lanes(ui: &Ui, rect: Rect, row: &GraphRow, lanes: usize) {
    let colours = ThemeColors::of(ui);
    let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
    let x = |lane: usize| rect.left() + space::M + LANE_WIDTH * lane.min(lanes - 1) as f32;
    let of = |bits: u64| (0..MAX_GRAPH_LANES).filter(move |lane| bits & (1 << lane) != 0);
    let stroke = |lane: usize| Stroke::new(1.5, lane_color(lane, colours));
    for lane in of(row.through) {
        painter.vline(x(lane), rect.y_range(), stroke(lane));
    }
    let own = usize::from(row.lane);
    let point = pos2(x(own), rect.center().y);
    let curve = |end: Pos2, lane: usize| {
        let middle = (end.y + point.y) / 2.0;
        let points = [end, pos2(end.x, middle), pos2(point.x, middle), point];
        let shape =
            egui::epaint::CubicBezierShape::from_points_stroke(points, false, Color32::TRANSPARENT, stroke(lane));
        painter.add(shape);
    };
    of(row.from_above).for_each(|lane| curve(pos2(x(lane), rect.top()), lane));
    of(row.to_below).for_each(|lane| curve(pos2(x(lane), rect.bottom()), lane));
    painter.circle_filled(point, POINT_RADIUS, lane_color(own, colours));
    if row.parents.len() > 1 {
        painter.circle_filled(point, POINT_RADIUS - 2.0, colours.paper);
    }
}

/// Paints names of branches and tags in the left half of a row, and how many more there are. Returns where they end.
fn paint_names(ui: &Ui, row: Rect, names: &[String]) -> f32 {
    let colours = ThemeColors::of(ui);
    let lay_out = |name: &str, room: f32| {
        let style = theme::caption();
        let mut job = egui::text::LayoutJob::default();
        job.append(
            &text::untrusted_text::escape_line(name),
            0.0,
            ui::widgets::format(style.font, style.line, colours.accent),
        );
        job.wrap = egui::text::TextWrapping::truncate_at_width(room.max(0.0));
        ui.fonts_mut(|fonts| fonts.layout_job(job))
    };
    let half = row.center().x;
    let mut left = row.left();
    for (place, name) in names.iter().enumerate() {
        let room = half - left - space::M;
        let mut galley = lay_out(name, MAX_NAME_WIDTH.min(room));
        let is_last = place == MAX_SHOWN_NAMES || (place > 0 && room < MAX_NAME_WIDTH && galley.elided);
        if is_last {
            galley = lay_out(&format!("+{}", names.len() - place), f32::INFINITY);
        }
        let size = galley.size() + vec2(space::M, 4.0);
        let rect = Rect::from_min_size(pos2(left, row.center().y - size.y / 2.0), size);
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
        let at = Align2::CENTER_CENTER.align_size_within_rect(galley.size(), rect).min;
        ui.painter().galley(at, galley, colours.accent);
        left = rect.right() + space::XS;
        if is_last {
            break;
        }
    }
    left
}
