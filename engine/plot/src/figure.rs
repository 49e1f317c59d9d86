//! A figure as data: what a cell asked to be drawn, and nothing of how. It crosses from the kernel as JSON of the media
//! type [`MIME`], is kept with the outputs, and is drawn wherever it is looked at.

use base64::Engine;
use serde::Deserialize;

/// The media type of a figure.
pub const MIME: &str = "application/vnd.tracebook.figure+json";

/// Numbers: a list, or many of them packed as little-endian doubles in base64.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Wire {
    List(Vec<Option<f64>>),
    Packed(String),
}

/// A column of numbers; what is missing is not a number.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "Wire")]
pub struct Column(pub Vec<f64>);

impl TryFrom<Wire> for Column {
    type Error = String;

    fn try_from(wire: Wire) -> Result<Column, String> {
        match wire {
            Wire::List(all) => Ok(Column(all.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())),
            Wire::Packed(text) => {
                let bytes =
                    base64::engine::general_purpose::STANDARD.decode(text).map_err(|error| error.to_string())?;
                let (all, rest) = bytes.as_chunks::<8>();
                if rest.is_empty() {
                    Ok(Column(all.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()))
                } else {
                    Err("a column ends in the middle of a number".to_owned())
                }
            }
        }
    }
}

/// Numbers as a column holds many of them.
pub(crate) fn pack(all: &[f64]) -> String {
    let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A figure: axes on a grid. Sizes are in points.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Figure {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Above all axes.
    pub title: String,
    /// The axes.
    pub axes: Vec<Axes>,
}

/// Ticks that were asked for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Ticks {
    /// Where.
    pub at: Vec<f64>,
    /// What they say; their number where empty.
    pub labels: Vec<String>,
}

/// One pair of axes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Axes {
    /// Left, top, width, height as shares of the figure.
    pub place: [f64; 4],
    /// Above.
    pub title: String,
    /// Below.
    pub xlabel: String,
    /// At the left.
    pub ylabel: String,
    /// From and to; the marks decide where there is none.
    pub xlim: Option<[f64; 2]>,
    /// The same for y.
    pub ylim: Option<[f64; 2]>,
    /// Whether x is logarithmic.
    pub xlog: bool,
    /// Whether y is.
    pub ylog: bool,
    /// Ticks along x that were asked for.
    pub xticks: Option<Ticks>,
    /// Ticks along y.
    pub yticks: Option<Ticks>,
    /// Lines behind the marks.
    pub grid: bool,
    /// Where the legend stands, if there is one: `best` or two words such as `upper left`.
    pub legend: Option<String>,
    /// No frame, no ticks.
    pub off: bool,
    /// One unit is as long along x as along y.
    pub equal: bool,
    /// A scale of colours at the right, with its label.
    pub colorbar: Option<String>,
    /// What is drawn, in order.
    pub marks: Vec<Mark>,
}

/// What is drawn. Colours are `#rrggbb` or `C` and a number of the palette.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names are matplotlib's")]
pub enum Mark {
    /// A line through points, or the points alone.
    Line {
        x: Column,
        y: Column,
        color: String,
        width: f64,
        dash: String,
        marker: String,
        size: f64,
        alpha: f64,
        label: String,
    },
    /// Points with sizes (areas) and colours of their own.
    Points {
        x: Column,
        y: Column,
        sizes: Column,
        colors: Vec<String>,
        values: Option<Shades>,
        marker: String,
        alpha: f64,
        label: String,
    },
    /// Rectangles from `(x, y)`, so wide and so high.
    Bars {
        x: Column,
        y: Column,
        width: Column,
        height: Column,
        colors: Vec<String>,
        edge: String,
        alpha: f64,
        label: String,
    },
    /// What lies between two lines.
    Area { x: Column, low: Column, high: Column, color: String, alpha: f64, label: String },
    /// A line across the whole axes.
    Rule { at: f64, vertical: bool, color: String, width: f64, dash: String, alpha: f64, label: String },
    /// Single lines: a pair of ends each.
    Segments { x: Column, y: Column, color: String, width: f64, alpha: f64, label: String },
    /// Words; with an arrow to a point where there is one.
    Text { x: f64, y: f64, text: String, color: String, size: f64, h: String, v: String, arrow: Option<[f64; 2]> },
    /// The pieces of a pie.
    Pie { parts: Column, colors: Vec<String>, labels: Vec<String>, shares: Vec<String>, start: f64 },
    /// Shades in rows from the top.
    Image { rows: usize, columns: usize, shades: Shades, place: [f64; 4] },
    /// Lines of equal height, or the bands between them.
    Contour { x: Column, y: Column, shades: Shades, levels: Vec<f64>, filled: bool },
}

/// Numbers that a scale turns into colours.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Shades {
    /// The numbers.
    pub values: Column,
    /// What the scale begins with.
    pub low: f64,
    /// What it ends with.
    pub high: f64,
    /// Its name.
    pub map: String,
}

impl Figure {
    /// Reads a figure.
    ///
    /// # Errors
    /// A sentence, where the JSON is no figure.
    pub fn read(json: &str) -> Result<Figure, String> {
        let figure: Figure = serde_json::from_str(json).map_err(|error| format!("this is no figure ({error})"))?;
        if !(figure.width >= 16.0 && figure.height >= 16.0 && figure.width.max(figure.height) <= 10_000.0) {
            return Err(format!("a figure of {} by {} points cannot be drawn", figure.width, figure.height));
        }
        Ok(figure)
    }
}
