//! Finds the data point near a position on a display list.

use crate::display_list::{OperationShape, OutlinePath, PathStep};
use crate::display_prepared::{PreparedDisplay, SeenLimits, moves_with_axes};
use crate::plot_rect::PlotRect;

/// Maximum number of points per operation that are searched for the nearest one.
const MAX_HOVERED_POINTS: usize = 400_000;

/// Returns the points of an operation that represent data.
fn data_points(shape: &OperationShape) -> Option<&[[f32; 2]]> {
    match shape {
        OperationShape::Path { path, style } if style.fill.is_none() && is_line(path) => Some(path.v.points()),
        OperationShape::Markers { at, .. } | OperationShape::Collection { at, .. } => Some(at.points()),
        _ => None,
    }
}

fn is_line(path: &OutlinePath) -> bool {
    path.steps().all(|step| matches!(step, PathStep::Move(_) | PathStep::Line(_)))
}

/// Returns the data point nearest to a position in axes and the name of its series, at most `reach` points away.
pub(crate) fn nearest_point<'a>(
    display: &'a PreparedDisplay,
    (axes, frame): (usize, PlotRect),
    seen: &[SeenLimits],
    at: [f64; 2],
    reach: f64,
) -> Option<([f64; 2], &'a str)> {
    let shift = display.shifts(seen).get(axes).copied().flatten();
    let mut best: Option<(f64, [f64; 2], &str)> = None;
    for operation in display.list.ops.iter().filter(|op| moves_with_axes(display, op) == Some(axes)) {
        let Some(points) = data_points(&operation.shape) else { continue };
        for [x, y] in points.iter().take(MAX_HOVERED_POINTS) {
            let (x, y) = shift.map_or((*x, *y), |shift| shift.apply(*x, *y));
            let spot = [f64::from(x), f64::from(y)];
            let far = (spot[0] - at[0]).hypot(spot[1] - at[1]);
            if far <= reach
                && frame.contains((spot[0], spot[1]))
                && best.as_ref().is_none_or(|(known, ..)| far < *known)
            {
                let name = operation.series.and_then(|series| display.list.series.get(series));
                best = Some((far, spot, name.map_or("", String::as_str)));
            }
        }
    }
    best.map(|(_, spot, name)| (spot, name))
}
