//! A figure as data: what a cell asked to be drawn, and nothing of how. It crosses from the kernel as JSON of the media
//! type [`FIGURE_MIME`], is kept with the outputs, and is drawn wherever it is looked at.

use crate::display_list::{DisplayList, DisplayListError};
use base64::Engine;
use serde::Deserialize;

/// The media type of a figure.
pub const FIGURE_MIME: &str = "application/vnd.tracebook.figure+json";

/// No column has more numbers.
const MAX_COLUMN_NUMBERS: u32 = 20_000_000;

/// Numbers: a list, many of them packed as little-endian doubles in base64, or as many at equal distances.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum ColumnEncoding {
    List(Vec<Option<f64>>),
    Packed(String),
    Even { start: f64, step: f64, count: u32 },
}

/// A column of numbers; what is missing is not a number.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "ColumnEncoding")]
pub struct FigureColumn(pub Vec<f64>);

/// Why a column of a figure can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureColumnError {
    /// It has more numbers than are drawn.
    #[error("a column of {count} numbers is too long")]
    TooLong {
        /// How many it has.
        count: u32,
    },
    /// It is not base64.
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    /// Its bytes are no whole count of numbers.
    #[error("a column ends in the middle of a number")]
    TornNumber,
}

/// Why a figure can't be read.
#[derive(Debug, thiserror::Error)]
pub enum FigureReadError {
    /// It is not JSON of the expected form.
    #[error("this is no figure ({0})")]
    Json(#[from] serde_json::Error),
    /// Its display list is not sound, or more than can be drawn.
    #[error(transparent)]
    DisplayList(#[from] DisplayListError),
    /// It is too small or too large.
    #[error("a figure of {width} by {height} points cannot be drawn")]
    Size {
        /// Its width in points.
        width: f64,
        /// Its height in points.
        height: f64,
    },
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
    /// Numbers as JSON that reads as a column: short also where there are many.
    #[allow(clippy::cast_possible_truncation, reason = "a million at most are counted so")]
    pub fn to_json(all: &[f64]) -> String {
        // Whole numbers at equal distances are exact that way.
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
    /// The ground, where it is not the paper's.
    pub ground: String,
    /// Words and lines are light, since the ground is dark.
    pub dark: bool,
    /// The axes in drawing order.
    pub axes: Vec<Axes>,
    /// A canvas that is drawn already, as operations: what matplotlib's figures are. It has axes of its own.
    pub display_list: Option<Box<DisplayList>>,
}

/// Ticks that were asked for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct RequestedTicks {
    /// Positions of the ticks, in data coordinates.
    pub at: Vec<f64>,
    /// What they say; their number where empty.
    pub labels: Vec<String>,
}

/// One side of a pair of axes: along x, or along y.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct AxisSpec {
    /// What stands beside it.
    pub label: String,
    /// From and to; the marks decide where there is none.
    pub limits: Option<[f64; 2]>,
    /// `log` or `linear`.
    pub scale: String,
    /// Ticks that were asked for.
    pub ticks: Option<RequestedTicks>,
    /// How its ticks say their numbers: a form of Python's `%` or `{}` kind around one number.
    pub form: String,
    /// Its numbers are seconds since 1970.
    pub dates: bool,
    /// Lines behind the marks.
    pub grid: bool,
    /// Its ticks say nothing, since another's below or beside say it.
    pub quiet: bool,
    /// How far the words of its ticks are turned, in degrees against the clock.
    pub turn: f64,
    /// The axes with the same name here have the same limits.
    pub shared: Option<u32>,
    /// The room around the marks, as a share of what they cover.
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
    /// How many columns; one where it is 0.
    pub columns: usize,
    /// No ground and no frame.
    pub bare: bool,
    /// The size of its words in points; the usual one where it is 0.
    pub size: f64,
}

/// A scale of colours beside the axes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Colorbar {
    /// What it is a scale of.
    pub label: String,
    /// Below the axes instead of at their right.
    pub below: bool,
    /// Which mark's; the last one's that has a scale where there is none.
    pub mark: Option<usize>,
}

/// One pair of axes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Axes {
    /// Left, top, width, height as shares of the figure.
    pub place: [f64; 4],
    /// Title above the axes.
    pub title: String,
    /// Where the title stands: `center`, `left` or `right`.
    pub title_at: String,
    /// Along x, along y.
    pub sides: [AxisSpec; 2],
    /// The axes (by number) over which these lie: with a scale of their own along y (`y`) or x (`x`).
    pub over: Option<(usize, char)>,
    /// `place` is that of the frame itself, without what stands around it.
    pub exact: bool,
    /// The legend, if there is one.
    pub legend: Option<FigureLegend>,
    /// No frame, no ticks.
    pub off: bool,
    /// The sides of the frame that are not drawn: letters of `lrtb`.
    pub open: String,
    /// The ground; none where empty.
    pub ground: String,
    /// One unit is as long along x as along y.
    pub equal: bool,
    /// A scale of colours.
    pub colorbar: Option<Colorbar>,
    /// What is drawn, in order.
    pub marks: Vec<FigureMark>,
}

/// A mark: line, bars, points or another drawn element.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct FigureMark {
    /// What lies on what: higher on lower. By its kind where there is none.
    #[serde(default)]
    pub order: Option<f64>,
    /// Marks of one name in a pair of axes belong together: error bars and their points.
    #[serde(default)]
    pub group: Option<u32>,
    /// The kind of mark, with its data.
    #[serde(flatten)]
    pub kind: MarkKind,
}

/// What is drawn. Colours are `#rrggbb`, `C` and a number of the palette, or `none`.
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
        /// Inside and around its markers, where that is not its own colour.
        #[serde(default)]
        face: String,
        #[serde(default)]
        edge: String,
        /// Only so many points from one marker to the next.
        #[serde(default)]
        every: usize,
        alpha: f64,
        label: String,
    },
    /// Points with sizes (areas) and colours of their own.
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
    /// Rectangles from `(x, y)`, so wide and so high.
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
    /// What lies between two lines.
    Area { x: FigureColumn, low: FigureColumn, high: FigureColumn, color: String, alpha: f64, label: String },
    /// Polygons, one behind the other; what is no number stands between two.
    Polygons {
        x: FigureColumn,
        y: FigureColumn,
        colors: Vec<String>,
        values: Option<MappedValues>,
        edge: String,
        alpha: f64,
        label: String,
    },
    /// A line across the whole axes.
    Rule { at: f64, vertical: bool, color: String, width: f64, dash: String, alpha: f64, label: String },
    /// A band across the whole axes.
    Band { low: f64, high: f64, vertical: bool, color: String, alpha: f64, label: String },
    /// Single lines: a pair of ends each, with a head at the second where `arrows`.
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
    /// Words; with an arrow to a point where there is one.
    Text {
        x: f64,
        y: f64,
        text: String,
        color: String,
        size: f64,
        h: String,
        v: String,
        arrow: Option<[f64; 2]>,
        /// From where it would stand, in points to the right and up.
        #[serde(default)]
        shift: [f64; 2],
        /// `x` and `y` are shares of the axes, from below at the left.
        #[serde(default)]
        inside: bool,
        /// In degrees against the clock; what is not nearly 0 is read from below.
        #[serde(default)]
        turn: f64,
        /// The ground behind it.
        #[serde(default)]
        ground: String,
    },
    /// The pieces of a pie.
    Pie {
        parts: FigureColumn,
        colors: Vec<String>,
        labels: Vec<String>,
        shares: Vec<String>,
        start: f64,
        /// How far each is moved out, as a share of the radius.
        #[serde(default)]
        out: FigureColumn,
        /// How much of the radius is empty in the middle.
        #[serde(default)]
        hole: f64,
        /// Around with the clock.
        #[serde(default)]
        clockwise: bool,
    },
    /// Shades in rows from the top.
    Image { rows: usize, columns: usize, shades: MappedValues, place: [f64; 4] },
    /// Colours in rows from the top: three bytes a pixel, in base64.
    Pixels { rows: usize, columns: usize, colors: String, place: [f64; 4] },
    /// Lines of equal height, or the bands between them.
    Contour {
        x: FigureColumn,
        y: FigureColumn,
        shades: MappedValues,
        levels: Vec<f64>,
        filled: bool,
        /// One colour for all lines.
        #[serde(default)]
        color: String,
        /// Each line says its height.
        #[serde(default)]
        labels: bool,
    },
}

impl MarkKind {
    /// What the legend calls it.
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

    /// What lies on what where nobody says so, as matplotlib has it.
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

    /// The scale of its colours, if it has one.
    pub(crate) fn mapped_values(&self) -> Option<&MappedValues> {
        match self {
            MarkKind::Image { shades, .. } | MarkKind::Contour { shades, .. } => Some(shades),
            MarkKind::Points { values, .. } | MarkKind::Polygons { values, .. } => values.as_ref(),
            _ => None,
        }
    }
}

/// Numbers that a scale turns into colours.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct MappedValues {
    /// The values to map to colors.
    pub values: FigureColumn,
    /// What the scale begins with.
    pub low: f64,
    /// What it ends with.
    pub high: f64,
    /// Name of the color map.
    pub map: String,
    /// The scale is logarithmic.
    #[serde(default)]
    pub log: bool,
}

impl Figure {
    /// Reads a figure.
    ///
    /// # Errors
    /// The JSON is no figure.
    pub fn from_json(json: &str) -> Result<Figure, FigureReadError> {
        let figure: Figure = serde_json::from_str(json)?;
        if !(figure.width >= 16.0 && figure.height >= 16.0 && figure.width.max(figure.height) <= 10_000.0) {
            return Err(FigureReadError::Size { width: figure.width, height: figure.height });
        }
        if let Some(list) = &figure.display_list {
            list.check_bounds()?;
        }
        Ok(figure)
    }
}
