//! The graph of all notes, or of those around the open one.
//!
//! A thread computes the layout in steps, and the window draws it as one mesh. Colors stand for folders, or for volumes
//! if several are shown. Names are drawn where there's room for them.

use crate::panels::backlinks_panel::button;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Color32, Layout, Mesh, Pos2, Rect, Sense, Shape, Ui, UiBuilder, Vec2, pos2, vec2};
use engine::Session;
use engine::commands::CommandId;
use notebook::actions::PageAction;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use store::{DocId, FileKind};
use ui::empty_state::show_message;
use ui::text::{counted, shown_name};
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{chip_button, set_accessible_name};

/// Time per frame spent on looking up links.
const LINK_LOOKUP_BUDGET: Duration = Duration::from_millis(4);
/// Maximum number of drawn edges. Above it, only every second edge or fewer are drawn.
const MAX_DRAWN_EDGES: usize = 40_000;
/// Maximum number of names drawn at once.
const MAX_DRAWN_NAMES: usize = 80;
/// How many links away from the open note its local graph reaches.
const LOCAL_GRAPH_DEPTH: usize = 2;
/// Number of layout steps. Movements get smaller with each step.
const LAYOUT_STEPS: usize = 300;

/// Maximum number of groups with their own color: the largest ones.
const MAX_COLORED_GROUPS: usize = 5;
/// Maximum number of volumes that can be chosen above the graph.
const MAX_VOLUME_CHIPS: usize = 6;
/// Width of the filter field above the graph, in points.
const FILTER_WIDTH: f32 = 200.0;

/// The current node positions. The layout thread runs while there are strong references to them.
type NodePositions = Mutex<Arc<Vec<[f32; 2]>>>;
/// What screen positions depend on: the positions' address, center and zoom, and the area.
type GraphViewport = (usize, [u32; 3], [u32; 4]);
/// What a mesh was made from: viewport, hovered note, open note, dark mode and filter.
type GraphMeshKey = (GraphViewport, Option<usize>, Option<DocId>, bool, String);

/// State of the graph page.
#[derive(Default)]
pub(crate) struct GraphPage {
    /// The note whose surroundings are shown; `None` shows all notes.
    around: Option<DocId>,
    /// The only volume that is shown; `None` shows all.
    volume: Option<DocId>,
    /// The text to find in notes' names, as typed.
    filter: String,
    /// Whether each note matches the filter; empty if there's no filter.
    found: Vec<bool>,
    made: Option<Vec<u64>>,
    /// Notes whose links haven't been looked up yet.
    left: Vec<DocId>,
    nodes: Vec<(DocId, String)>,
    number: HashMap<DocId, u32>,
    /// Each note's folder or volume, until the colors are assigned.
    groups: Vec<String>,
    /// Each note's index into `colored`, if its group has a color.
    hues: Vec<Option<usize>>,
    /// The largest groups, which have their own colors.
    colored: Vec<String>,
    edges: Vec<(u32, u32)>,
    degrees: Vec<u32>,
    places: Option<Arc<NodePositions>>,
    /// The graph point at the center of the view, and the zoom in screen points per graph unit.
    centre: Vec2,
    zoom: f32,
    /// Whether the user has panned or zoomed the view.
    moved: bool,
    /// Screen positions of the notes, and the viewport for which they were computed.
    points: Vec<Pos2>,
    view: Option<GraphViewport>,
    mesh: Option<(GraphMeshKey, Arc<Mesh>)>,
}

impl GraphPage {
    /// Creates the graph of all notes, or of those around one.
    pub(crate) fn new(around: Option<DocId>) -> GraphPage {
        GraphPage { around, zoom: 1.0, ..GraphPage::default() }
    }

    /// Collects notes and links, a limited time per frame, and then starts the layout.
    fn gather(&mut self, ui: &Ui, session: &Session) {
        let state: Vec<u64> = session.volumes().map(|volume| volume.revision).collect();
        if self.made.as_ref() != Some(&state) {
            // A closed volume is no longer selected.
            let volume = self.volume.filter(|volume| session.volume(*volume).is_some());
            let filter = std::mem::take(&mut self.filter);
            *self = GraphPage { made: Some(state), volume, filter, ..GraphPage::new(self.around) };
            match self.around {
                Some(note) => self.neighbours(session, note),
                None => {
                    let shown = session.volumes().filter(|volume| self.volume.is_none_or(|only| only == volume.id));
                    let shown: Vec<_> = shown.collect();
                    for volume in &shown {
                        for row in volume.files.values().filter(|row| row.kind == FileKind::Note) {
                            let group = if shown.len() > 1 { &volume.name } else { first_folder(&row.path) };
                            self.enter(row.id, &row.path, group);
                        }
                    }
                }
            }
            self.colored = largest_groups(&self.groups);
            let hue = |group: String| self.colored.iter().position(|name| *name == group);
            self.hues = std::mem::take(&mut self.groups).into_iter().map(hue).collect();
            self.find_notes();
            self.left = self.nodes.iter().map(|(note, _)| *note).collect();
        }
        if self.places.is_some() {
            return;
        }
        let begun = Instant::now();
        while let Some(note) = self.left.pop() {
            let volume = session.locate_file(note).and_then(|(volume, _)| session.volume(volume));
            let (Some(volume), Some(from)) = (volume, self.number.get(&note).copied()) else { continue };
            let mut seen = HashSet::from([from]);
            let targets = volume.links.outgoing_links(note).filter_map(|(_, to)| self.number.get(&to?).copied());
            self.edges.extend(targets.filter(|to| seen.insert(*to)).map(|to| (from, to)));
            if begun.elapsed() > LINK_LOOKUP_BUDGET {
                ui.ctx().request_repaint();
                return;
            }
        }
        self.degrees = vec![0; self.nodes.len()];
        for (from, to) in &self.edges {
            self.degrees[*from as usize] += 1;
            self.degrees[*to as usize] += 1;
        }
        self.places = Some(lay_out(self.nodes.len(), self.edges.clone(), ui.ctx().clone()));
    }

    fn enter(&mut self, note: DocId, path: &str, group: &str) -> bool {
        if self.number.contains_key(&note) {
            return false;
        }
        self.number.insert(note, u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.groups.push(group.to_owned());
        self.nodes.push((note, shown_name(path.rsplit('/').next().unwrap_or(path)).to_owned()));
        true
    }

    /// Adds the notes that are a few links away from a note, in either direction.
    fn neighbours(&mut self, session: &Session, note: DocId) {
        let Some(volume) = session.locate_file(note).and_then(|(volume, _)| session.volume(volume)) else { return };
        let mut ring = vec![note];
        for _ in 0..=LOCAL_GRAPH_DEPTH {
            let mut next = Vec::new();
            for note in ring {
                let Some(path) = volume.links.path(note) else { continue };
                let is_note = volume.files.get(path).is_some_and(|row| row.kind == FileKind::Note);
                if is_note && self.enter(note, path, first_folder(path)) {
                    next.extend(volume.links.outgoing_links(note).filter_map(|(_, to)| to));
                    next.extend(volume.links.backlinks(note).into_iter().map(|(from, _)| from));
                }
            }
            ring = next;
        }
    }

    pub(crate) fn show(&mut self, ui: &mut Ui, session: &Session, note: Option<DocId>, actions: &mut Vec<PageAction>) {
        self.gather(ui, session);
        let area = ui.available_rect_before_wrap();
        let colours = ThemeColors::of(ui);
        let response = ui.interact(area, ui.scope_id().with("graph"), Sense::click_and_drag());
        let (notes, links) = (counted(self.nodes.len(), "note"), counted(self.edges.len(), "link"));
        let words = format!("Graph of {notes} and {links}");
        set_accessible_name(&response, Role::Canvas, &words);
        let places = self.places.as_ref().and_then(|places| places.lock().ok().map(|places| places.clone()));
        let Some(places) = places.filter(|places| !places.is_empty()) else {
            if self.nodes.is_empty() {
                let (button, command) = match session.volumes().next() {
                    None => ("Open a folder", CommandId::FolderOpen),
                    Some(_) => ("Create a note", CommandId::NoteNew),
                };
                let text = "The graph shows notes and the links between them. There are no notes yet.";
                if show_message(ui, text, Some(button), "") {
                    actions.push(PageAction::Run(command));
                }
            } else {
                let (at, font) = (area.center(), theme::small().font);
                ui.painter().text(at, Align2::CENTER_CENTER, "Looking up the links…", font, colours.muted);
            }
            self.show_controls(ui, session, note, area);
            return;
        };
        self.steer(ui, &response, area, &places);
        let view = self.look(area, &places);
        let pointer = ui.input(|input| input.pointer.latest_pos()).filter(|_| response.hovered());
        let hovered = pointer.and_then(|pointer| self.nearest(pointer));
        let mesh = self.mesh(view, area, hovered, note, ui.visuals().dark_mode);
        let painter = ui.painter().with_clip_rect(area);
        painter.add(Shape::mesh(mesh));
        self.names(&painter, area, hovered, colours);
        let at = area.left_bottom() + vec2(space::L, -space::M);
        painter.text(at, Align2::LEFT_BOTTOM, words, theme::caption().font, colours.muted);
        self.show_legend(&painter, area, colours);
        if let Some(node) = hovered {
            ui.ctx().set_cursor_icon(egui::CursorIcon::PointingHand);
            if response.clicked() {
                actions.push(PageAction::Open(self.nodes[node].0));
            }
        }
        self.show_controls(ui, session, note, area);
    }

    /// Draws the controls above the graph: the filter field and the choice of notes to show.
    fn show_controls(&mut self, ui: &mut Ui, session: &Session, note: Option<DocId>, area: Rect) {
        let corner = area.shrink2(vec2(space::L, space::M)).with_max_y(area.top() + space::M + 28.0);
        let mut child = ui.new_child(UiBuilder::new().max_rect(corner).layout(Layout::left_to_right(Align::Min)));
        child.spacing_mut().item_spacing.x = space::S;
        let style = theme::small();
        let hint = egui::RichText::new("Find in the graph").font(style.font.clone()).color(ThemeColors::of(ui).muted);
        let mut query = self.filter.clone();
        let field = egui::TextEdit::singleline(&mut query).id_salt("filter").font(style.font.clone()).hint_text(hint);
        let response = field.desired_width(FILTER_WIDTH.min(corner.width() * 0.4)).show(&mut child).response.response;
        set_accessible_name(&response, Role::SearchInput, "Find in the graph");
        if response.changed() {
            self.filter = query;
            self.find_notes();
        }
        let other = match self.around {
            Some(_) => Some((None, "All notes")),
            None => note.map(|note| (Some(note), "Only around the open note")),
        };
        if let Some((around, label)) = other
            && button(&mut child, label).clicked()
        {
            *self = GraphPage::new(around);
            return;
        }
        if self.moved && button(&mut child, "Fit to window").clicked() {
            self.moved = false;
        }
        if self.around.is_some() || session.volumes().nth(1).is_none() {
            return;
        }
        let all = std::iter::once((None, "All volumes"));
        let mut volumes: Vec<_> = session.volumes().collect();
        volumes.sort_by_key(|volume| volume.name.to_lowercase());
        let each = volumes.into_iter().take(MAX_VOLUME_CHIPS).map(|volume| (Some(volume.id), volume.name.as_str()));
        for (volume, name) in all.chain(each) {
            let label = format!("Show in the graph: {name}");
            if chip_button(&mut child, name, &label, self.volume == volume, &style) {
                (self.volume, self.made) = (volume, None);
            }
        }
    }

    /// Returns whether a note matches the filter.
    fn is_found(&self, node: usize) -> bool {
        self.found.get(node).is_none_or(|found| *found)
    }

    /// Updates which notes match the filter, once per change rather than in each frame.
    fn find_notes(&mut self) {
        let words = text::links::fold_name(self.filter.trim());
        self.found.clear();
        if !words.is_empty() {
            self.found.extend(self.nodes.iter().map(|(_, name)| text::links::fold_name(name).contains(&words)));
        }
    }

    fn group_color(hue: Option<usize>, colours: &ThemeColors) -> Color32 {
        let all: [Color32; MAX_COLORED_GROUPS] = [colours.tool, colours.thought, colours.warn, colours.ok, colours.bad];
        hue.map_or(colours.muted, |place| all[place])
    }

    /// Draws the legend of colors at the bottom right.
    fn show_legend(&self, painter: &egui::Painter, area: Rect, colours: &ThemeColors) {
        let mut at = area.right_bottom() - vec2(space::L, space::M);
        for (place, group) in self.colored.iter().enumerate().rev() {
            let name = text::untrusted_text::escape_line(group);
            let name: String = name.chars().take(30).collect();
            let galley = painter.layout_no_wrap(name, theme::caption().font, colours.muted);
            let rect = Align2::RIGHT_BOTTOM.anchor_size(at, galley.size());
            // Names of notes may be below it.
            let ground = rect.with_min_x(rect.left() - 2.0 * space::S).expand2(vec2(space::XS, space::XS / 2.0));
            painter.rect_filled(ground, theme::CONTROL_CORNER, colours.paper);
            painter.galley(rect.min, galley, colours.muted);
            painter.circle_filled(
                pos2(rect.left() - space::S, rect.center().y),
                4.0,
                Self::group_color(Some(place), colours),
            );
            at.y = rect.top() - space::XS;
        }
    }

    /// Handles panning and zooming, and fits the whole graph into view until the user moves it.
    fn steer(&mut self, ui: &Ui, response: &egui::Response, area: Rect, places: &[[f32; 2]]) {
        if response.dragged() {
            self.centre -= response.drag_delta() / self.zoom;
            self.moved = true;
        }
        if response.hovered() {
            let (scroll, pinch, pointer) =
                ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta(), input.pointer.latest_pos()));
            let zoom = (self.zoom * (scroll * 0.004).exp() * pinch).clamp(0.005, 20.0);
            if scroll != 0.0 || pinch != 1.0 {
                let pointer = pointer.unwrap_or(area.center()) - area.center();
                // The point under the pointer stays in place.
                self.centre += pointer / self.zoom - pointer / zoom;
                (self.zoom, self.moved) = (zoom, true);
            }
        }
        if !self.moved {
            let mut whole = Rect::NOTHING;
            places.iter().for_each(|place| whole.extend_with(pos2(place[0], place[1])));
            self.centre = whole.center().to_vec2();
            let room = area.size() - Vec2::splat(2.0 * space::XXXL);
            self.zoom = (room.x / whole.width().max(1.0)).min(room.y / whole.height().max(1.0)).clamp(0.005, 3.0);
        }
    }

    /// Updates the notes' screen positions if the viewport has changed.
    fn look(&mut self, area: Rect, places: &Arc<Vec<[f32; 2]>>) -> GraphViewport {
        let bits = |number: f32| number.to_bits();
        let view = (
            Arc::as_ptr(places) as usize,
            [bits(self.centre.x), bits(self.centre.y), bits(self.zoom)],
            [bits(area.left()), bits(area.top()), bits(area.right()), bits(area.bottom())],
        );
        if self.view != Some(view) {
            let (middle, centre, zoom) = (area.center(), self.centre, self.zoom);
            self.points.clear();
            self.points.extend(places.iter().map(|place| middle + (vec2(place[0], place[1]) - centre) * zoom));
            self.view = Some(view);
        }
        view
    }

    #[allow(clippy::cast_precision_loss, reason = "a count of links")]
    fn radius(&self, node: usize) -> f32 {
        let size = 2.5 + (self.degrees[node] as f32).sqrt();
        (size * self.zoom.sqrt()).clamp(1.2, 18.0)
    }

    fn nearest(&self, pointer: Pos2) -> Option<usize> {
        let far = |at: &Pos2| at.distance_sq(pointer);
        let nearest = self.points.iter().enumerate().min_by(|one, other| far(one.1).total_cmp(&far(other.1)))?;
        (nearest.1.distance(pointer) < self.radius(nearest.0) + 6.0).then_some(nearest.0)
    }

    /// Returns all visible notes and links as one mesh, which is cached until something changes.
    fn mesh(
        &mut self,
        view: GraphViewport,
        area: Rect,
        hovered: Option<usize>,
        open: Option<DocId>,
        dark: bool,
    ) -> Arc<Mesh> {
        let key = (view, hovered, open, dark, self.filter.clone());
        if let Some((made, mesh)) = &self.mesh
            && *made == key
        {
            return mesh.clone();
        }
        let colours = ThemeColors::for_dark_mode(dark);
        let (points, near) = (&self.points, area.expand(20.0));
        let mut mesh = Mesh::default();
        let stride = self.edges.len() / MAX_DRAWN_EDGES + 1;
        let quiet = colours.line.lerp_to_gamma(colours.muted, 0.3);
        let room = self.edges.len().min(MAX_DRAWN_EDGES) + points.len();
        mesh.reserve_vertices(4 * room);
        mesh.reserve_triangles(2 * room);
        for (index, (from, to)) in self.edges.iter().enumerate() {
            let (from, to) = (*from as usize, *to as usize);
            let lit = hovered.is_some_and(|hovered| hovered == from || hovered == to);
            if !lit && index % stride != 0 {
                continue;
            }
            let (one, other) = (points[from], points[to]);
            // Shorter links are hidden behind their notes.
            if near.intersects(Rect::from_two_pos(one, other)) && (lit || one.distance_sq(other) > 4.0) {
                let (width, colour) = if lit { (1.5, colours.accent) } else { (1.0, quiet) };
                line(&mut mesh, one, other, width, colour);
            }
        }
        let open = open.and_then(|open| self.number.get(&open)).map(|number| *number as usize);
        let wheel = DotCorners::default();
        for (node, at) in points.iter().enumerate().filter(|(_, at)| near.contains(**at)) {
            let is_open = open == Some(node);
            let colour = match () {
                () if is_open || hovered == Some(node) => colours.accent,
                () if self.is_found(node) => Self::group_color(self.hues[node], colours),
                () => quiet,
            };
            wheel.dot(&mut mesh, *at, self.radius(node) + if is_open { 2.0 } else { 0.0 }, colour);
        }
        let mesh = Arc::new(mesh);
        self.mesh = Some((key, mesh.clone()));
        mesh
    }

    /// Draws the names of the visible notes with most links, without overlaps, and always that of the hovered one.
    fn names(&self, painter: &egui::Painter, area: Rect, hovered: Option<usize>, colours: &ThemeColors) {
        let in_sight = |node: &usize| area.contains(self.points[*node]) && self.is_found(*node);
        let mut shown: Vec<usize> = (0..self.points.len()).filter(in_sight).collect();
        if shown.len() > MAX_DRAWN_NAMES {
            shown.select_nth_unstable_by_key(MAX_DRAWN_NAMES, |node| std::cmp::Reverse(self.degrees[*node]));
            shown.truncate(MAX_DRAWN_NAMES);
        }
        shown.extend(hovered.filter(|hovered| !shown.contains(hovered)));
        shown.sort_by_key(|node| (Some(*node) != hovered, std::cmp::Reverse(self.degrees[*node])));
        let mut taken: Vec<Rect> = Vec::new();
        for node in shown {
            let lit = Some(node) == hovered;
            let at = self.points[node] + vec2(0.0, self.radius(node) + 3.0);
            let colour = if lit { colours.ink } else { colours.muted };
            let galley = painter.layout_no_wrap(
                text::untrusted_text::escape_line(&self.nodes[node].1).into_owned(),
                theme::caption().font,
                colour,
            );
            let rect = Align2::CENTER_TOP.anchor_size(at, galley.size());
            if !taken.iter().any(|other| other.intersects(rect.expand(4.0))) {
                taken.push(rect);
                painter.galley(rect.min, galley, colour);
            }
        }
    }
}

/// Returns the top-level folder of a path; empty for files at the top.
fn first_folder(path: &str) -> &str {
    path.split_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the groups with most notes, largest first. A single group needs no color.
fn largest_groups(groups: &[String]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    groups.iter().filter(|group| !group.is_empty()).for_each(|group| *counts.entry(group).or_default() += 1);
    let mut names: Vec<(&str, usize)> = counts.into_iter().collect();
    names.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    if names.len() < 2 && groups.iter().all(|group| !group.is_empty()) {
        return Vec::new();
    }
    names.into_iter().take(MAX_COLORED_GROUPS).map(|(name, _)| name.to_owned()).collect()
}

fn line(mesh: &mut Mesh, from: Pos2, to: Pos2, width: f32, colour: Color32) {
    let side = (to - from).normalized().rot90() * (width / 2.0);
    let first = u32::try_from(mesh.vertices.len()).unwrap_or(0);
    for at in [from + side, to + side, to - side, from - side] {
        mesh.colored_vertex(at, colour);
    }
    mesh.add_triangle(first, first + 1, first + 2);
    mesh.add_triangle(first, first + 2, first + 3);
}

/// Vertices of dots at three levels of detail. Smaller dots have fewer.
struct DotCorners {
    coarse: [Vec2; 4],
    middle: [Vec2; 7],
    fine: [Vec2; 14],
}

impl Default for DotCorners {
    fn default() -> Self {
        DotCorners { coarse: corners(), middle: corners(), fine: corners() }
    }
}

impl DotCorners {
    fn dot(&self, mesh: &mut Mesh, at: Pos2, radius: f32, colour: Color32) {
        let corners = match radius {
            ..2.0 => &self.coarse[..],
            ..5.0 => &self.middle,
            _ => &self.fine,
        };
        let first = u32::try_from(mesh.vertices.len()).unwrap_or(0);
        corners.iter().for_each(|corner| mesh.colored_vertex(at + radius * *corner, colour));
        let count = u32::try_from(corners.len()).unwrap_or(0);
        (1..count - 1).for_each(|corner| mesh.add_triangle(first, first + corner, first + corner + 1));
    }
}

#[allow(clippy::cast_precision_loss, reason = "a handful of corners")]
fn corners<const COUNT: usize>() -> [Vec2; COUNT] {
    std::array::from_fn(|corner| Vec2::angled(std::f32::consts::TAU * corner as f32 / COUNT as f32))
}

/// Starts the layout on a thread that stops when the positions are dropped.
fn lay_out(nodes: usize, edges: Vec<(u32, u32)>, ctx: egui::Context) -> Arc<NodePositions> {
    let places: Arc<NodePositions> = Arc::default();
    let held = Arc::downgrade(&places);
    std::thread::spawn(move || run(nodes, &edges, &held, &ctx));
    places
}

fn run(nodes: usize, edges: &[(u32, u32)], held: &Weak<NodePositions>, ctx: &egui::Context) {
    let mut layout = ui::force_layout::ForceLayout::new(nodes, edges);
    for step in 0..LAYOUT_STEPS {
        layout.step(step, LAYOUT_STEPS);
        let Some(places) = held.upgrade() else { return };
        // A small graph is finished before its movement would be visible.
        if nodes > 2_000 || step + 1 == LAYOUT_STEPS {
            if let Ok(mut places) = places.lock() {
                *places = Arc::new(layout.node_positions().to_vec());
            }
            ctx.request_repaint();
        }
    }
}
