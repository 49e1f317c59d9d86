//! Lays out a figure of marks and draws it on a backend. All output formats share this code.

use crate::FigureDrawError;
use crate::colour::{PlotTheme, Rgb};
use crate::figure::{Axes, Figure, FigureLegend};
use crate::legend;
use crate::marks::MarkPainter;
use crate::painter::{PlotBackend, PlotPainter, PlotRect, PlotStroke};
use crate::prepared::PreparedFigure;
use crate::scale::{AxisScale, TickLayout, layout_ticks};
use crate::view::{PlacedAxes, PlotView};
use plotters::style::text_anchor::{HPos, VPos};

pub(crate) const SMALL_FONT_SIZE: f64 = 10.0;
pub(crate) const LABEL_FONT_SIZE: f64 = 11.0;
const TITLE_FONT_SIZE: f64 = 12.5;
pub(crate) const LABEL_GAP: f64 = 4.0;
const TICK_LENGTH: f64 = 3.5;
/// Labels rotated by more than this, in degrees, are drawn vertically.
const MIN_TURN_DEGREES: f64 = 15.0;

/// Draws a figure of marks on a backend with `steps` steps per point. Returns the positions of the axes.
pub(crate) fn draw_marks_figure<B: PlotBackend>(
    ready: &PreparedFigure,
    view: &PlotView,
    backend: &mut B,
    steps: f64,
    look: &PlotTheme,
) -> Result<Vec<PlacedAxes>, FigureDrawError> {
    backend.ensure_prepared().map_err(|error| FigureDrawError::Backend(error.to_string()))?;
    let figure = &ready.figure;
    let look = look.on_ground(&figure.ground, figure.dark);
    let mut pen = PlotPainter::new(backend, steps);
    if let Some(paper) = look.paper {
        pen.draw_rectangle((0.0, 0.0), (figure.width, figure.height), paper, 1.0, true, 1.0);
    }
    let top = if figure.title.is_empty() {
        0.0
    } else {
        let at = (figure.width / 2.0, 8.0);
        pen.draw_text(&figure.title, at, TITLE_FONT_SIZE + 1.0, look.ink, (HPos::Center, VPos::Top), false);
        10.0 + (TITLE_FONT_SIZE + 1.0) * 1.25 * figure.title.lines().count() as f64
    };
    let plots: Vec<AxesLayout<'_>> =
        (0..figure.axes.len()).map(|number| AxesLayout::new(ready, view, number, top, look, &pen)).collect();
    let frames = align_frames(&plots, figure);
    let mut places = Vec::with_capacity(plots.len());
    for (plot, frame) in plots.iter().zip(&frames) {
        let scales = plot.scales(*frame);
        places.push(PlacedAxes { axes: plot.number, frame: *frame, scales, entries: Vec::new() });
    }
    for (plot, place) in plots.iter().zip(&mut places) {
        plot.draw_axes(place, &mut pen);
    }
    pen.finish()?;
    Ok(places)
}

/// The layout of a pair of axes.
struct AxesLayout<'a> {
    ready: &'a PreparedFigure,
    view: &'a PlotView,
    number: usize,
    axes: &'a Axes,
    look: PlotTheme,
    cell: PlotRect,
    limits: [[f64; 2]; 2],
    ticks: [TickLayout; 2],
    /// Space needed around the frame: left, top, right, bottom.
    margins: [f64; 4],
    /// Width of the widest tick label along x and y.
    widest_labels: [f64; 2],
}

/// Returns the space that an axis label needs beside the ticks.
fn label_height(label: &str) -> f64 {
    if label.is_empty() { 0.0 } else { LABEL_GAP + LABEL_FONT_SIZE * 1.25 * label.lines().count() as f64 }
}

/// Returns all frames. Frames whose cells share an edge are aligned along it.
fn align_frames(plots: &[AxesLayout<'_>], figure: &Figure) -> Vec<PlotRect> {
    let edge =
        |plot: &AxesLayout<'_>, side: usize| [plot.cell.left, plot.cell.top, plot.cell.right, plot.cell.bottom][side];
    let around = |plot: &AxesLayout<'_>, side: usize| {
        let near = |other: &&AxesLayout<'_>| !other.axes.exact && (edge(other, side) - edge(plot, side)).abs() < 0.5;
        plots.iter().filter(near).map(|other| other.margins[side]).fold(plot.margins[side], f64::max)
    };
    let own = |plot: &AxesLayout<'_>| {
        let cell = plot.cell;
        let [left, top, right, bottom] =
            if plot.axes.exact { plot.margins } else { [0, 1, 2, 3].map(|side| around(plot, side)) };
        let mut frame = PlotRect {
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
                frame = PlotRect {
                    left: frame.left + more_x,
                    right: frame.right - more_x,
                    top: frame.top + more_y,
                    bottom: frame.bottom - more_y,
                };
            }
        }
        frame
    };
    let all: Vec<PlotRect> = plots.iter().map(own).collect();
    let base = |number: usize| figure.axes[number].over.map_or(number, |(base, _)| base);
    (0..plots.len()).map(|number| all.get(base(number)).copied().unwrap_or(all[number])).collect()
}

impl<'a> AxesLayout<'a> {
    fn new<B: PlotBackend>(
        ready: &'a PreparedFigure,
        view: &'a PlotView,
        number: usize,
        top: f64,
        look: PlotTheme,
        pen: &PlotPainter<'_, B>,
    ) -> AxesLayout<'a> {
        let (figure, axes) = (&ready.figure, &ready.figure.axes[number]);
        let [left, above, width, height] = axes.place;
        let room = figure.height - top;
        let cell = PlotRect {
            left: left * figure.width,
            top: top + above * room,
            right: (left + width) * figure.width,
            bottom: top + (above + height) * room,
        };
        let (asked, own) = (view.limits_of(number), ready.axes[number].limits);
        let limits = [asked[0].unwrap_or(own[0]), asked[1].unwrap_or(own[1])];
        let mut plot = AxesLayout {
            ready,
            view,
            number,
            axes,
            look,
            cell,
            limits,
            ticks: [TickLayout::default(), TickLayout::default()],
            margins: [0.0; 4],
            widest_labels: [0.0; 2],
        };
        plot.measure(pen);
        plot
    }

    /// Lays out the ticks and measures the space around the frame.
    fn measure<B: PlotBackend>(&mut self, pen: &PlotPainter<'_, B>) {
        let (axes, cell) = (self.axes, self.cell);
        let title = if axes.title.is_empty() {
            10.0
        } else {
            12.0 + TITLE_FONT_SIZE * 1.25 * axes.title.lines().count() as f64
        };
        let over = axes.over.map(|(_, side)| side);
        let say = !axes.off;
        let turned = axes.sides[0].turn.abs() > MIN_TURN_DEGREES;
        let widest = |marked: &TickLayout| {
            marked.ticks.iter().map(|tick| pen.text_width(&tick.label, SMALL_FONT_SIZE)).fold(0.0, f64::max)
        };
        // The y axis is first, because its labels reduce the width available to x.
        let tall = (cell.height() - title - 40.0).max(20.0);
        let [y_low, y_high] = self.limits[1];
        self.ticks[1] = layout_ticks(&axes.sides[1], y_low, y_high, tall / 32.0);
        self.widest_labels[1] = if axes.sides[1].quiet { 0.0 } else { widest(&self.ticks[1]) };
        let beside = if say && over != Some('x') { TICK_LENGTH + LABEL_GAP + self.widest_labels[1] + 6.0 } else { 8.0 };
        let beside = beside + label_height(&axes.sides[1].label);
        let bar = axes.colorbar.as_ref().filter(|_| legend::colorbar_source(axes).is_some());
        let mut wanted = (cell.width() - beside).max(20.0) / 62.0;
        let [x_low, x_high] = self.limits[0];
        for _ in 0..4 {
            self.ticks[0] = layout_ticks(&axes.sides[0], x_low, x_high, wanted);
            self.widest_labels[0] = widest(&self.ticks[0]);
            let count = self.ticks[0].ticks.iter().filter(|tick| !tick.label.is_empty()).count() as f64;
            if turned || (self.widest_labels[0] + 8.0) * count <= cell.width() - beside {
                break;
            }
            wanted *= 0.7;
        }
        let words = match (say, axes.sides[0].quiet, turned) {
            (false, _, _) => 8.0,
            (true, true, _) => TICK_LENGTH + 6.0,
            (true, false, true) => TICK_LENGTH + LABEL_GAP + self.widest_labels[0] + 6.0,
            (true, false, false) => {
                let lines = self.ticks[0].ticks.iter().map(|tick| tick.label.lines().count()).max().unwrap_or(1);
                TICK_LENGTH + LABEL_GAP + SMALL_FONT_SIZE * 1.3 * lines.max(1) as f64 + 6.0
            }
        };
        let times = if self.ticks[0].multiplier.is_empty() { 0.0 } else { SMALL_FONT_SIZE };
        let below = words + label_height(&axes.sides[0].label) + times * 0.6;
        let mut around = [beside, title, 14.0, below];
        match over {
            Some('y') => around = [8.0, title, beside, 8.0],
            Some(_) => around = [8.0, title + below, 14.0, 8.0],
            None => {}
        }
        if !self.ticks[1].multiplier.is_empty() {
            around[1] = around[1].max(18.0);
        }
        if let Some(bar) = bar {
            let label = if bar.label.is_empty() { 0.0 } else { 18.0 };
            if bar.below {
                around[3] += 34.0 + label;
            } else {
                let numbers = legend::colorbar_ticks(axes, tall);
                let numbers = numbers.iter().map(|tick| pen.text_width(&tick.label, SMALL_FONT_SIZE));
                around[2] += 22.0 + LABEL_GAP + numbers.fold(0.0, f64::max) + label;
            }
        }
        if let Some(FigureLegend { place, .. }) = &axes.legend
            && place == "outside"
        {
            around[2] += legend::legend_size(axes, pen)[0] + 8.0;
        }
        // The last label along x extends beyond the end of the axis.
        if say && !turned && bar.is_none() && over.is_none() && !axes.sides[0].quiet {
            around[2] = around[2].max(self.widest_labels[0] / 2.0 + 2.0);
        }
        self.margins = if axes.exact { [0.0; 4] } else { around };
    }

    fn scales(&self, frame: PlotRect) -> [AxisScale; 2] {
        let log = |side: usize| self.axes.sides[side].scale == "log";
        let [[x_low, x_high], [y_low, y_high]] = self.limits;
        [
            AxisScale { low: x_low, high: x_high, log: log(0), from: frame.left, to: frame.right },
            AxisScale { low: y_low, high: y_high, log: log(1), from: frame.bottom, to: frame.top },
        ]
    }

    fn draw_axes<B: PlotBackend>(&self, place: &mut PlacedAxes, pen: &mut PlotPainter<'_, B>) {
        let (axes, look, frame) = (self.axes, self.look, place.frame);
        let [x, y] = place.scales;
        let over = axes.over.map(|(_, side)| side);
        let line = |colour: Rgb, width: f64| PlotStroke { colour, alpha: 1.0, width, dash: "-" };
        if !axes.ground.is_empty() && axes.ground != "none" && over.is_none() && !axes.off {
            let ground = look.exact_colour(&axes.ground);
            pen.draw_rectangle((frame.left, frame.top), (frame.right, frame.bottom), ground, 1.0, true, 1.0);
        }
        let grid = if axes.ground.is_empty() { look.grid_line } else { look.grid_line_on(&axes.ground) };
        if !axes.off {
            for tick in self.ticks[0].ticks.iter().filter(|tick| axes.sides[0].grid && !tick.label.is_empty()) {
                pen.draw_path(
                    &[(x.position(tick.at), frame.top), (x.position(tick.at), frame.bottom)],
                    line(grid, 0.8),
                );
            }
            for tick in self.ticks[1].ticks.iter().filter(|tick| axes.sides[1].grid && !tick.label.is_empty()) {
                pen.draw_path(
                    &[(frame.left, y.position(tick.at)), (frame.right, y.position(tick.at))],
                    line(grid, 0.8),
                );
            }
        }
        let marks = MarkPainter { axes, prepared: &self.ready.axes[self.number], look, scales: place.scales, frame };
        for number in &self.ready.axes[self.number].order {
            if !self.view.hidden.contains(&(self.number, *number)) {
                marks.draw_mark(*number, pen);
            }
        }
        if !axes.off {
            if over.is_none() {
                self.draw_spines(frame, pen);
            }
            if over != Some('y') {
                self.draw_x_ticks(x, frame, over == Some('x'), pen);
            }
            if over != Some('x') {
                self.draw_y_ticks(y, frame, over == Some('y'), pen);
            }
        }
        self.draw_titles(frame, pen);
        if let Some(bar) = &axes.colorbar {
            let away = if axes.off || axes.exact {
                8.0
            } else {
                self.margins[3] - 34.0 - if bar.label.is_empty() { 0.0 } else { 18.0 }
            };
            legend::draw_colorbar(axes, bar, look, frame, away, pen);
        }
        if let Some(asked) = &axes.legend {
            place.entries = legend::draw_legend(&marks, self.view, self.number, asked, pen);
        }
    }

    fn draw_spines<B: PlotBackend>(&self, frame: PlotRect, pen: &mut PlotPainter<'_, B>) {
        let corners = [
            ('l', (frame.left, frame.top), (frame.left, frame.bottom)),
            ('b', (frame.left, frame.bottom), (frame.right, frame.bottom)),
            ('r', (frame.right, frame.top), (frame.right, frame.bottom)),
            ('t', (frame.left, frame.top), (frame.right, frame.top)),
        ];
        for (side, from, to) in corners.into_iter().filter(|(side, ..)| !self.axes.open.contains(*side)) {
            // The sides with tick labels are emphasized, as in print.
            let colour = if matches!(side, 'l' | 'b') { self.look.muted } else { self.look.grid_line };
            pen.draw_path(&[from, to], PlotStroke { colour, alpha: 1.0, width: 0.8, dash: "-" });
        }
    }

    fn draw_x_ticks<B: PlotBackend>(&self, x: AxisScale, frame: PlotRect, above: bool, pen: &mut PlotPainter<'_, B>) {
        let (look, side) = (self.look, &self.axes.sides[0]);
        let (edge, out) = if above { (frame.top, -1.0) } else { (frame.bottom, 1.0) };
        let turned = side.turn.abs() > MIN_TURN_DEGREES;
        for tick in &self.ticks[0].ticks {
            let at = x.position(tick.at);
            let long = if tick.label.is_empty() { TICK_LENGTH * 0.6 } else { TICK_LENGTH };
            let stroke = PlotStroke { colour: look.muted, alpha: 1.0, width: 0.8, dash: "-" };
            pen.draw_path(&[(at, edge), (at, edge + out * long)], stroke);
            if side.quiet {
                continue;
            }
            let place = (at, edge + out * (TICK_LENGTH + LABEL_GAP));
            if turned {
                let place = (at - SMALL_FONT_SIZE * 0.62, place.1);
                pen.draw_text(&tick.label, place, SMALL_FONT_SIZE, look.muted, (HPos::Right, VPos::Top), true);
            } else {
                let v = if above { VPos::Bottom } else { VPos::Top };
                pen.draw_text(&tick.label, place, SMALL_FONT_SIZE, look.muted, (HPos::Center, v), false);
            }
        }
        if !side.quiet && !above {
            let at = (frame.right, edge + TICK_LENGTH + LABEL_GAP + SMALL_FONT_SIZE * 1.25);
            pen.draw_text(&self.ticks[0].multiplier, at, SMALL_FONT_SIZE, look.muted, (HPos::Right, VPos::Top), false);
        }
    }

    fn draw_y_ticks<B: PlotBackend>(&self, y: AxisScale, frame: PlotRect, right: bool, pen: &mut PlotPainter<'_, B>) {
        let (look, side) = (self.look, &self.axes.sides[1]);
        let (edge, out, h) = if right { (frame.right, 1.0, HPos::Left) } else { (frame.left, -1.0, HPos::Right) };
        for tick in &self.ticks[1].ticks {
            let at = y.position(tick.at);
            let long = if tick.label.is_empty() { TICK_LENGTH * 0.6 } else { TICK_LENGTH };
            let stroke = PlotStroke { colour: look.muted, alpha: 1.0, width: 0.8, dash: "-" };
            pen.draw_path(&[(edge, at), (edge + out * long, at)], stroke);
            if !side.quiet {
                let place = (edge + out * (TICK_LENGTH + LABEL_GAP), at);
                pen.draw_text(&tick.label, place, SMALL_FONT_SIZE, look.muted, (h, VPos::Center), false);
            }
        }
        if !side.quiet {
            let h = if right { HPos::Right } else { HPos::Left };
            let at = (edge, frame.top - 3.0);
            pen.draw_text(&self.ticks[1].multiplier, at, SMALL_FONT_SIZE, look.muted, (h, VPos::Bottom), false);
        }
    }

    /// Draws the title and both axis labels.
    fn draw_titles<B: PlotBackend>(&self, frame: PlotRect, pen: &mut PlotPainter<'_, B>) {
        let (axes, ink) = (self.axes, self.look.ink);
        let over = axes.over.map(|(_, side)| side);
        let middle = (frame.left + frame.right) / 2.0;
        let raised = if self.ticks[1].multiplier.is_empty() || axes.title_at != "left" { 7.0 } else { 18.0 };
        let (x, h) = match axes.title_at.as_str() {
            "left" => (frame.left, HPos::Left),
            "right" => (frame.right, HPos::Right),
            _ => (middle, HPos::Center),
        };
        pen.draw_text(&axes.title, (x, frame.top - raised), TITLE_FONT_SIZE, ink, (h, VPos::Bottom), false);
        let room = label_height(&axes.sides[0].label);
        let at = match over {
            Some('x') => (middle, frame.top - TICK_LENGTH - LABEL_GAP - SMALL_FONT_SIZE * 1.3 - LABEL_GAP),
            _ if axes.off || axes.exact => {
                (middle, frame.bottom + TICK_LENGTH + LABEL_GAP + SMALL_FONT_SIZE * 1.3 + LABEL_GAP)
            }
            _ => {
                let bar = axes.colorbar.as_ref().filter(|bar| bar.below && legend::colorbar_source(axes).is_some());
                let bar = bar.map_or(0.0, |bar| 34.0 + if bar.label.is_empty() { 0.0 } else { 18.0 });
                (middle, frame.bottom + self.margins[3] - bar - room - 2.0)
            }
        };
        let v = if over == Some('x') { VPos::Bottom } else { VPos::Top };
        pen.draw_text(&axes.sides[0].label, at, LABEL_FONT_SIZE, ink, (HPos::Center, v), false);
        let ticks = TICK_LENGTH + LABEL_GAP + self.widest_labels[1] + LABEL_GAP;
        let label = &axes.sides[1].label;
        let x = match over {
            Some('y') => frame.right + ticks,
            _ => frame.left - ticks - LABEL_FONT_SIZE * 1.25 * label.lines().count() as f64,
        };
        let at = (x, (frame.top + frame.bottom) / 2.0);
        pen.draw_text(label, at, LABEL_FONT_SIZE, ink, (HPos::Center, VPos::Top), true);
    }
}
