//! Draws very many points as one image.
//!
//! Each cell of a grid keeps the point that is drawn last. On screen, its marker is stamped into pixels, because
//! drawing the points as separate shapes would take longer than a frame.

use crate::colour::Rgb;
use crate::marks::{marker_corners, marker_strokes};
use crate::painter::{PlotPoint, PlotRect};
use std::collections::BTreeMap;

/// Number of subpixel positions of a marker along each side of a pixel.
const SUBPIXEL_PHASES: i32 = 4;
/// Samples per pixel along each side.
const SAMPLES_PER_PIXEL_SIDE: i32 = 4;
/// Markers with a larger radius than this, in pixels, are drawn individually.
const MAX_STAMPED_RADIUS_PIXELS: f64 = 64.0;
/// Maximum number of pixels into which markers are stamped.
pub(crate) const MAX_RASTER_PIXELS: f64 = 16e6;
/// Stroke width of line markers, in points.
const STROKE_MARKER_WIDTH: f64 = 1.4;

/// The point drawn for a grid cell, and the number of points in that cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GridPoint {
    pub(crate) at: PlotPoint,
    /// Index of the point in its mark.
    pub(crate) index: u32,
    pub(crate) count: u32,
}

/// Number of tiles along each side.
const TILES_PER_SIDE: usize = 64;

/// Unordered points sorted into tiles once, so that points outside the visible area can be skipped.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TiledPoints {
    low: [f64; 2],
    wide: [f64; 2],
    /// Index of each tile's first point, row by row.
    tile_starts: Vec<usize>,
    /// The points, scaled to 0 to 1 on both sides in `f32`, which is exact enough at usual zoom levels.
    points: Vec<[f32; 2]>,
    numbers: Vec<u32>,
}

impl TiledPoints {
    /// Sorts points into tiles; `log` tells which sides have a logarithmic scale.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tiles; no column has so many numbers")]
    pub(crate) fn new(x: &[f64], y: &[f64], log: [bool; 2]) -> TiledPoints {
        let bent = |x: f64, log: bool| if log { x.ln() } else { x };
        let all = || {
            let points =
                x.iter().zip(y).zip(0_u32..).map(|((x, y), which)| ([bent(*x, log[0]), bent(*y, log[1])], which));
            points.filter(|([x, y], _)| x.is_finite() && y.is_finite())
        };
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        for (at, _) in all() {
            for side in [0, 1] {
                (low[side], high[side]) = (low[side].min(at[side]), high[side].max(at[side]));
            }
        }
        let wide = [0, 1].map(|side| ((high[side] - low[side]) / TILES_PER_SIDE as f64).max(f64::MIN_POSITIVE));
        let (points, numbers) = (Vec::new(), Vec::new());
        let mut tiles =
            TiledPoints { low, wide, tile_starts: vec![0; TILES_PER_SIDE * TILES_PER_SIDE + 1], points, numbers };
        let places: Vec<u16> = all()
            .map(|(at, _)| (tiles.tile_index(1, at[1]) * TILES_PER_SIDE + tiles.tile_index(0, at[0])) as u16)
            .collect();
        places.iter().for_each(|place| tiles.tile_starts[usize::from(*place) + 1] += 1);
        for tile in 0..TILES_PER_SIDE * TILES_PER_SIDE {
            tiles.tile_starts[tile + 1] += tiles.tile_starts[tile];
        }
        let mut next = tiles.tile_starts.clone();
        (tiles.points, tiles.numbers) = (vec![[0.0; 2]; places.len()], vec![0; places.len()]);
        for (place, (at, which)) in places.iter().zip(all()) {
            let next = &mut next[usize::from(*place)];
            let share = |side: usize| (at[side] - low[side]) / (wide[side] * TILES_PER_SIDE as f64);
            tiles.points[*next] = [share(0) as f32, share(1) as f32];
            tiles.numbers[*next] = which;
            *next += 1;
        }
        tiles
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tiles")]
    fn tile_index(&self, side: usize, at: f64) -> usize {
        (((at - self.low[side]) / self.wide[side]).max(0.0) as usize).min(TILES_PER_SIDE - 1)
    }

    /// Returns the offset and factor that map stored points of a side to the frame.
    ///
    /// `add` and `times` are the offset and factor for the original data.
    pub(crate) fn frame_transform(&self, side: usize, (add, times): (f64, f64)) -> (f64, f64) {
        (add + self.low[side] * times, self.wide[side] * TILES_PER_SIDE as f64 * times)
    }

    /// Returns the points of all tiles that overlap a range along x and y, with their indices.
    pub(crate) fn points_within(&self, [x, y]: [[f64; 2]; 2]) -> impl Iterator<Item = (&[f32; 2], &u32)> {
        let between = |side: usize, [from, to]: [f64; 2]| {
            let (first, last) = (self.tile_index(side, from.min(to)), self.tile_index(side, from.max(to)));
            first..last + 1
        };
        let (columns, rows) = (between(0, x), between(1, y));
        let row = move |row: usize| {
            self.tile_starts[row * TILES_PER_SIDE + columns.start]..self.tile_starts[row * TILES_PER_SIDE + columns.end]
        };
        rows.flat_map(move |number| self.points[row(number)].iter().zip(&self.numbers[row(number)]))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

/// A grid of cells over a frame that collects points.
pub(crate) struct PointGrid {
    frame: PlotRect,
    cell: f64,
    /// Cells per point of length.
    cells_per_point: f64,
    wide: usize,
    high: usize,
    /// Whether each cell contains a point. Used if all points look the same.
    is_occupied: Vec<bool>,
    /// Otherwise, for each cell the number of points and the index of the one that is drawn last.
    last: Vec<(u32, u32)>,
}

impl PointGrid {
    /// Creates a grid with cells of a size in points. `same` means that it doesn't matter which point is drawn last.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cells of a frame")]
    pub(crate) fn new(frame: PlotRect, cell: f64, same: bool) -> PointGrid {
        let (wide, high) = ((frame.width() / cell).ceil() as usize + 2, (frame.height() / cell).ceil() as usize + 2);
        let (mut taken, mut last) = (Vec::new(), Vec::new());
        match same {
            true => taken = vec![false; wide * high],
            false => last = vec![(0, 0); wide * high],
        }
        PointGrid { frame, cell, cells_per_point: 1.0 / cell, wide, high, is_occupied: taken, last }
    }

    /// Adds a point to its cell.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cells of a frame")]
    pub(crate) fn add_point(&mut self, at: PlotPoint, which: u32) {
        // Positions before the first cell are truncated to 0.
        let column = ((at.0 - self.frame.left) * self.cells_per_point + 1.0) as usize;
        let row = ((at.1 - self.frame.top) * self.cells_per_point + 1.0) as usize;
        let place = row.min(self.high - 1) * self.wide + column.min(self.wide - 1);
        if let Some(taken) = self.is_occupied.get_mut(place) {
            *taken = true;
        } else if let Some((count, last)) = self.last.get_mut(place) {
            (*count, *last) = (*count + 1, which.max(*last));
        }
    }

    /// Calls `each` with the point that is drawn last in each cell, in drawing order.
    ///
    /// If all points look the same, this is the center of each cell, without most of the cells that neighbors cover. A
    /// cell is then at most 0.7 of a marker's radius wide.
    pub(crate) fn for_each_drawn(&self, at: impl Fn(u32) -> PlotPoint, mut each: impl FnMut(GridPoint)) {
        let PointGrid { frame, cell, wide, high, .. } = *self;
        if self.is_occupied.is_empty() {
            let mut kept: Vec<(u32, u32)> = self.last.iter().copied().filter(|(count, _)| *count > 0).collect();
            kept.sort_unstable_by_key(|(_, which)| *which);
            return kept.into_iter().for_each(|(count, which)| each(GridPoint { at: at(which), index: which, count }));
        }
        // Marks the cells that are occupied together with both horizontal neighbors.
        let threes = |row: usize, all: &mut Vec<bool>| {
            let taken = self.is_occupied.get(row * wide..(row + 1) * wide).unwrap_or_default();
            all[1..].fill(false);
            for (all, three) in all[1..].iter_mut().zip(taken.windows(3)) {
                *all = three[0] & three[1] & three[2];
            }
        };
        let middle = |at: usize, from: f64| from + (at as f64 - 0.5) * cell;
        let [mut above, mut here, mut below] = [(); 3].map(|()| vec![false; wide]);
        threes(0, &mut here);
        for row in 0..high {
            threes(row + 1, &mut below);
            for column in (0..wide).filter(|column| self.is_occupied[row * wide + column]) {
                let covered = above[column] && here[column] && below[column];
                // The remaining cells are dense enough to leave no hole.
                if !covered || (row % 2 == 0 && column % 2 == 0) {
                    each(GridPoint { at: (middle(column, frame.left), middle(row, frame.top)), index: 0, count: 1 });
                }
            }
            (above, here, below) = (here, below, above);
        }
    }
}

/// Size and colors of a stamped marker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkerInk {
    pub(crate) radius: f64,
    pub(crate) colour: Rgb,
    pub(crate) alpha: f64,
    /// Outline color, if the marker has an outline.
    pub(crate) edge: Option<Rgb>,
}

/// Coverage of each pixel by a marker and by its outline.
struct MarkerMask {
    left: i32,
    top: i32,
    columns: usize,
    fill: Vec<f32>,
    rim: Vec<f32>,
}

/// A pixel buffer over a frame, into which markers are stamped.
pub(crate) struct MarkerRaster<'m> {
    frame: PlotRect,
    density: f64,
    columns: usize,
    rows: usize,
    marker: &'m str,
    /// Opacity of each pixel, 0 to 1.
    alpha: Vec<f32>,
    /// Premultiplied color of each pixel; empty if all markers have the same color.
    colours: Vec<[f32; 3]>,
    /// Masks by radius and whether there's an outline, one for each subpixel position.
    masks: BTreeMap<(i32, bool), Vec<Option<MarkerMask>>>,
    /// Color of the last marker.
    ink: Rgb,
}

impl<'m> MarkerRaster<'m> {
    /// Creates a buffer for one kind of marker, with `density` pixels per point.
    ///
    /// `same` means that all markers have one color. Returns `None` if the buffer would have too many pixels.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of a screen")]
    pub(crate) fn new(frame: PlotRect, density: f64, marker: &'m str, same: bool) -> Option<MarkerRaster<'m>> {
        let side = |long: f64| (long * density).ceil().max(1.0);
        let (columns, rows) = (side(frame.width()), side(frame.height()));
        if !(1.0..=MAX_RASTER_PIXELS).contains(&(columns * rows)) {
            return None;
        }
        let (columns, rows) = (columns as usize, rows as usize);
        let colours = if same { Vec::new() } else { vec![[0.0; 3]; columns * rows] };
        Some(MarkerRaster {
            frame,
            density,
            columns,
            rows,
            marker,
            alpha: vec![0.0; columns * rows],
            colours,
            masks: BTreeMap::new(),
            ink: (0, 0, 0),
        })
    }

    /// Returns whether a marker with this radius in points can be stamped.
    pub(crate) fn can_stamp(&self, radius: f64) -> bool {
        radius * self.density <= MAX_STAMPED_RADIUS_PIXELS
    }

    /// Stamps a marker; one without a positive radius is skipped.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels within the picture")]
    pub(crate) fn stamp(&mut self, at: PlotPoint, ink: &MarkerInk) {
        if ink.radius <= 0.0 {
            return;
        }
        let (x, y) = ((at.0 - self.frame.left) * self.density, (at.1 - self.frame.top) * self.density);
        let phases = f64::from(SUBPIXEL_PHASES);
        // Rounds to the nearest subpixel position. Positions far outside are clamped, which gives the same result.
        let nearest = |x: f64| ((x * phases).clamp(-1e6, 1e6) + 1e6 + 0.5) as i32 - 1_000_000;
        let (x, y) = (nearest(x), nearest(y));
        let radius = nearest(ink.radius * self.density).max(1);
        let (within, edged) = ((x.rem_euclid(SUBPIXEL_PHASES), y.rem_euclid(SUBPIXEL_PHASES)), ink.edge.is_some());
        let masks = self.masks.entry((radius, edged));
        let masks = masks.or_insert_with(|| (0..SUBPIXEL_PHASES * SUBPIXEL_PHASES).map(|_| None).collect());
        let (marker, density) = (self.marker, self.density);
        let mask = masks[(within.0 * SUBPIXEL_PHASES + within.1) as usize]
            .get_or_insert_with(|| rasterize_marker(marker, (radius, within.0, within.1, edged), density));
        let (left, top) = (x.div_euclid(SUBPIXEL_PHASES) + mask.left, y.div_euclid(SUBPIXEL_PHASES) + mask.top);
        self.ink = ink.colour;
        let part = |colour: Rgb| [colour.0, colour.1, colour.2].map(|part| f32::from(part) / 255.0);
        let (fill, alpha) = (part(ink.colour), ink.alpha as f32);
        // Clips the mask at the edges of the buffer.
        let cut = |from: i32, long: usize, room: usize| {
            let first = (-from).clamp(0, long as i32) as usize;
            let last = (room as i32 - from).clamp(0, long as i32) as usize;
            (first..last.max(first), (from + first as i32).max(0) as usize)
        };
        let (across, column) = cut(left, mask.columns, self.columns);
        let (down, row) = cut(top, mask.fill.len() / mask.columns, self.rows);
        if across.is_empty() {
            return;
        }
        for (line, row) in down.zip(row..) {
            let shares = line * mask.columns + across.start..line * mask.columns + across.end;
            let place = row * self.columns + column;
            let under = &mut self.alpha[place..place + across.len()];
            if self.colours.is_empty() {
                let seen = under.iter_mut().zip(&mask.fill[shares]);
                seen.for_each(|(under, share)| *under = share * alpha + *under * (1.0 - share * alpha));
                continue;
            }
            let colours = &mut self.colours[place..place + across.len()];
            for (at, (under, colour)) in shares.zip(under.iter_mut().zip(colours)) {
                blend_over(under, colour, fill, mask.fill[at] * alpha);
                if let Some(edge) = ink.edge {
                    blend_over(under, colour, part(edge), mask.rim[at]);
                }
            }
        }
    }

    /// Returns the bottom right corner, the numbers of columns and rows, and the pixels as RGBA.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
    pub(crate) fn to_pixels(&self) -> (PlotPoint, usize, usize, Vec<u8>) {
        let end =
            (self.frame.left + self.columns as f64 / self.density, self.frame.top + self.rows as f64 / self.density);
        let byte = |share: f32| (share * 255.0 + 0.5) as u8;
        let mut bytes = Vec::with_capacity(self.alpha.len() * 4);
        if self.colours.is_empty() {
            let (red, green, blue) = self.ink;
            self.alpha.iter().for_each(|alpha| bytes.extend([red, green, blue, byte(*alpha)]));
        }
        for (alpha, colours) in self.alpha.iter().zip(&self.colours) {
            let [red, green, blue] = colours.map(|part| byte(part / alpha.max(f32::MIN_POSITIVE)));
            bytes.extend([red, green, blue, byte(*alpha)]);
        }
        (end, self.columns, self.rows, bytes)
    }
}

fn blend_over(under: &mut f32, colours: &mut [f32; 3], new: [f32; 3], share: f32) {
    if share > 0.0 {
        *under = share + *under * (1.0 - share);
        for (colour, new) in colours.iter_mut().zip(new) {
            *colour = new * share + *colour * (1.0 - share);
        }
    }
}

/// Returns the distance of a point from a line segment.
fn distance_to_segment(at: PlotPoint, from: PlotPoint, to: PlotPoint) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx * dx + dy * dy;
    let share = if length == 0.0 { 0.0 } else { ((at.0 - from.0) * dx + (at.1 - from.1) * dy) / length };
    let share = share.clamp(0.0, 1.0);
    (at.0 - from.0 - dx * share).hypot(at.1 - from.1 - dy * share)
}

fn polygon_contains(corners: &[PlotPoint], (x, y): PlotPoint) -> bool {
    let mut inside = false;
    for (number, (bx, by)) in corners.iter().enumerate() {
        let (ax, ay) = corners[(number + corners.len() - 1) % corners.len()];
        if (ay > y) != (*by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax {
            inside = !inside;
        }
    }
    inside
}

/// Rasterizes a marker at a subpixel position.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few pixels")]
fn rasterize_marker(marker: &str, (radius, x, y, edged): (i32, i32, i32, bool), density: f64) -> MarkerMask {
    let phases = f64::from(SUBPIXEL_PHASES);
    let (radius, x, y) = (f64::from(radius) / phases, f64::from(x) / phases, f64::from(y) / phases);
    let lines = marker_strokes(marker);
    let corners = marker_corners((x, y), marker, radius);
    let round = match marker {
        "." => radius * 0.5,
        "," => 0.5 * density,
        _ => radius,
    };
    let thick = if lines.is_empty() { density } else { STROKE_MARKER_WIDTH * density } / 2.0;
    let reach = radius.max(round) * 1.1 + thick + 1.0;
    let (left, top) = ((x - reach).floor() as i32, (y - reach).floor() as i32);
    let columns = ((x + reach).ceil() as i32 - left) as usize;
    let rows = ((y + reach).ceil() as i32 - top) as usize;
    let (mut fill, mut rim) = (Vec::with_capacity(columns * rows), Vec::new());
    for pixel in 0..columns * rows {
        let corner = (f64::from(left) + (pixel % columns) as f64, f64::from(top) + (pixel / columns) as f64);
        let (mut filled, mut edges) = (0.0, 0.0);
        for sample in 0..SAMPLES_PER_PIXEL_SIDE * SAMPLES_PER_PIXEL_SIDE {
            let within = |number: i32| (f64::from(number) + 0.5) / f64::from(SAMPLES_PER_PIXEL_SIDE);
            let at = (
                corner.0 + within(sample % SAMPLES_PER_PIXEL_SIDE),
                corner.1 + within(sample / SAMPLES_PER_PIXEL_SIDE),
            );
            let (inside, edge) = match &corners {
                _ if !lines.is_empty() => {
                    let place = |a: f64, b: f64| (x + a * radius, y + b * radius);
                    let near = |[a, b, c, d]: &[f64; 4]| distance_to_segment(at, place(*a, *b), place(*c, *d)) <= thick;
                    (lines.iter().any(near), false)
                }
                Some(corners) => {
                    let before = |number: usize| corners[(number + corners.len() - 1) % corners.len()];
                    let near =
                        |(number, to): (usize, &PlotPoint)| distance_to_segment(at, before(number), *to) <= thick;
                    (polygon_contains(corners, at), edged && corners.iter().enumerate().any(near))
                }
                None => {
                    let away = (at.0 - x).hypot(at.1 - y);
                    (away <= round, (away - round).abs() <= thick)
                }
            };
            filled += f32::from(u8::from(inside));
            edges += f32::from(u8::from(edge));
        }
        let all = (SAMPLES_PER_PIXEL_SIDE * SAMPLES_PER_PIXEL_SIDE) as f32;
        fill.push(filled / all);
        if edged {
            rim.push(edges / all);
        }
    }
    MarkerMask { left, top, columns, fill, rim }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: PlotRect = PlotRect { left: 0.0, top: 0.0, right: 500.0, bottom: 300.0 };

    fn gridded(points: &[PlotPoint], cell: f64, same: bool) -> Vec<GridPoint> {
        let mut cells = PointGrid::new(FRAME, cell, same);
        points.iter().zip(0..).for_each(|(at, which)| cells.add_point(*at, which));
        let mut kept = Vec::new();
        cells.for_each_drawn(|which| points[which as usize], |one| kept.push(one));
        kept
    }

    #[test]
    fn points_without_order_stand_one_to_a_cell() {
        let points: Vec<PlotPoint> =
            (0..200_000_u32).map(|at| (f64::from(at % 500), f64::from(at / 500 % 300))).collect();
        let kept = gridded(&points, 1.5, false);
        assert!(kept.len() <= 335 * 202 && kept.len() > 10_000, "{}", kept.len());
        assert!(kept.windows(2).all(|pair| pair[0].index < pair[1].index));
        assert_eq!(kept.iter().map(|kept| kept.count).sum::<u32>(), 200_000);
        assert_eq!(kept.last().map(|kept| kept.index), Some(199_999), "the last one is drawn last");
        let same = gridded(&points, 1.5, true);
        assert!(same.len() < kept.len() / 2);
        assert_eq!(gridded(&[points[0], points[100], points[900]], 1.5, true).len(), 3);
    }

    #[test]
    fn tiles_hold_all_points_and_give_those_in_sight() {
        let x: Vec<f64> = (0..50_000_u32).map(|at| f64::from(at * 7_919 % 10_007)).collect();
        let y: Vec<f64> =
            (0..50_000_u32).map(|at| if at == 7 { f64::NAN } else { f64::from(at % 977) - 1.0 }).collect();
        let everywhere = [[f64::NEG_INFINITY, f64::INFINITY]; 2];
        for log in [[false, false], [true, true]] {
            let tiles = TiledPoints::new(&x, &y, log);
            let bent = |at: f64, log: bool| if log { at.ln() } else { at };
            let shown = |at: &usize| {
                let (x, y) = (bent(x[*at], log[0]), bent(y[*at], log[1]));
                x.is_finite() && y.is_finite()
            };
            let wanted: Vec<usize> = (0..x.len()).filter(shown).collect();
            let mut all: Vec<usize> = tiles.points_within(everywhere).map(|(_, which)| *which as usize).collect();
            all.sort_unstable();
            assert_eq!(all, wanted);
            let part = [[bent(5_000.0, log[0]), bent(4_000.0, log[0])], [bent(100.0, log[1]), bent(300.0, log[1])]];
            let inside = |at: [f64; 2]| {
                (0..2).all(|side| {
                    let [from, to] = part[side];
                    at[side] >= from.min(to) && at[side] <= from.max(to)
                })
            };
            let place = |at: &usize| [bent(x[*at], log[0]), bent(y[*at], log[1])];
            let seen = tiles.points_within(part).filter(|(_, which)| inside(place(&(**which as usize)))).count();
            assert_eq!(seen, wanted.iter().filter(|at| inside(place(at))).count());
            assert!(tiles.points_within(part).count() < wanted.len() / 4, "far tiles are not looked at");
            for side in [0, 1] {
                let (add, times) = tiles.frame_transform(side, (3.0, 2.0));
                for (at, which) in tiles.points_within(part) {
                    let wanted = 3.0 + 2.0 * place(&(*which as usize))[side];
                    assert!((add + f64::from(at[side]) * times - wanted).abs() < 0.01);
                }
            }
        }
        assert!(TiledPoints::new(&[], &[], [false; 2]).is_empty());
        assert_eq!(TiledPoints::new(&[1.0; 9], &[2.0; 9], [false; 2]).points_within(everywhere).count(), 9);
    }

    #[test]
    fn markers_cover_what_they_cover_as_shapes() {
        let area = |marker: &str, radius: f64| -> f64 {
            let mut raster = MarkerRaster::new(FRAME, 2.0, marker, true).expect("a small picture");
            let ink = MarkerInk { radius, colour: (200, 100, 0), alpha: 1.0, edge: None };
            raster.stamp((100.13, 50.4), &ink);
            let (end, columns, rows, bytes) = raster.to_pixels();
            assert_eq!((end, columns, rows), ((500.0, 300.0), 1_000, 600));
            let inked: Vec<&[u8]> = bytes.chunks_exact(4).filter(|pixel| pixel[3] > 0).collect();
            assert!(inked.iter().all(|pixel| pixel[..3] == [200, 100, 0]), "{marker}");
            inked.iter().map(|pixel| f64::from(pixel[3]) / 255.0).sum::<f64>() / 4.0
        };
        for (marker, wanted) in [("o", std::f64::consts::PI * 9.0), ("s", 36.0), ("^", 18.0), (".", 7.07)] {
            let found = area(marker, 3.0);
            assert!((found / wanted - 1.0).abs() < 0.06, "{marker}: {found} of {wanted}");
        }
        assert!((area("x", 4.0) / (2.0 * 1.4 * 11.3) - 1.0).abs() < 0.1);
    }

    #[test]
    fn what_lies_over_the_edge_is_cut_and_what_is_seen_through_adds_up() {
        let mut raster = MarkerRaster::new(FRAME, 1.0, "s", false).expect("a small picture");
        let ink = MarkerInk { radius: 2.0, colour: (255, 0, 0), alpha: 0.5, edge: Some((0, 0, 255)) };
        for at in [(0.0, 0.0), (500.0, 300.0), (-900.0, 4e5), (250.0, 150.0), (250.0, 150.0)] {
            raster.stamp(at, &ink);
        }
        let (_, columns, _, bytes) = raster.to_pixels();
        let pixel = |x: usize, y: usize| &bytes[(y * columns + x) * 4..][..4];
        assert_eq!(pixel(249, 149), [255, 0, 0, 191], "twice a half");
        assert!(pixel(248, 149)[2] > 150 && pixel(248, 149)[3] > 191, "the line around it");
        assert!(pixel(0, 0)[3] > 0 && pixel(499, 299)[3] > 0 && pixel(20, 20)[3] == 0);
        assert!(MarkerRaster::new(FRAME, 1e4, "o", true).is_none());
        assert!(!raster.can_stamp(100.0));
    }
}
