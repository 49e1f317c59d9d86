//! Points and rectangles in a figure's coordinates.

/// A position in points.
pub(crate) type PlotPoint = (f64, f64);

/// A rectangle: left, top, right, bottom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlotRect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl PlotRect {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(crate) fn contains(&self, (x, y): PlotPoint) -> bool {
        x >= self.left - 0.5 && x <= self.right + 0.5 && y >= self.top - 0.5 && y <= self.bottom + 0.5
    }

    /// Returns the rectangle expanded by a number of points on all sides.
    pub(crate) fn expanded(&self, by: f64) -> PlotRect {
        PlotRect { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }

    pub(crate) fn clamp(&self, (x, y): PlotPoint) -> PlotPoint {
        (x.clamp(self.left, self.right), y.clamp(self.top, self.bottom))
    }
}
