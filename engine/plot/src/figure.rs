//! A figure as data: what a cell asked to draw, independent of how it's drawn.
//!
//! The kernel sends it as JSON with the media type [`FIGURE_MIME`]. It's stored with the outputs and drawn wherever
//! it's shown.

use crate::display_list::{DisplayList, DisplayListError};
use base64::Engine;
use serde::Deserialize;

/// The media type of a figure.
pub const FIGURE_MIME: &str = "application/vnd.tracebook.figure+json";

/// Maximum number of values in a column.
const MAX_COLUMN_NUMBERS: u32 = 20_000_000;

/// Numbers as JSON: a list, packed little-endian doubles in base64, or evenly spaced values.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum ColumnEncoding {
    List(Vec<Option<f64>>),
    Packed(String),
    Even { start: f64, step: f64, count: u32 },
}

/// A column of numbers; missing values are NaN.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "ColumnEncoding")]
pub struct FigureColumn(pub Vec<f64>);

/// Error from reading a column of a figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureColumnError {
    /// The column exceeds the limit of values.
    #[error("a column of {count} numbers is too long")]
    TooLong {
        /// Number of values in the column.
        count: u32,
    },
    /// The text isn't valid base64.
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    /// The bytes end within a number.
    #[error("a column ends in the middle of a number")]
    TornNumber,
}

/// Error from reading a figure.
#[derive(Debug, thiserror::Error)]
pub enum FigureReadError {
    /// The text isn't JSON of the expected form.
    #[error("this is no figure ({0})")]
    Json(#[from] serde_json::Error),
    /// The display list is invalid, or more than can be drawn.
    #[error(transparent)]
    DisplayList(#[from] DisplayListError),
    /// The figure is too small or too large.
    #[error("a figure of {width} by {height} points cannot be drawn")]
    Size {
        /// Width in points.
        width: f64,
        /// Height in points.
        height: f64,
    },
    /// The figure exceeds a limit.
    #[error("a figure with {count} {what} is too large; the most are {most}")]
    TooMany {
        /// What exceeds its limit.
        what: &'static str,
        /// The number in the figure.
        count: u64,
        /// The limit.
        most: u64,
    },
    /// Axes are far outside of the figure.
    #[error("axes that far outside of their figure cannot be drawn")]
    AxesPlace,
}

impl TryFrom<ColumnEncoding> for FigureColumn {
    type Error = FigureColumnError;

    fn try_from(wire: ColumnEncoding) -> Result<FigureColumn, FigureColumnError> {
        match wire {
            ColumnEncoding::Even { start, step, count } if count <= MAX_COLUMN_NUMBERS => {
                Ok(FigureColumn((0..count).map(|at| start + step * f64::from(at)).collect()))
            }
            ColumnEncoding::Even { count, .. } => Err(FigureColumnError::TooLong { count }),
            ColumnEncoding::List(all) => Ok(FigureColumn(all.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())),
            ColumnEncoding::Packed(text) => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(text)?;
                let (all, rest) = bytes.as_chunks::<8>();
                if rest.is_empty() {
                    Ok(FigureColumn(all.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()))
                } else {
                    Err(FigureColumnError::TornNumber)
                }
            }
        }
    }
}

impl FigureColumn {
    /// Returns numbers as JSON that can be read as a column, in a compact form for long columns.
    #[allow(clippy::cast_possible_truncation, reason = "a million at most are counted so")]
    pub fn to_json(all: &[f64]) -> String {
        // Evenly spaced whole numbers are exact in this form.
        let whole = |x: f64| x.fract() == 0.0 && x.abs() < 1e15;
        if let [first, second, ..] = all
            && whole(*first)
            && whole(*second)
            && all.len() <= MAX_COLUMN_NUMBERS as usize
            && all.iter().zip(0..).all(|(x, at)| *x == first + (second - first) * f64::from(at))
        {
            let step = second - first;
            return format!("{{\"start\":{first},\"step\":{step},\"count\":{}}}", all.len());
        }
        let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
        format!("\"{}\"", base64::engine::general_purpose::STANDARD.encode(bytes))
    }
}

/// A figure: axes on a grid. Sizes are in points.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Figure {
    /// Width in points.
    pub width: f64,
    /// Height in points.
    pub height: f64,
    /// Title above all axes.
    pub title: String,
    /// Background color; empty for the default background.
    pub ground: String,
    /// Whether text and lines are light, because the background is dark.
    pub dark: bool,
    /// The axes in drawing order.
    pub axes: Vec<Axes>,
    /// A finished canvas as drawing operations, as matplotlib's figures have. It has axes of its own.
    pub display_list: Option<Box<DisplayList>>,
}

/// Explicitly requested ticks.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct RequestedTicks {
    /// Positions of the ticks, in data coordinates.
    pub at: Vec<f64>,
    /// Labels of the ticks; if empty, their values.
    pub labels: Vec<String>,
}

/// One axis, x or y.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct AxisSpec {
    /// The axis label.
    pub label: String,
    /// Lower and upper limit; `None` fits the marks.
    pub limits: Option<[f64; 2]>,
    /// `log` or `linear`.
    pub scale: String,
    /// Explicitly requested ticks.
    pub ticks: Option<RequestedTicks>,
    /// Format of the tick labels: Python's `%` or `{}` style with one number.
    pub form: String,
    /// Whether the values are seconds since 1970.
    pub dates: bool,
    /// Whether grid lines are drawn behind the marks.
    pub grid: bool,
    /// Whether tick labels are omitted, because adjacent axes show them.
    pub quiet: bool,
    /// Rotation of the tick labels in degrees, counterclockwise.
    pub turn: f64,
    /// Axes with the same number share their limits.
    pub shared: Option<u32>,
    /// Margin around the marks as a fraction of their range.
    pub margin: Option<f64>,
}

/// The legend of a pair of axes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct FigureLegend {
    /// `best`, two words such as `upper left`, or `outside`.
    pub place: String,
    /// Title above the entries.
    pub title: String,
    /// Number of columns; 0 means one.
    pub columns: usize,
    /// Whether the legend has neither background nor frame.
    pub bare: bool,
    /// Font size in points; 0 for the default.
    pub size: f64,
}

/// A color bar beside the axes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Colorbar {
    /// Label of the color bar.
    pub label: String,
    /// Whether it's below the axes instead of to their right.
    pub below: bool,
    /// Index of the mark that it explains; `None` for the last mark with a color map.
    pub mark: Option<usize>,
}

/// A pair of axes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Axes {
    /// Left, top, width and height as fractions of the figure.
    pub place: [f64; 4],
    /// Title above the axes.
    pub title: String,
    /// Alignment of the title: `center`, `left` or `right`.
    pub title_at: String,
    /// The x and y axis.
    pub sides: [AxisSpec; 2],
    /// Index of the axes that these overlay, and which axis is separate (`y` or `x`), as in matplotlib's `twinx`.
    pub over: Option<(usize, char)>,
    /// Whether `place` is the frame itself, without the space around it.
    pub exact: bool,
    /// The legend, if there is one.
    pub legend: Option<FigureLegend>,
    /// Whether frame and ticks are hidden.
    pub off: bool,
    /// Sides of the frame that aren't drawn: letters of `lrtb`.
    pub open: String,
    /// Background color; empty for none.
    pub ground: String,
    /// Whether a unit has the same length along x and y.
    pub equal: bool,
    /// The color bar, if there is one.
    pub colorbar: Option<Colorbar>,
    /// The marks, in order.
    pub marks: Vec<FigureMark>,
}

/// A mark: line, bars, points or another drawn element.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct FigureMark {
    /// Drawing order: higher values are drawn on top. `None` uses the default of its kind.
    #[serde(default)]
    pub order: Option<f64>,
    /// Marks with the same number in a pair of axes belong together, such as error bars and their points.
    #[serde(default)]
    pub group: Option<u32>,
    /// The kind of mark, with its data.
    #[serde(flatten)]
    pub kind: MarkKind,
}

/// The kinds of marks. Colors are `#rrggbb`, `C` followed by a palette index, or `none`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names are matplotlib's")]
pub enum MarkKind {
    /// A line through points, or the points alone.
    Line {
        x: FigureColumn,
        y: FigureColumn,
        color: String,
        width: f64,
        dash: String,
        marker: String,
        size: f64,
        /// Fill color of its markers, if it differs from the line's color.
        #[serde(default)]
        face: String,
        #[serde(default)]
        edge: String,
        /// Only every nth point has a marker.
        #[serde(default)]
        every: usize,
        alpha: f64,
        label: String,
    },
    /// Points with individual sizes (areas) and colors.
    Points {
        x: FigureColumn,
        y: FigureColumn,
        sizes: FigureColumn,
        colors: Vec<String>,
        values: Option<MappedValues>,
        marker: String,
        #[serde(default)]
        edge: String,
        alpha: f64,
        label: String,
    },
    /// Rectangles at `(x, y)` with a width and a height.
    Bars {
        x: FigureColumn,
        y: FigureColumn,
        width: FigureColumn,
        height: FigureColumn,
        colors: Vec<String>,
        edge: String,
        #[serde(default)]
        hatch: String,
        alpha: f64,
        label: String,
    },
    /// The area between two lines.
    Area { x: FigureColumn, low: FigureColumn, high: FigureColumn, color: String, alpha: f64, label: String },
    /// Polygons, separated by values that aren't finite.
    Polygons {
        x: FigureColumn,
        y: FigureColumn,
        colors: Vec<String>,
        values: Option<MappedValues>,
        edge: String,
        alpha: f64,
        label: String,
    },
    /// A line across the axes.
    Rule { at: f64, vertical: bool, color: String, width: f64, dash: String, alpha: f64, label: String },
    /// A band across the axes.
    Band { low: f64, high: f64, vertical: bool, color: String, alpha: f64, label: String },
    /// Separate line segments, two points each; with `arrows`, each has an arrowhead at its second point.
    Segments {
        x: FigureColumn,
        y: FigureColumn,
        color: String,
        width: f64,
        #[serde(default)]
        dash: String,
        #[serde(default)]
        arrows: bool,
        alpha: f64,
        label: String,
    },
    /// Text, with an optional arrow to a point.
    Text {
        x: f64,
        y: f64,
        text: String,
        color: String,
        size: f64,
        h: String,
        v: String,
        arrow: Option<[f64; 2]>,
        /// Offset in points to the right and up.
        #[serde(default)]
        shift: [f64; 2],
        /// Whether `x` and `y` are fractions of the axes, from the bottom left.
        #[serde(default)]
        inside: bool,
        /// Rotation in degrees, counterclockwise. Text that isn't nearly horizontal is drawn vertically.
        #[serde(default)]
        turn: f64,
        /// Background color.
        #[serde(default)]
        ground: String,
    },
    /// A pie chart.
    Pie {
        parts: FigureColumn,
        colors: Vec<String>,
        labels: Vec<String>,
        shares: Vec<String>,
        start: f64,
        /// Offset of each wedge from the center, as a fraction of the radius.
        #[serde(default)]
        out: FigureColumn,
        /// Radius of the hole in the middle, as a fraction of the radius.
        #[serde(default)]
        hole: f64,
        /// Whether wedges run clockwise.
        #[serde(default)]
        clockwise: bool,
    },
    /// Values mapped to colors, in rows from the top.
    Image { rows: usize, columns: usize, shades: MappedValues, place: [f64; 4] },
    /// Pixels in rows from the top: three bytes (RGB) each, in base64.
    Pixels { rows: usize, columns: usize, colors: String, place: [f64; 4] },
    /// Contour lines, or the filled bands between them.
    Contour {
        x: FigureColumn,
        y: FigureColumn,
        shades: MappedValues,
        levels: Vec<f64>,
        filled: bool,
        /// Color of all lines; empty to use the color map.
        #[serde(default)]
        color: String,
        /// Whether each line is labeled with its level.
        #[serde(default)]
        labels: bool,
    },
}

impl MarkKind {
    /// Returns the label for the legend; empty if the mark has none.
    pub fn label(&self) -> &str {
        let label = match self {
            MarkKind::Line { label, .. }
            | MarkKind::Points { label, .. }
            | MarkKind::Bars { label, .. }
            | MarkKind::Area { label, .. }
            | MarkKind::Polygons { label, .. }
            | MarkKind::Rule { label, .. }
            | MarkKind::Band { label, .. }
            | MarkKind::Segments { label, .. } => label.as_str(),
            MarkKind::Text { .. }
            | MarkKind::Pie { .. }
            | MarkKind::Image { .. }
            | MarkKind::Pixels { .. }
            | MarkKind::Contour { .. } => "",
        };
        if label.starts_with('_') { "" } else { label }
    }

    /// Returns the default drawing order, the same as matplotlib's.
    pub(crate) fn default_order(&self) -> f64 {
        match self {
            MarkKind::Image { .. } | MarkKind::Pixels { .. } => 0.0,
            MarkKind::Contour { filled: true, .. } => 0.5,
            MarkKind::Points { .. }
            | MarkKind::Bars { .. }
            | MarkKind::Area { .. }
            | MarkKind::Polygons { .. }
            | MarkKind::Band { .. }
            | MarkKind::Pie { .. } => 1.0,
            MarkKind::Line { .. } | MarkKind::Rule { .. } | MarkKind::Segments { .. } | MarkKind::Contour { .. } => 2.0,
            MarkKind::Text { .. } => 3.0,
        }
    }

    /// Returns the values mapped to colors, if the mark has any.
    pub(crate) fn mapped_values(&self) -> Option<&MappedValues> {
        match self {
            MarkKind::Image { shades, .. } | MarkKind::Contour { shades, .. } => Some(shades),
            MarkKind::Points { values, .. } | MarkKind::Polygons { values, .. } => values.as_ref(),
            _ => None,
        }
    }
}

/// Values that a color map turns into colors.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct MappedValues {
    /// The values to map to colors.
    pub values: FigureColumn,
    /// Value at the start of the color map.
    pub low: f64,
    /// Value at the end of the color map.
    pub high: f64,
    /// Name of the color map.
    pub map: String,
    /// Whether the scale is logarithmic.
    #[serde(default)]
    pub log: bool,
}
