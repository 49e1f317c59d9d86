//! A gallery of a hundred plots through the command line, in the science kernel and in an environment: each cell shows
//! one native figure, with the operations and the light of what matplotlib draws itself.
//!
//! `tests/data/gallery` has the notes. `tests/matplotlib/notes.py` records what is expected, and measures how far our
//! pictures are from matplotlib's own. The kernels are those of the tutorials' tests.

use super::note_runs::NoteRuns;
use crate::program::is_left_to_nightly;
use plot::{FIGURE_MIME, PreparedFigure};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Blocks of a picture whose light is recorded.
const COLUMNS: usize = 12;
const ROWS: usize = 9;
/// The largest allowed mean difference of the blocks' light from matplotlib's own picture, out of 255.
const MAX_LIGHT_DIFFERENCE: f64 = 3.0;
/// Pixels per point of the pictures whose light was recorded.
const RECORDED_SCALE: f64 = 2.0;
/// What matplotlib says if its first import on a device takes long.
const FONT_CACHE_MESSAGE: &str = "Matplotlib is building the font cache; this may take a moment.\n";

const GALLERY: NoteRuns = NoteRuns { folder: "gallery", compare: differences };

/// What is expected of each cell of a note.
fn rows_of(name: &str) -> Vec<Value> {
    serde_json::from_str(&GALLERY.read(&format!("{name}.json"))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn recorded_light(row: &Value) -> Vec<f64> {
    row["light"].as_array().expect("a list").iter().map(|light| light.as_f64().expect("a number")).collect()
}

/// The mean light of a figure's blocks as we draw it, row by row.
fn drawn_light(figure: &str) -> Vec<f64> {
    let ready = PreparedFigure::from_json(figure).expect("a figure");
    let (wide, high, pixels) = plot::render_pixels(&ready, RECORDED_SCALE).expect("drawn");
    let mut lights = Vec::new();
    for row in 0..ROWS {
        let (top, bottom) = (high * row / ROWS, high * (row + 1) / ROWS);
        for column in 0..COLUMNS {
            let (left, right) = (wide * column / COLUMNS, wide * (column + 1) / COLUMNS);
            let lines = pixels.chunks_exact(3 * wide).skip(top).take(bottom - top);
            let sum: u64 = lines.flat_map(|line| &line[3 * left..3 * right]).map(|part| u64::from(*part)).sum();
            lights.push(sum as f64 / (3 * (bottom - top) * (right - left)) as f64);
        }
    }
    lights
}

fn light_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!((a.len(), b.len()), (ROWS * COLUMNS, ROWS * COLUMNS));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / a.len() as f64
}

/// The number of a figure's operations of each kind.
fn operations_of(figure: &str) -> Value {
    let figure: Value = serde_json::from_str(figure).expect("JSON");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for operation in figure["display_list"]["ops"].as_array().expect("a display list") {
        *counts.entry(operation["op"].as_str().expect("a name")).or_default() += 1;
    }
    json!(counts)
}

/// Lists whatever isn't as expected of a note.
fn differences(kernel: &str, name: &str, lines: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut drawn: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in lines {
        let cell = line["cell"].as_u64().expect("the cell's number");
        match line["data"][FIGURE_MIME].as_str() {
            Some(figure) if line["data"]["image/png"].is_string() => {
                drawn.entry(cell).or_default().push(figure.to_owned());
            }
            _ if line["text"] == FONT_CACHE_MESSAGE => {}
            _ => {
                let start: String = line.to_string().chars().take(400).collect();
                found.push(format!("{kernel}, {name}, cell {cell} gives {start}"));
            }
        }
    }
    for (number, row) in (1..).zip(rows_of(name)) {
        let place = format!("{kernel}, {name}, cell {number}");
        let figures = drawn.remove(&number).unwrap_or_default();
        if row["figures"] != figures.len() {
            found.push(format!("{place} shows {} figures and not {}", figures.len(), row["figures"]));
            continue;
        }
        for figure in &figures {
            let operations = operations_of(figure);
            if operations != row["operations"] {
                found.push(format!("{place} draws {operations} and not {}", row["operations"]));
            }
            let apart = light_difference(&drawn_light(figure), &recorded_light(&row));
            if apart > MAX_LIGHT_DIFFERENCE {
                found.push(format!("{place} looks different from matplotlib's picture, by {apart:.2} of 255"));
            }
        }
    }
    found
}

#[test]
fn science_draws_images_circles_and_space() {
    GALLERY.check_in_science(&["images", "circles", "space"]);
}

#[test]
fn science_draws_the_rest_of_the_gallery() {
    // The environment's tests draw these notes on each run.
    if is_left_to_nightly() {
        return;
    }
    GALLERY.check_in_science(&["lines", "bars", "statistics", "fields", "triangles", "axes", "shapes"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_draws_lines_bars_statistics_axes_and_shapes() {
    GALLERY.check_in_environment(&["lines", "bars", "statistics", "axes", "shapes"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_environment_draws_images_fields_triangles_circles_and_space() {
    GALLERY.check_in_environment(&["images", "fields", "triangles", "circles", "space"]);
}

#[test]
fn a_hundred_plots_are_drawn_in_each_kernel_and_differ() {
    let source = std::fs::read_to_string(file!().strip_prefix("tests/").unwrap_or(file!())).expect("this file");
    let mut plots = Vec::new();
    for entry in std::fs::read_dir(GALLERY.data()).expect("listed").flatten() {
        let path = entry.path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        if name == "README" || path.extension().is_none_or(|kind| kind != "md") {
            continue;
        }
        assert_eq!(source.matches(&format!("\"{name}\"")).count(), 2, "{name} runs once in each kernel");
        let (text, rows) = (GALLERY.read(&format!("{name}.md")), rows_of(&name));
        assert_eq!(text.matches("```python\n").count(), rows.len(), "{name}");
        let drawn = rows.iter().enumerate().filter(|(_, row)| row["figures"] == 1);
        plots.extend(drawn.map(|(at, row)| (format!("{name}, cell {}", at + 1), recorded_light(row))));
    }
    assert_eq!(plots.len(), 100);
    // The measure can tell any two plots apart.
    for (at, (place, light)) in plots.iter().enumerate() {
        for (other, other_light) in &plots[..at] {
            let apart = light_difference(light, other_light);
            assert!(apart > MAX_LIGHT_DIFFERENCE, "{place} and {other} differ by {apart:.2} only");
        }
    }
}
