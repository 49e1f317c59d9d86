//! Reduces very many points to those that a screen can show: the first, lowest, highest and last of each pixel column.
//! At high zoom every point is kept.

use crate::painter::{PlotPoint, PlotRect};
use crate::scale::AxisScale;
use std::ops::Range;

/// Number of values per block whose minimum and maximum are indexed together.
const NUMBERS_PER_BLOCK: usize = 64;
/// Columns per point of length; no screen shows more.
const COLUMNS_PER_POINT: f64 = 2.0;
/// Maximum number of pieces of an interrupted line in one column.
const MAX_PIECES_PER_COLUMN: usize = 16;

/// Index of the minimum and maximum of a column of numbers, by block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExtremaBlocks {
    /// Positions of the minimum and maximum of each block; `None` if it contains a value that isn't finite.
    ends: Vec<Option<(u32, u32)>>,
}

impl ExtremaBlocks {
    #[allow(clippy::cast_possible_truncation, reason = "no column has so many numbers")]
    pub(crate) fn new(y: &[f64]) -> ExtremaBlocks {
        let ends = y.chunks(NUMBERS_PER_BLOCK).enumerate().map(|(number, block)| {
            let (low, high) = extrema(block, 0..block.len())?;
            Some(((number * NUMBERS_PER_BLOCK + low) as u32, (number * NUMBERS_PER_BLOCK + high) as u32))
        });
        ExtremaBlocks { ends: ends.collect() }
    }

    /// Returns the positions of the minimum and maximum within a range; `None` if a value in it isn't finite.
    fn extrema(&self, y: &[f64], range: Range<usize>) -> Option<(usize, usize)> {
        let (first, last) = (range.start.div_ceil(NUMBERS_PER_BLOCK), range.end / NUMBERS_PER_BLOCK);
        if first >= last {
            return extrema(y, range);
        }
        let (mut low, mut high) = (range.start, range.start);
        let mut take = |(a, b): (usize, usize)| {
            if y[a] < y[low] {
                low = a;
            }
            if y[b] > y[high] {
                high = b;
            }
        };
        for part in [range.start..first * NUMBERS_PER_BLOCK, last * NUMBERS_PER_BLOCK..range.end] {
            if !part.is_empty() {
                take(extrema(y, part)?);
            }
        }
        for block in &self.ends[first..last] {
            let (a, b) = (*block)?;
            take((a as usize, b as usize));
        }
        y[range.start].is_finite().then_some((low, high))
    }
}

fn extrema(y: &[f64], range: Range<usize>) -> Option<(usize, usize)> {
    let (mut low, mut high) = (range.start, range.start);
    for at in range {
        if !y[at].is_finite() {
            return None;
        }
        if y[at] < y[low] {
            low = at;
        }
        if y[at] > y[high] {
            high = at;
        }
    }
    Some((low, high))
}

/// Returns whether all numbers are finite and none is smaller than the one before.
pub(crate) fn is_increasing(x: &[f64]) -> bool {
    x.iter().all(|x| x.is_finite()) && x.windows(2).all(|pair| pair[0] <= pair[1])
}

/// Returns the visible range of increasing numbers, with one more on either side.
pub(crate) fn visible_range(x: &[f64], scale: AxisScale) -> Range<usize> {
    let (low, high) = (scale.low.min(scale.high), scale.low.max(scale.high));
    let first = x.partition_point(|x| *x < low).saturating_sub(1);
    let last = x.partition_point(|x| *x <= high) + 1;
    first..last.min(x.len()).max(first)
}

/// Downsamples a line with increasing x by pixel column. Returns the indices of its points, by unbroken piece.
pub(crate) fn downsample_columns(
    x: &[f64],
    y: &[f64],
    blocks: &ExtremaBlocks,
    sx: AxisScale,
    frame: PlotRect,
) -> Vec<Vec<usize>> {
    let seen = visible_range(x, sx);
    let count = (frame.width() * COLUMNS_PER_POINT).max(1.0);
    let mut pieces: Vec<Vec<usize>> = vec![Vec::new()];
    if (seen.len() as f64) < count * 4.0 {
        for at in seen {
            if y[at].is_finite() {
                pieces.last_mut().into_iter().for_each(|piece| piece.push(at));
            } else if pieces.last().is_some_and(|piece| !piece.is_empty()) {
                pieces.push(Vec::new());
            }
        }
        return pieces;
    }
    let (left, right) = (sx.from.min(sx.to), sx.from.max(sx.to));
    let flipped = sx.low > sx.high;
    let mut from = seen.start;
    let mut column = 0.0;
    while from < seen.end {
        column += 1.0;
        let edge = if flipped { right - column / COLUMNS_PER_POINT } else { left + column / COLUMNS_PER_POINT };
        let to = if column > count {
            seen.end
        } else {
            let edge = sx.number(edge);
            from + x[from..seen.end].partition_point(|x| *x < edge)
        };
        if to > from {
            match blocks.extrema(y, from..to) {
                Some(ends) => pieces.last_mut().into_iter().for_each(|piece| push_extremes(from..to, ends, piece)),
                None => push_broken_column(y, from..to, &mut pieces),
            }
        }
        from = to;
    }
    pieces
}

/// Adds the first, lowest, highest and last point of a column, in order.
fn push_extremes(range: Range<usize>, (low, high): (usize, usize), piece: &mut Vec<usize>) {
    let mut shown = [range.start, low, high, range.end - 1];
    shown.sort_unstable();
    for (number, at) in shown.iter().enumerate() {
        if number == 0 || shown[number - 1] != *at {
            piece.push(*at);
        }
    }
}

/// Adds a column that contains values that aren't finite, split into pieces.
fn push_broken_column(y: &[f64], range: Range<usize>, pieces: &mut Vec<Vec<usize>>) {
    let before = pieces.len();
    let mut at = range.start;
    while at < range.end {
        let until = (at..range.end).find(|at| !y[*at].is_finite()).unwrap_or(range.end);
        if until > at
            && pieces.len() < before + MAX_PIECES_PER_COLUMN
            && let Some(ends) = extrema(y, at..until)
        {
            pieces.last_mut().into_iter().for_each(|piece| push_extremes(at..until, ends, piece));
        }
        if until < range.end && pieces.last().is_some_and(|piece| !piece.is_empty()) {
            pieces.push(Vec::new());
        }
        at = until + 1;
    }
}

/// Simplifies a path with unordered x: removes points less than 0.25 points away from the one before.
pub(crate) fn dedupe_path(path: &[PlotPoint]) -> Vec<PlotPoint> {
    const MIN_POINT_DISTANCE: f64 = 0.25;
    let mut kept: Vec<PlotPoint> = Vec::with_capacity(path.len().min(1 << 16));
    for (number, at) in path.iter().enumerate() {
        let far =
            |last: &PlotPoint| (last.0 - at.0).abs() > MIN_POINT_DISTANCE || (last.1 - at.1).abs() > MIN_POINT_DISTANCE;
        if kept.last().is_none_or(far) || number + 1 == path.len() {
            kept.push(*at);
        }
    }
    kept
}

/// Downsamples a line to 2,000 columns. Returns `None` if it's short enough or its x isn't increasing.
pub(crate) fn downsample_line(x: &[f64], y: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
    if x.len() < 20_000 || x.len() != y.len() || !is_increasing(x) || !has_increasing_ends(x) {
        return None;
    }
    let frame = PlotRect { left: 0.0, top: 0.0, right: 1_000.0, bottom: 1.0 };
    let scale = AxisScale { low: x[0], high: x[x.len() - 1], log: false, from: 0.0, to: 1_000.0 };
    let mut thin = (Vec::new(), Vec::new());
    for piece in downsample_columns(x, y, &ExtremaBlocks::new(y), scale, frame) {
        if !thin.0.is_empty() {
            thin.0.push(x[piece.first().copied().unwrap_or(0)]);
            thin.1.push(f64::NAN);
        }
        thin.0.extend(piece.iter().map(|at| x[*at]));
        thin.1.extend(piece.iter().map(|at| y[*at]));
    }
    Some(thin)
}

fn has_increasing_ends(x: &[f64]) -> bool {
    x.first() < x.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: PlotRect = PlotRect { left: 0.0, top: 0.0, right: 500.0, bottom: 300.0 };

    fn scale(low: f64, high: f64) -> AxisScale {
        AxisScale { low, high, log: false, from: 0.0, to: 500.0 }
    }

    #[test]
    fn a_million_points_become_what_the_pixels_show() {
        let x: Vec<f64> = (0..1_000_000).map(f64::from).collect();
        let y: Vec<f64> = (0..1_000_000_u32).map(|at| f64::from(at % 1_009 * 7_919 % 104_729)).collect();
        let blocks = ExtremaBlocks::new(&y);
        for (low, high) in [(0.0, 1e6), (123_456.7, 654_321.9), (1e6, 0.0)] {
            let sx = scale(low, high);
            let kept: Vec<usize> = downsample_columns(&x, &y, &blocks, sx, FRAME).concat();
            assert!(kept.len() <= 4_020, "{}", kept.len());
            assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
            // The result must be the same as if every point of a column had been examined.
            for column in [0, 1, 500, 999] {
                let edges = [f64::from(column) / 2.0, f64::from(column + 1) / 2.0].map(|at| sx.number(at));
                let (from, to) = (edges[0].min(edges[1]), edges[0].max(edges[1]));
                let within = |at: &usize| x[*at] > from && x[*at] < to;
                let highest = |all: &mut dyn Iterator<Item = usize>| all.map(|at| y[at]).fold(0.0, f64::max);
                let all = highest(&mut (0..x.len()).filter(within));
                assert_eq!(highest(&mut kept.iter().copied().filter(within)), all, "{low} {column}");
            }
        }
    }

    #[test]
    fn what_is_looked_at_closely_is_all_there() {
        let x: Vec<f64> = (0..1_000_000).map(f64::from).collect();
        let y = x.clone();
        let kept = downsample_columns(&x, &y, &ExtremaBlocks::new(&y), scale(1_000.5, 1_999.5), FRAME);
        assert_eq!(kept, [(1_000..=2_000).collect::<Vec<usize>>()]);
        assert_eq!(visible_range(&x, scale(-5.0, -1.0)), 0..1);
        assert_eq!(visible_range(&[], scale(0.0, 1.0)), 0..0);
    }

    #[test]
    fn gaps_stay_gaps() {
        let x: Vec<f64> = (0..100_000).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| if (40_000.0..60_000.0).contains(x) { f64::NAN } else { *x }).collect();
        let pieces = downsample_columns(&x, &y, &ExtremaBlocks::new(&y), scale(0.0, 1e5), FRAME);
        let pieces: Vec<&Vec<usize>> = pieces.iter().filter(|piece| !piece.is_empty()).collect();
        let ends: Vec<(usize, usize)> = pieces.iter().map(|piece| (piece[0], piece[piece.len() - 1])).collect();
        assert_eq!(ends, [(0, 39_999), (60_000, 99_999)]);
        let none = vec![f64::NAN; 100_000];
        assert_eq!(
            downsample_columns(&x, &none, &ExtremaBlocks::new(&none), scale(0.0, 1e5), FRAME).concat(),
            Vec::<usize>::new()
        );
    }

    #[test]
    fn a_long_line_can_be_sent_short() {
        let x: Vec<f64> = (0..50_000).map(f64::from).collect();
        let (thin_x, thin_y) = downsample_line(&x, &x).expect("it is long");
        assert!(thin_x.len() < 9_000 && thin_x.len() == thin_y.len());
        assert_eq!((thin_x[0], thin_x[thin_x.len() - 1]), (0.0, 49_999.0));
        assert_eq!(downsample_line(&x[..100], &x[..100]), None);
    }
}
