//! A figure made ready to be drawn often: what its marks cover, in which order they lie, and which of its columns grow
//! is worked out once. It takes time with much data: not for the thread that draws.

use crate::crowd::Tiles;
use crate::figure::{Axes, Column, Figure, Kind};
use crate::marks::CROWD;
use crate::thin::{Blocks, grows};

/// A line shorter than this is drawn as it is.
const LONG: usize = 2_000;
/// The room around what is drawn, as a share of it.
const ROOM: f64 = 0.05;

/// A figure, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ready {
    /// It.
    pub figure: Figure,
    pub(crate) known: Vec<Known>,
}

/// What is known of a pair of axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Known {
    /// From and to along x and along y, where nobody looks closer.
    pub(crate) limits: [[f64; 2]; 2],
    /// The marks, the lowest first.
    pub(crate) order: Vec<usize>,
    /// Of each mark: where long columns that belong to growing x are lowest and highest.
    pub(crate) hints: Vec<Hint>,
}

/// What is known of a mark.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hint {
    /// Its x only grow.
    pub(crate) grows: bool,
    pub(crate) blocks: [Blocks; 2],
    /// Very many markers without order.
    pub(crate) tiles: Tiles,
}

/// What marks cover along one side.
#[derive(Clone, Copy)]
struct Covered {
    range: [f64; 2],
    /// Whether there is room before and behind it.
    room: [bool; 2],
    log: bool,
}

impl Covered {
    fn new(log: bool) -> Covered {
        Covered { range: [f64::INFINITY, f64::NEG_INFINITY], room: [true, true], log }
    }

    /// Takes in the numbers that can be shown.
    fn take<'x>(&mut self, all: impl IntoIterator<Item = &'x f64>) {
        for x in all.into_iter().filter(|x| x.is_finite() && (!self.log || **x > 0.0)) {
            self.range = [self.range[0].min(*x), self.range[1].max(*x)];
        }
    }

    fn join(&mut self, other: &Covered) {
        self.take(&other.range);
        self.room = [self.room[0] && other.room[0], self.room[1] && other.room[1]];
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
        let room = margin.filter(|margin| margin.is_finite()).unwrap_or(ROOM).clamp(-0.4, 10.0);
        let of = |yes: bool| if yes { room } else { 0.0 };
        let [before, behind] = self.room.map(of);
        if low == high {
            let more = low.abs().max(1.0) * ROOM;
            return if log { [low / 3.0, high * 3.0] } else { [low - more, high + more] };
        }
        match log {
            true => [low / (high / low).powf(before), high * (high / low).powf(behind)],
            false => [low - (high - low) * before, high + (high - low) * behind],
        }
    }
}

fn ends(from: &Column, by: &Column) -> Vec<f64> {
    from.0.iter().zip(&by.0).flat_map(|(from, by)| [*from, from + by]).collect()
}

/// What the marks of a pair of axes cover.
fn covered(axes: &Axes) -> [Covered; 2] {
    let [mut x, mut y] = [0, 1].map(|side: usize| Covered::new(axes.sides[side].scale == "log"));
    let mut bars = false;
    for mark in &axes.marks {
        match &mark.kind {
            Kind::Line { x: across, y: up, .. }
            | Kind::Points { x: across, y: up, .. }
            | Kind::Polygons { x: across, y: up, .. }
            | Kind::Segments { x: across, y: up, .. } => {
                x.take(&across.0);
                y.take(&up.0);
            }
            Kind::Bars { x: left, y: low, width, height, .. } => {
                bars = true;
                x.take(&ends(left, width));
                y.take(&ends(low, height));
            }
            Kind::Area { x: across, low, high, .. } => {
                x.take(&across.0);
                y.take(low.0.iter().chain(&high.0));
            }
            Kind::Rule { at, vertical, .. } => if *vertical { &mut x } else { &mut y }.take([at]),
            Kind::Band { low, high, vertical, .. } => if *vertical { &mut x } else { &mut y }.take([low, high]),
            Kind::Text { .. } => {}
            Kind::Pie { .. } => (x.range, y.range) = ([-1.2, 1.2], [-1.2, 1.2]),
            Kind::Image { place: [left, right, bottom, top], .. }
            | Kind::Pixels { place: [left, right, bottom, top], .. } => {
                x.take([left, right]);
                y.take([bottom, top]);
                (x.room, y.room) = ([false, false], [false, false]);
            }
            Kind::Contour { x: across, y: up, .. } => {
                x.take(&across.0);
                y.take(&up.0);
                (x.room, y.room) = ([false, false], [false, false]);
            }
        }
    }
    // Bars stand on their ground, or hang from it.
    if bars {
        let grounded = |side: &Covered| [side.range[0] == 0.0, side.range[1] == 0.0];
        let side = if grounded(&y) != [false, false] { &mut y } else { &mut x };
        let [low, high] = grounded(side);
        side.room = [side.room[0] && !low, side.room[1] && !high];
    }
    [x, y]
}

impl Ready {
    /// Makes a figure ready.
    pub fn new(figure: Figure) -> Ready {
        let mut all: Vec<[Covered; 2]> = figure.axes.iter().map(covered).collect();
        for side in [0, 1] {
            let name = |axes: &Axes| axes.sides[side].shared;
            for (number, axes) in figure.axes.iter().enumerate().filter(|(_, axes)| name(axes).is_some()) {
                for (other, others) in figure.axes.iter().enumerate() {
                    if other != number && name(others) == name(axes) {
                        let joined = all[other][side];
                        all[number][side].join(&joined);
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
            let rank = |at: usize| axes.marks[at].order.unwrap_or_else(|| axes.marks[at].kind.usual_order());
            order.sort_by(|a, b| rank(*a).total_cmp(&rank(*b)));
            let hints = axes.marks.iter().map(|mark| hint(&mark.kind, axes)).collect();
            Known { limits, order, hints }
        });
        let known = known.collect();
        Ready { figure, known }
    }

    /// Reads a figure and makes it ready.
    ///
    /// # Errors
    /// A sentence, where the JSON is no figure.
    pub fn read(json: &str) -> Result<Ready, String> {
        Figure::read(json).map(Ready::new)
    }

    /// What it is, in a few words: its titles.
    pub fn words(&self) -> String {
        let titles = self.figure.axes.iter().map(|axes| axes.title.as_str()).chain([self.figure.title.as_str()]);
        let titles: Vec<&str> = titles.filter(|title| !title.is_empty()).collect();
        if titles.is_empty() { "Figure".to_owned() } else { format!("Figure: {}", titles.join(", ")) }
    }
}

fn hint(kind: &Kind, axes: &Axes) -> Hint {
    let (x, y): (&Column, Vec<&Column>) = match kind {
        Kind::Line { x, y, .. } | Kind::Points { x, y, .. } => (x, vec![y]),
        Kind::Area { x, low, high, .. } => (x, vec![low, high]),
        _ => return Hint::default(),
    };
    if x.0.len() < LONG || y.iter().any(|y| y.0.len() != x.0.len()) || !grows(&x.0) {
        let marked = match kind {
            Kind::Line { marker, .. } => !marker.is_empty(),
            Kind::Points { .. } => true,
            _ => false,
        };
        if !marked || x.0.len() <= CROWD {
            return Hint::default();
        }
        let log = [0, 1].map(|side: usize| axes.sides[side].scale == "log");
        return Hint { tiles: Tiles::new(&x.0, &y[0].0, log), ..Hint::default() };
    }
    let blocks = |at: usize| y.get(at).map(|y| Blocks::new(&y.0)).unwrap_or_default();
    Hint { grows: true, blocks: [blocks(0), blocks(1)], ..Hint::default() }
}
