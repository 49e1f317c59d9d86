//! Keeps the paths of a display list within what can be filled.

use std::borrow::Cow;
use tiny_skia::{Path, PathBuilder, PathSegment, Point, Transform};

/// Largest distance of a point from the origin, and largest width of a line, in pixels. Much beyond it, single
/// precision leaves no fractions of a pixel, and edges no longer meet the canvas in the order that tiny-skia expects.
pub(crate) const MAX_DISTANCE_PIXELS: f32 = 1e6;

/// Returns a path in pixels with all its points within [`MAX_DISTANCE_PIXELS`]. `None` if it can't be filled.
pub(crate) fn within_reach(path: &Path, turn: Transform) -> Option<Cow<'_, Path>> {
    let bounds = path.bounds().transform(turn)?;
    if [bounds.left(), bounds.top(), bounds.right(), bounds.bottom()]
        .iter()
        .all(|side| side.abs() <= MAX_DISTANCE_PIXELS)
    {
        return if turn.is_identity() {
            Some(Cow::Borrowed(path))
        } else {
            path.clone().transform(turn).map(Cow::Owned)
        };
    }
    let path = path.clone().transform(turn)?;
    let near = |point: Point| {
        let [x, y] = [point.x, point.y].map(|at| at.clamp(-MAX_DISTANCE_PIXELS, MAX_DISTANCE_PIXELS));
        (x, y)
    };
    let mut builder = PathBuilder::with_capacity(path.len(), path.points().len());
    for segment in path.segments() {
        match segment {
            PathSegment::MoveTo(to) => {
                let (x, y) = near(to);
                builder.move_to(x, y);
            }
            PathSegment::LineTo(to) => {
                let (x, y) = near(to);
                builder.line_to(x, y);
            }
            PathSegment::QuadTo(by, to) => {
                let ((x1, y1), (x, y)) = (near(by), near(to));
                builder.quad_to(x1, y1, x, y);
            }
            PathSegment::CubicTo(first, second, to) => {
                let ((x1, y1), (x2, y2), (x, y)) = (near(first), near(second), near(to));
                builder.cubic_to(x1, y1, x2, y2, x, y);
            }
            PathSegment::Close => builder.close(),
        }
    }
    builder.finish().map(Cow::Owned)
}
