//! The one drawing code: lays a figure out and draws it with a pen.

use crate::colour::{Look, Rgb};
use crate::figure::{Axes, Figure, Legend};
use crate::legend;
use crate::marks::Marks;
use crate::pen::{Frame, Pen, Stroke, Surface};
use crate::ready::Ready;
use crate::scale::{Marked, Scale, ticks};
use crate::view::{Place, View};
use plotters::style::text_anchor::{HPos, VPos};

pub(crate) const SMALL: f64 = 10.0;
pub(crate) const NORMAL: f64 = 11.0;
const TITLE: f64 = 12.5;
pub(crate) const GAP: f64 = 4.0;
const TICK: f64 = 3.5;
/// Words that are turned farther than this are read from below, in degrees.
const TURNED: f64 = 15.0;

/// Draws a figure on a backend that is so many steps to a point large. Gives where its axes stand.
///
/// # Errors
/// What the backend says.
pub fn draw<B: Surface>(
    ready: &Ready,
    view: &View,
    backend: &mut B,
    steps: f64,
    look: &Look,
) -> Result<Vec<Place>, String> {
    backend.ensure_prepared().map_err(|error| error.to_string())?;
    let figure = &ready.figure;
    let look = look.on(&figure.ground, figure.dark);
    let mut pen = Pen::new(backend, steps);
    if let Some(paper) = look.paper {
        pen.rectangle((0.0, 0.0), (figure.width, figure.height), paper, 1.0, true, 1.0);
    }
    let top = if figure.title.is_empty() {
        0.0
    } else {
        let at = (figure.width / 2.0, 8.0);
        pen.words(&figure.title, at, TITLE + 1.0, look.ink, (HPos::Center, VPos::Top), false);
        10.0 + (TITLE + 1.0) * 1.25 * figure.title.lines().count() as f64
    };
    let plots: Vec<Plot<'_>> =
        (0..figure.axes.len()).map(|number| Plot::new(ready, view, number, top, look, &pen)).collect();
    let frames = frames(&plots, figure);
    let mut places = Vec::with_capacity(plots.len());
    for (plot, frame) in plots.iter().zip(&frames) {
        let scales = plot.scales(*frame);
        places.push(Place { axes: plot.number, frame: *frame, scales, entries: Vec::new() });
    }
    for (plot, place) in plots.iter().zip(&mut places) {
        plot.draw(place, &mut pen);
    }
    pen.finish()?;
    Ok(places)
}

/// A pair of axes on its way to paper.
struct Plot<'a> {
    ready: &'a Ready,
    view: &'a View,
    number: usize,
    axes: &'a Axes,
    look: Look,
    cell: Frame,
    limits: [[f64; 2]; 2],
    marked: [Marked; 2],
    /// What stands around the frame: left, top, right, bottom.
    around: [f64; 4],
    /// The widest words of the ticks along x and y.
    widest: [f64; 2],
}

/// The room that a label takes beside the ticks.
fn label_room(label: &str) -> f64 {
    if label.is_empty() { 0.0 } else { GAP + NORMAL * 1.25 * label.lines().count() as f64 }
}

/// Where all frames stand: those whose cells have an edge in common have it in common, too.
fn frames(plots: &[Plot<'_>], figure: &Figure) -> Vec<Frame> {
    let edge = |plot: &Plot<'_>, side: usize| [plot.cell.left, plot.cell.top, plot.cell.right, plot.cell.bottom][side];
    let around = |plot: &Plot<'_>, side: usize| {
        let near = |other: &&Plot<'_>| !other.axes.exact && (edge(other, side) - edge(plot, side)).abs() < 0.5;
        plots.iter().filter(near).map(|other| other.around[side]).fold(plot.around[side], f64::max)
    };
    let own = |plot: &Plot<'_>| {
        let cell = plot.cell;
        let [left, top, right, bottom] =
            if plot.axes.exact { plot.around } else { [0, 1, 2, 3].map(|side| around(plot, side)) };
        let mut frame = Frame {
            left: cell.left + left,
            top: cell.top + top,
            right: cell.right - right,
            bottom: cell.bottom - bottom,
        };
        frame.right = frame.right.max(frame.left + 10.0);
        frame.bottom = frame.bottom.max(frame.top + 10.0);
        if plot.axes.equal {
            let [x, y] = plot.limits;
            let (x, y) = ((x[1] - x[0]).abs(), (y[1] - y[0]).abs());
            let per = (frame.width() / x).min(frame.height() / y);
            let (more_x, more_y) = ((frame.width() - x * per) / 2.0, (frame.height() - y * per) / 2.0);
            if more_x.is_finite() && more_y.is_finite() {
                frame = Frame {
                    left: frame.left + more_x,
                    right: frame.right - more_x,
                    top: frame.top + more_y,
                    bottom: frame.bottom - more_y,
                };
            }
        }
        frame
    };
    let all: Vec<Frame> = plots.iter().map(own).collect();
    let base = |number: usize| figure.axes[number].over.map_or(number, |(base, _)| base);
    (0..plots.len()).map(|number| all.get(base(number)).copied().unwrap_or(all[number])).collect()
}

impl<'a> Plot<'a> {
    fn new<B: Surface>(
        ready: &'a Ready,
        view: &'a View,
        number: usize,
        top: f64,
        look: Look,
        pen: &Pen<'_, B>,
    ) -> Plot<'a> {
        let (figure, axes) = (&ready.figure, &ready.figure.axes[number]);
        let [left, above, width, height] = axes.place;
        let room = figure.height - top;
        let cell = Frame {
            left: left * figure.width,
            top: top + above * room,
            right: (left + width) * figure.width,
            bottom: top + (above + height) * room,
        };
        let (asked, own) = (view.of(number), ready.known[number].limits);
        let limits = [asked[0].unwrap_or(own[0]), asked[1].unwrap_or(own[1])];
        let mut plot = Plot {
            ready,
            view,
            number,
            axes,
            look,
            cell,
            limits,
            marked: [Marked::default(), Marked::default()],
            around: [0.0; 4],
            widest: [0.0; 2],
        };
        plot.measure(pen);
        plot
    }

    /// Works out ticks and what stands around the frame.
    fn measure<B: Surface>(&mut self, pen: &Pen<'_, B>) {
        let (axes, cell) = (self.axes, self.cell);
        let title = if axes.title.is_empty() { 10.0 } else { 12.0 + TITLE * 1.25 * axes.title.lines().count() as f64 };
        let over = axes.over.map(|(_, side)| side);
        let say = !axes.off;
        let turned = axes.sides[0].turn.abs() > TURNED;
        let widest = |marked: &Marked| marked.ticks.iter().map(|tick| pen.wide(&tick.label, SMALL)).fold(0.0, f64::max);
        // Along y first: the room of its words is taken from x.
        let tall = (cell.height() - title - 40.0).max(20.0);
        let [y_low, y_high] = self.limits[1];
        self.marked[1] = ticks(&axes.sides[1], y_low, y_high, tall / 32.0);
        self.widest[1] = if axes.sides[1].quiet { 0.0 } else { widest(&self.marked[1]) };
        let beside = if say && over != Some('x') { TICK + GAP + self.widest[1] + 6.0 } else { 8.0 };
        let beside = beside + label_room(&axes.sides[1].label);
        let bar = axes.colorbar.as_ref().filter(|_| legend::scaled(axes).is_some());
        let mut wanted = (cell.width() - beside).max(20.0) / 62.0;
        let [x_low, x_high] = self.limits[0];
        for _ in 0..4 {
            self.marked[0] = ticks(&axes.sides[0], x_low, x_high, wanted);
            self.widest[0] = widest(&self.marked[0]);
            let count = self.marked[0].ticks.iter().filter(|tick| !tick.label.is_empty()).count() as f64;
            if turned || (self.widest[0] + 8.0) * count <= cell.width() - beside {
                break;
            }
            wanted *= 0.7;
        }
        let words = match (say, axes.sides[0].quiet, turned) {
            (false, _, _) => 8.0,
            (true, true, _) => TICK + 6.0,
            (true, false, true) => TICK + GAP + self.widest[0] + 6.0,
            (true, false, false) => {
                let lines = self.marked[0].ticks.iter().map(|tick| tick.label.lines().count()).max().unwrap_or(1);
                TICK + GAP + SMALL * 1.3 * lines.max(1) as f64 + 6.0
            }
        };
        let times = if self.marked[0].times.is_empty() { 0.0 } else { SMALL };
        let below = words + label_room(&axes.sides[0].label) + times * 0.6;
        let mut around = [beside, title, 14.0, below];
        match over {
            Some('y') => around = [8.0, title, beside, 8.0],
            Some(_) => around = [8.0, title + below, 14.0, 8.0],
            None => {}
        }
        if !self.marked[1].times.is_empty() {
            around[1] = around[1].max(18.0);
        }
        if let Some(bar) = bar {
            let label = if bar.label.is_empty() { 0.0 } else { 18.0 };
            if bar.below {
                around[3] += 34.0 + label;
            } else {
                let numbers = legend::bar_ticks(axes, tall);
                let numbers = numbers.iter().map(|tick| pen.wide(&tick.label, SMALL));
                around[2] += 22.0 + GAP + numbers.fold(0.0, f64::max) + label;
            }
        }
        if let Some(Legend { place, .. }) = &axes.legend
            && place == "outside"
        {
            around[2] += legend::size(axes, pen)[0] + 8.0;
        }
        // The last words along x reach over the end.
        if say && !turned && bar.is_none() && over.is_none() && !axes.sides[0].quiet {
            around[2] = around[2].max(self.widest[0] / 2.0 + 2.0);
        }
        self.around = if axes.exact { [0.0; 4] } else { around };
    }

    fn scales(&self, frame: Frame) -> [Scale; 2] {
        let log = |side: usize| self.axes.sides[side].scale == "log";
        let [[x_low, x_high], [y_low, y_high]] = self.limits;
        [
            Scale { low: x_low, high: x_high, log: log(0), from: frame.left, to: frame.right },
            Scale { low: y_low, high: y_high, log: log(1), from: frame.bottom, to: frame.top },
        ]
    }

    fn draw<B: Surface>(&self, place: &mut Place, pen: &mut Pen<'_, B>) {
        let (axes, look, frame) = (self.axes, self.look, place.frame);
        let [x, y] = place.scales;
        let over = axes.over.map(|(_, side)| side);
        let line = |colour: Rgb, width: f64| Stroke { colour, alpha: 1.0, width, dash: "-" };
        if !axes.ground.is_empty() && axes.ground != "none" && over.is_none() && !axes.off {
            let ground = look.exact(&axes.ground);
            pen.rectangle((frame.left, frame.top), (frame.right, frame.bottom), ground, 1.0, true, 1.0);
        }
        let grid = if axes.ground.is_empty() { look.line } else { look.over(&axes.ground) };
        if !axes.off {
            for tick in self.marked[0].ticks.iter().filter(|tick| axes.sides[0].grid && !tick.label.is_empty()) {
                pen.path(&[(x.at(tick.at), frame.top), (x.at(tick.at), frame.bottom)], line(grid, 0.8));
            }
            for tick in self.marked[1].ticks.iter().filter(|tick| axes.sides[1].grid && !tick.label.is_empty()) {
                pen.path(&[(frame.left, y.at(tick.at)), (frame.right, y.at(tick.at))], line(grid, 0.8));
            }
        }
        let marks = Marks { axes, known: &self.ready.known[self.number], look, scales: place.scales, frame };
        for number in &self.ready.known[self.number].order {
            if !self.view.hidden.contains(&(self.number, *number)) {
                marks.draw(*number, pen);
            }
        }
        if !axes.off {
            if over.is_none() {
                self.spines(frame, pen);
            }
            if over != Some('y') {
                self.ticks_along(x, frame, over == Some('x'), pen);
            }
            if over != Some('x') {
                self.ticks_up(y, frame, over == Some('y'), pen);
            }
        }
        self.words(frame, pen);
        if let Some(bar) = &axes.colorbar {
            let away = if axes.off || axes.exact {
                8.0
            } else {
                self.around[3] - 34.0 - if bar.label.is_empty() { 0.0 } else { 18.0 }
            };
            legend::colorbar(axes, bar, look, frame, away, pen);
        }
        if let Some(asked) = &axes.legend {
            place.entries = legend::draw(&marks, self.view, self.number, asked, pen);
        }
    }

    fn spines<B: Surface>(&self, frame: Frame, pen: &mut Pen<'_, B>) {
        let corners = [
            ('l', (frame.left, frame.top), (frame.left, frame.bottom)),
            ('b', (frame.left, frame.bottom), (frame.right, frame.bottom)),
            ('r', (frame.right, frame.top), (frame.right, frame.bottom)),
            ('t', (frame.left, frame.top), (frame.right, frame.top)),
        ];
        for (side, from, to) in corners.into_iter().filter(|(side, ..)| !self.axes.open.contains(*side)) {
            // What faces the words of the ticks stands out, as on paper.
            let colour = if matches!(side, 'l' | 'b') { self.look.muted } else { self.look.line };
            pen.path(&[from, to], Stroke { colour, alpha: 1.0, width: 0.8, dash: "-" });
        }
    }

    fn ticks_along<B: Surface>(&self, x: Scale, frame: Frame, above: bool, pen: &mut Pen<'_, B>) {
        let (look, side) = (self.look, &self.axes.sides[0]);
        let (edge, out) = if above { (frame.top, -1.0) } else { (frame.bottom, 1.0) };
        let turned = side.turn.abs() > TURNED;
        for tick in &self.marked[0].ticks {
            let at = x.at(tick.at);
            let long = if tick.label.is_empty() { TICK * 0.6 } else { TICK };
            let stroke = Stroke { colour: look.muted, alpha: 1.0, width: 0.8, dash: "-" };
            pen.path(&[(at, edge), (at, edge + out * long)], stroke);
            if side.quiet {
                continue;
            }
            let place = (at, edge + out * (TICK + GAP));
            if turned {
                let place = (at - SMALL * 0.62, place.1);
                pen.words(&tick.label, place, SMALL, look.muted, (HPos::Right, VPos::Top), true);
            } else {
                let v = if above { VPos::Bottom } else { VPos::Top };
                pen.words(&tick.label, place, SMALL, look.muted, (HPos::Center, v), false);
            }
        }
        if !side.quiet && !above {
            let at = (frame.right, edge + TICK + GAP + SMALL * 1.25);
            pen.words(&self.marked[0].times, at, SMALL, look.muted, (HPos::Right, VPos::Top), false);
        }
    }

    fn ticks_up<B: Surface>(&self, y: Scale, frame: Frame, right: bool, pen: &mut Pen<'_, B>) {
        let (look, side) = (self.look, &self.axes.sides[1]);
        let (edge, out, h) = if right { (frame.right, 1.0, HPos::Left) } else { (frame.left, -1.0, HPos::Right) };
        for tick in &self.marked[1].ticks {
            let at = y.at(tick.at);
            let long = if tick.label.is_empty() { TICK * 0.6 } else { TICK };
            let stroke = Stroke { colour: look.muted, alpha: 1.0, width: 0.8, dash: "-" };
            pen.path(&[(edge, at), (edge + out * long, at)], stroke);
            if !side.quiet {
                let place = (edge + out * (TICK + GAP), at);
                pen.words(&tick.label, place, SMALL, look.muted, (h, VPos::Center), false);
            }
        }
        if !side.quiet {
            let h = if right { HPos::Right } else { HPos::Left };
            let at = (edge, frame.top - 3.0);
            pen.words(&self.marked[1].times, at, SMALL, look.muted, (h, VPos::Bottom), false);
        }
    }

    /// The title and the labels of both sides.
    fn words<B: Surface>(&self, frame: Frame, pen: &mut Pen<'_, B>) {
        let (axes, ink) = (self.axes, self.look.ink);
        let over = axes.over.map(|(_, side)| side);
        let middle = (frame.left + frame.right) / 2.0;
        let raised = if self.marked[1].times.is_empty() || axes.title_at != "left" { 7.0 } else { 18.0 };
        let (x, h) = match axes.title_at.as_str() {
            "left" => (frame.left, HPos::Left),
            "right" => (frame.right, HPos::Right),
            _ => (middle, HPos::Center),
        };
        pen.words(&axes.title, (x, frame.top - raised), TITLE, ink, (h, VPos::Bottom), false);
        let room = label_room(&axes.sides[0].label);
        let at = match over {
            Some('x') => (middle, frame.top - TICK - GAP - SMALL * 1.3 - GAP),
            _ if axes.off || axes.exact => (middle, frame.bottom + TICK + GAP + SMALL * 1.3 + GAP),
            _ => {
                let bar = axes.colorbar.as_ref().filter(|bar| bar.below && legend::scaled(axes).is_some());
                let bar = bar.map_or(0.0, |bar| 34.0 + if bar.label.is_empty() { 0.0 } else { 18.0 });
                (middle, frame.bottom + self.around[3] - bar - room - 2.0)
            }
        };
        let v = if over == Some('x') { VPos::Bottom } else { VPos::Top };
        pen.words(&axes.sides[0].label, at, NORMAL, ink, (HPos::Center, v), false);
        let ticks = TICK + GAP + self.widest[1] + GAP;
        let label = &axes.sides[1].label;
        let x = match over {
            Some('y') => frame.right + ticks,
            _ => frame.left - ticks - NORMAL * 1.25 * label.lines().count() as f64,
        };
        let at = (x, (frame.top + frame.bottom) / 2.0);
        pen.words(label, at, NORMAL, ink, (HPos::Center, VPos::Top), true);
    }
}
