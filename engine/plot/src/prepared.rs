//! A figure prepared for repeated drawing: data ranges, drawing order and indexes of columns are computed once.
//!
//! This takes time for much data, so it must not run on the UI thread.

use crate::density::TiledPoints;
use crate::display_list::DisplayAxes;
use crate::display_prepared::PreparedDisplay;
use crate::downsample::{ExtremaBlocks, is_increasing};
use crate::figure::{Axes, Figure, FigureColumn, FigureReadError, MarkKind};
use crate::marks::MAX_EXACT_MARKERS;

/// A line with fewer points isn't indexed.
const MIN_INDEXED_POINTS: usize = 2_000;
/// Default margin around the data, as a fraction of its range.
const DEFAULT_MARGIN: f64 = 0.05;

/// A figure prepared for drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreparedFigure {
    /// The figure to draw.
    pub figure: Figure,
    pub(crate) axes: Vec<PreparedAxes>,
    /// The display list with decoded images.
    pub(crate) display: Option<PreparedDisplay>,
}

/// Precomputed data of a pair of axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PreparedAxes {
    /// Limits along x and y at default zoom.
    pub(crate) limits: [[f64; 2]; 2],
    /// Indices of the marks, from back to front.
    pub(crate) order: Vec<usize>,
    /// The index of each mark.
    pub(crate) mark_indexes: Vec<MarkIndex>,
}

/// Index over the data of a mark.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MarkIndex {
    /// Whether its x values never decrease.
    pub(crate) is_increasing: bool,
    pub(crate) blocks: [ExtremaBlocks; 2],
    /// Tiles over very many unordered markers.
    pub(crate) tiles: TiledPoints,
}

/// The range of the marks along one axis.
#[derive(Clone, Copy)]
struct DataRange {
    range: [f64; 2],
    /// Whether there's a margin before and after the range.
    has_margin: [bool; 2],
    log: bool,
}

impl DataRange {
    fn new(log: bool) -> DataRange {
        DataRange { range: [f64::INFINITY, f64::NEG_INFINITY], has_margin: [true, true], log }
    }

    /// Extends the range by the values that can be shown.
    fn extend<'x>(&mut self, all: impl IntoIterator<Item = &'x f64>) {
        for x in all.into_iter().filter(|x| x.is_finite() && (!self.log || **x > 0.0)) {
            self.range = [self.range[0].min(*x), self.range[1].max(*x)];
        }
    }

    fn merge(&mut self, other: &DataRange) {
        self.extend(&other.range);
        self.has_margin = [self.has_margin[0] && other.has_margin[0], self.has_margin[1] && other.has_margin[1]];
    }

    fn limits(&self, asked: Option<[f64; 2]>, margin: Option<f64>) -> [f64; 2] {
        if let Some([low, high]) = asked
            && low.is_finite()
            && high.is_finite()
            && low != high
            && (!self.log || low.min(high) > 0.0)
        {
            return [low, high];
        }
        let log = self.log;
        let none = [if log { 0.1 } else { 0.0 }, 1.0];
        let [low, high] = if self.range[0] <= self.range[1] { self.range } else { none };
        let room = margin.filter(|margin| margin.is_finite()).unwrap_or(DEFAULT_MARGIN).clamp(-0.4, 10.0);
        let of = |yes: bool| if yes { room } else { 0.0 };
        let [before, behind] = self.has_margin.map(of);
        if low == high {
            let more = low.abs().max(1.0) * DEFAULT_MARGIN;
            return if log { [low / 3.0, high * 3.0] } else { [low - more, high + more] };
        }
        match log {
            true => [low / (high / low).powf(before), high * (high / low).powf(behind)],
            false => [low - (high - low) * before, high + (high - low) * behind],
        }
    }
}

fn span_ends(from: &FigureColumn, by: &FigureColumn) -> Vec<f64> {
    from.0.iter().zip(&by.0).flat_map(|(from, by)| [*from, from + by]).collect()
}

/// Returns the ranges of a pair of axes' marks along x and y.
fn data_ranges(axes: &Axes) -> [DataRange; 2] {
    let [mut x, mut y] = [0, 1].map(|side: usize| DataRange::new(axes.sides[side].scale == "log"));
    let mut bars = false;
    for mark in &axes.marks {
        match &mark.kind {
            MarkKind::Line { x: across, y: up, .. }
            | MarkKind::Points { x: across, y: up, .. }
            | MarkKind::Polygons { x: across, y: up, .. }
            | MarkKind::Segments { x: across, y: up, .. } => {
                x.extend(&across.0);
                y.extend(&up.0);
            }
            MarkKind::Bars { x: left, y: low, width, height, .. } => {
                bars = true;
                x.extend(&span_ends(left, width));
                y.extend(&span_ends(low, height));
            }
            MarkKind::Area { x: across, low, high, .. } => {
                x.extend(&across.0);
                y.extend(low.0.iter().chain(&high.0));
            }
            MarkKind::Rule { at, vertical, .. } => if *vertical { &mut x } else { &mut y }.extend([at]),
            MarkKind::Band { low, high, vertical, .. } => if *vertical { &mut x } else { &mut y }.extend([low, high]),
            MarkKind::Text { .. } => {}
            MarkKind::Pie { .. } => (x.range, y.range) = ([-1.2, 1.2], [-1.2, 1.2]),
            MarkKind::Image { place: [left, right, bottom, top], .. }
            | MarkKind::Pixels { place: [left, right, bottom, top], .. } => {
                x.extend([left, right]);
                y.extend([bottom, top]);
                (x.has_margin, y.has_margin) = ([false, false], [false, false]);
            }
            MarkKind::Contour { x: across, y: up, .. } => {
                x.extend(&across.0);
                y.extend(&up.0);
                (x.has_margin, y.has_margin) = ([false, false], [false, false]);
            }
        }
    }
    // Bars start at the axis, without a margin on that side.
    if bars {
        let grounded = |side: &DataRange| [side.range[0] == 0.0, side.range[1] == 0.0];
        let side = if grounded(&y) != [false, false] { &mut y } else { &mut x };
        let [low, high] = grounded(side);
        side.has_margin = [side.has_margin[0] && !low, side.has_margin[1] && !high];
    }
    [x, y]
}

impl PreparedFigure {
    /// Prepares a figure for drawing.
    pub fn new(mut figure: Figure) -> PreparedFigure {
        if let Some(list) = figure.display_list.take() {
            let display = Some(PreparedDisplay::new(*list));
            return PreparedFigure { figure, axes: Vec::new(), display };
        }
        let mut all: Vec<[DataRange; 2]> = figure.axes.iter().map(data_ranges).collect();
        for side in [0, 1] {
            let name = |axes: &Axes| axes.sides[side].shared;
            for (number, axes) in figure.axes.iter().enumerate().filter(|(_, axes)| name(axes).is_some()) {
                for (other, others) in figure.axes.iter().enumerate() {
                    if other != number && name(others) == name(axes) {
                        let joined = all[other][side];
                        all[number][side].merge(&joined);
                    }
                }
            }
        }
        let known = figure.axes.iter().zip(&all).map(|(axes, covered)| {
            let limits = [0, 1].map(|side: usize| {
                let asked = axes.sides[side].limits.or_else(|| {
                    let shared = axes.sides[side].shared?;
                    let others = figure.axes.iter().filter(|other| other.sides[side].shared == Some(shared));
                    others.filter_map(|other| other.sides[side].limits).next()
                });
                covered[side].limits(asked, axes.sides[side].margin)
            });
            let mut order: Vec<usize> = (0..axes.marks.len()).collect();
            let rank = |at: usize| axes.marks[at].order.unwrap_or_else(|| axes.marks[at].kind.default_order());
            order.sort_by(|a, b| rank(*a).total_cmp(&rank(*b)));
            let hints = axes.marks.iter().map(|mark| mark_index(&mark.kind, axes)).collect();
            PreparedAxes { limits, order, mark_indexes: hints }
        });
        let known = known.collect();
        PreparedFigure { figure, axes: known, display: None }
    }

    /// Returns for each pair of axes the number shared by those that move together along a side.
    pub(crate) fn shared_sides(&self, side: usize) -> Vec<Option<u32>> {
        match &self.display {
            Some(display) => {
                let shared = |axes: &DisplayAxes| if side == 0 { axes.shared_x } else { axes.shared_y };
                display.list.axes.iter().map(shared).collect()
            }
            None => self.figure.axes.iter().map(|axes| axes.sides[side].shared).collect(),
        }
    }

    /// Reads a figure from JSON and prepares it.
    ///
    /// # Errors
    /// Returns an error if the JSON isn't a valid figure, its size is out of range, or its display list is invalid.
    pub fn from_json(json: &str) -> Result<PreparedFigure, FigureReadError> {
        Figure::from_json(json).map(PreparedFigure::new)
    }

    /// Returns whether both figures are display lists with as many pairs of axes, on canvases of the same size: then
    /// one can be shown in place of the other.
    pub fn has_canvas_of(&self, other: &PreparedFigure) -> bool {
        let axes = |ready: &PreparedFigure| ready.display.as_ref().map(|display| display.list.axes.len());
        let near = |one: f64, two: f64| (one - two).abs() < 0.5;
        axes(self).is_some()
            && axes(self) == axes(other)
            && near(self.figure.width, other.figure.width)
            && near(self.figure.height, other.figure.height)
    }

    /// Returns a short description of the figure: its titles.
    pub fn describe(&self) -> String {
        let titles = self.figure.axes.iter().map(|axes| axes.title.as_str()).chain([self.figure.title.as_str()]);
        let titles: Vec<&str> = titles.filter(|title| !title.is_empty()).collect();
        if titles.is_empty() { "Figure".to_owned() } else { format!("Figure: {}", titles.join(", ")) }
    }
}

fn mark_index(kind: &MarkKind, axes: &Axes) -> MarkIndex {
    let (x, y): (&FigureColumn, Vec<&FigureColumn>) = match kind {
        MarkKind::Line { x, y, .. } | MarkKind::Points { x, y, .. } => (x, vec![y]),
        MarkKind::Area { x, low, high, .. } => (x, vec![low, high]),
        _ => return MarkIndex::default(),
    };
    if x.0.len() < MIN_INDEXED_POINTS || y.iter().any(|y| y.0.len() != x.0.len()) || !is_increasing(&x.0) {
        let marked = match kind {
            MarkKind::Line { marker, .. } => !marker.is_empty(),
            MarkKind::Points { .. } => true,
            _ => false,
        };
        if !marked || x.0.len() <= MAX_EXACT_MARKERS {
            return MarkIndex::default();
        }
        let log = [0, 1].map(|side: usize| axes.sides[side].scale == "log");
        return MarkIndex { tiles: TiledPoints::new(&x.0, &y[0].0, log), ..MarkIndex::default() };
    }
    let blocks = |at: usize| y.get(at).map(|y| ExtremaBlocks::new(&y.0)).unwrap_or_default();
    MarkIndex { is_increasing: true, blocks: [blocks(0), blocks(1)], ..MarkIndex::default() }
}
