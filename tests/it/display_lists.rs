//! matplotlib figures as display lists. The real backend wrote those in tests/data/matplotlib, each with Agg's image
//! beside it (tests/matplotlib/kept_figures.py). Our images must look like Agg's, and no JSON may do harm.

use plot::{Figure, PlotView, PreparedFigure};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The largest allowed mean difference of a channel from Agg's image, out of 255.
const MAX_MEAN_DIFFERENCE: f64 = 5.0;
/// The time within which a bounded figure is refused or drawn, even by an unoptimized build on a busy machine.
const MAX_DRAWING_TIME: Duration = Duration::from_secs(60);

fn kept_lists() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/matplotlib");
    let files = std::fs::read_dir(folder).expect("the folder of kept figures");
    let mut lists: Vec<PathBuf> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    lists.sort();
    lists
}

fn read_figure(path: &Path) -> Figure {
    let json = std::fs::read_to_string(path).expect("a kept figure");
    Figure::from_json(&json).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn mean_difference(ours: &[u8], theirs: &[u8]) -> f64 {
    let [ours, theirs] = [ours, theirs].map(|png| image::load_from_memory(png).expect("a PNG").to_rgb8());
    assert_eq!(ours.dimensions(), theirs.dimensions());
    let apart = ours.iter().zip(theirs.iter()).map(|(a, b)| f64::from(a.abs_diff(*b)));
    apart.sum::<f64>() / f64::from(ours.width() * ours.height() * 3)
}

#[test]
fn kept_figures_look_as_matplotlib_draws_them() {
    let lists = kept_lists();
    assert!(lists.len() >= 12, "{lists:?}");
    for list in &lists {
        let ours = plot::render_png(&read_figure(list), 1.0).expect("drawn");
        let theirs = std::fs::read(list.with_extension("png")).expect("Agg's picture");
        let difference = mean_difference(&ours, &theirs);
        assert!(difference < MAX_MEAN_DIFFERENCE, "{}: differs by {difference:.2} of 255", list.display());
    }
    // The measure can tell different figures apart.
    let [bar, pie] = ["bar", "pie"].map(|name| {
        let list = lists.iter().find(|list| list.ends_with(format!("{name}.json"))).expect("kept");
        plot::render_png(&read_figure(list), 1.0).expect("drawn")
    });
    assert!(mean_difference(&bar, &pie) > 4.0 * MAX_MEAN_DIFFERENCE);
}

#[test]
fn a_display_list_becomes_svg_with_shapes_and_letters() {
    for list in kept_lists() {
        let svg = plot::render_svg(&read_figure(&list)).expect("drawn");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("<path "), "{}", list.display());
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", list.display());
    }
    let words = kept_lists().into_iter().find(|list| list.ends_with("words.json")).expect("kept");
    let svg = plot::render_svg(&read_figure(&words)).expect("drawn");
    for part in
        ["<pattern id=\"h0\"", "clip-path=\"url(#c0)\"", "<use xlink:href=\"#g0\"", "stroke-dasharray", "<image "]
    {
        assert!(svg.contains(part), "{part}");
    }
}

/// Draws a display list's figure with a view and returns where its axes are.
fn places_of(ready: &PreparedFigure, view: &PlotView) -> Vec<plot::PlacedAxes> {
    let (width, height) = (ready.figure.width as u32, ready.figure.height as u32);
    let mut pixels = vec![0; (width * height * 3) as usize];
    let mut backend = PixelBackend(&mut pixels, (width, height));
    plot::draw_figure(ready, view, &mut backend, 1.0, &plot::PlotTheme::LIGHT).expect("drawn")
}

use backend::PixelBackend;

mod backend {
    //! A plot backend that accepts only whole images, which is what a display list produces.

    use plot::PlotBackend;
    use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind};
    use std::convert::Infallible;

    pub(super) struct PixelBackend<'a>(pub(super) &'a mut Vec<u8>, pub(super) (u32, u32));

    impl DrawingBackend for PixelBackend<'_> {
        type ErrorType = Infallible;

        fn get_size(&self) -> (u32, u32) {
            self.1
        }

        fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
            Ok(())
        }

        fn present(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
            Ok(())
        }

        fn draw_text<T: BackendTextStyle>(
            &mut self,
            _: &str,
            _: &T,
            _: BackendCoord,
        ) -> Result<(), DrawingErrorKind<Infallible>> {
            Ok(())
        }

        fn draw_pixel(&mut self, _: BackendCoord, _: BackendColor) -> Result<(), DrawingErrorKind<Infallible>> {
            Ok(())
        }
    }

    impl PlotBackend for PixelBackend<'_> {
        fn draw_pixels(&mut self, _: BackendCoord, _: BackendCoord, _: usize, _: usize, bytes: &[u8]) -> bool {
            *self.0 = bytes.to_vec();
            true
        }
    }
}

#[test]
fn axes_of_a_display_list_are_hovered_zoomed_and_moved() {
    let words = kept_lists().into_iter().find(|list| list.ends_with("words.json")).expect("kept");
    let ready = PreparedFigure::from_json(&std::fs::read_to_string(&words).expect("kept")).expect("a figure");
    let mut view = PlotView::default();
    let places = places_of(&ready, &view);
    assert_eq!(places.len(), 4);
    let third = &places[2];
    let [[low, high], [bottom, top]] = third.limits();
    // Dates are seconds since 1970.
    assert!(low > 1.7e9 && high < 1.8e9 && bottom < 1.0 && top > 3.0, "{low} {high} {bottom} {top}");
    let [left, up, right, down] = third.frame();
    let peak = [left + (right - left) * 0.475, up + (down - up) * 0.045];
    let near = third.nearest(&ready, &view, peak, 12.0).expect("a point");
    assert!(near.description.contains("2026") && near.description.contains("y = 3"), "{}", near.description);
    view.zoom(&ready, third, peak, 4.0);
    let closer = places_of(&ready, &view);
    let [[from, to], _] = closer[2].limits();
    assert!((to - from) * 3.9 < high - low && from > low && to < high);
    // The point under the pointer is still under it.
    let near = closer[2].nearest(&ready, &view, peak, 12.0).expect("a point");
    assert!(near.description.contains("y = 3"), "{}", near.description);
    assert!((near.at[0] - peak[0]).hypot(near.at[1] - peak[1]) < 12.0);
    // The other axes are unchanged.
    assert_eq!(closer[0].limits(), places[0].limits());
}

/// A kernel that draws a zoomed figure again is untrusted.
#[test]
fn only_the_same_axes_on_the_same_canvas_take_a_figures_place() {
    let [bar, words] = ["bar.json", "words.json"].map(|name| {
        let list = kept_lists().into_iter().find(|list| list.ends_with(name)).expect("kept");
        std::fs::read_to_string(list).expect("kept")
    });
    let stored = PreparedFigure::from_json(&bar).expect("a figure");
    let fits = |json: &str| PreparedFigure::from_json(json).is_ok_and(|drawing| drawing.has_canvas_of(&stored));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut figure: Value = serde_json::from_str(&bar).expect("JSON");
        change(&mut figure);
        figure.to_string()
    };
    assert!(
        fits(&bar) && fits(&changed(&|figure| figure["display_list"]["axes"][0]["sides"][0]["limits"] = json!([1, 2])))
    );
    assert!(!fits(&words) && !fits(r#"{"width": 200, "height": 200, "axes": []}"#));
    assert!(!fits(&changed(&|figure| figure["height"] = json!(300))));
    let twice = changed(&|figure| {
        let axes = figure["display_list"]["axes"][0].clone();
        figure["display_list"]["axes"] = json!([axes, axes]);
    });
    assert!(PreparedFigure::from_json(&twice).is_ok() && !fits(&twice));
}

/// Draws a figure in every way if its JSON can be read. Returns whether it could be read.
fn draw_whatever_it_is(json: &str) -> bool {
    let begun = Instant::now();
    let read = Figure::from_json(json);
    if let Ok(figure) = &read {
        // A figure that is too large to draw is an error, too.
        let _ = plot::render_png(figure, 0.5);
        let _ = plot::render_svg(figure);
        if figure.width.max(figure.height) < 400.0 {
            let _ = places_of(&PreparedFigure::new(figure.clone()), &PlotView::default());
        }
    }
    assert!(begun.elapsed() < MAX_DRAWING_TIME, "{} bytes took {:?}", json.len(), begun.elapsed());
    read.is_ok()
}

/// Replaces a value somewhere in JSON by `by`.
fn mutate(value: &mut Value, mut seed: u64, by: &Value) {
    let mut here = value;
    loop {
        let count = match here {
            Value::Array(all) => all.len(),
            Value::Object(all) => all.len(),
            _ => 0,
        } as u64;
        if count == 0 || seed.is_multiple_of(7) {
            *here = by.clone();
            return;
        }
        let at = (seed / 7 % count) as usize;
        seed /= 3;
        here = match here {
            Value::Array(all) => &mut all[at],
            Value::Object(all) => all.values_mut().nth(at).expect("within"),
            _ => return,
        };
    }
}

fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(-1)),
        Just(json!(0)),
        Just(json!(1e30)),
        Just(json!(-1e38)),
        Just(json!(1e-30)),
        Just(json!(4_000_000_000_u64)),
        Just(json!([])),
        Just(json!([1e38, -1e38, 0, 0, 1e38, 1])),
        Just(json!("M9L999999999Z")),
        Just(json!("AADAfwAAgH8AAID/AADAfw==")),
        Just(json!("#00000001")),
        Just(
            json!({"op": "path", "v": [0, 0, 1e9, 1e9, 5, 900], "fill": "#ff0000", "dash": [0, 1e-9], "edge": "#000000",
                    "width": 1e9})
        ),
        Just(json!({"op": "mesh", "columns": 18_446_744_073_709_551_615_u64, "v": [0, 0, 1, 1], "fills": "AAAAAA=="})),
        any::<i32>().prop_map(|number| json!(number)),
        any::<f32>().prop_map(|number| json!(number)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_display_list_harms(
        which in 0_usize..100, changes in prop::collection::vec((any::<u64>(), odd_value()), 1..6)
    ) {
        let lists = kept_lists();
        let json = std::fs::read_to_string(&lists[which % lists.len()]).expect("kept");
        let mut figure: Value = serde_json::from_str(&json).expect("JSON");
        for (seed, by) in &changes {
            if let Some(operations) = figure.pointer_mut("/display_list/ops") {
                mutate(operations, *seed, by);
            }
            if let Some(list) = figure.pointer_mut("/display_list") {
                mutate(list, seed.rotate_left(13), by);
            }
        }
        draw_whatever_it_is(&figure.to_string());
    }
}

/// A figure of marks of every kind.
fn figure_of_marks() -> Value {
    let shades = json!({"values": [1, 2, 3, 4], "low": 1, "high": 4, "map": "viridis"});
    let line = json!({"kind": "line", "x": {"start": 0, "step": 1, "count": 9}, "y": [1, 2, null, 4, 3, 2, 1, 0, 5],
                      "color": "C0", "width": 1.5, "dash": "--", "marker": "o", "size": 6, "every": 2, "alpha": 0.5,
                      "label": "a line"});
    let marks = json!([
        line,
        {"kind": "points", "x": [1, 2], "y": [1, 2], "sizes": [30], "colors": ["C1"], "values": null, "marker": "*",
         "alpha": 1, "label": "points"},
        {"kind": "bars", "x": [0, 2], "y": [0, 0], "width": [1, 1], "height": [2, 3], "colors": ["C2"],
         "edge": "#000000", "hatch": "/.x", "alpha": 1, "label": ""},
        {"kind": "area", "x": [0, 1, 2], "low": [0, 1, 0], "high": [2, 0, 3], "color": "C3", "alpha": 0.3, "label": ""},
        {"kind": "polygons", "x": [0, 4, 2, 3], "y": [0, 1, 5, 2], "colors": ["C4"], "values": null, "edge": "none",
         "alpha": 1, "label": ""},
        {"kind": "rule", "at": 2, "vertical": true, "color": "C5", "width": 1, "dash": ":", "alpha": 1, "label": ""},
        {"kind": "band", "low": 1, "high": 2, "vertical": false, "color": "C6", "alpha": 0.2, "label": ""},
        {"kind": "segments", "x": [0, 1], "y": [0, 3], "color": "C7", "width": 1, "arrows": true, "alpha": 1,
         "label": ""},
        {"kind": "text", "x": 1, "y": 1, "text": "$x^2$", "color": "C0", "size": 10, "h": "center", "v": "top",
         "arrow": [2, 2], "turn": 90, "ground": "#ffffff"},
        {"kind": "image", "rows": 2, "columns": 2, "shades": shades, "place": [0, 2, 0, 2]},
        {"kind": "pixels", "rows": 1, "columns": 1, "colors": "AAAA", "place": [0, 1, 0, 1]},
        {"kind": "contour", "x": [0, 3], "y": [0, 3], "shades": shades, "levels": [1.5, 2.5], "filled": false,
         "labels": true},
        {"kind": "contour", "x": [0, 3], "y": [0, 3], "shades": shades, "levels": [1, 2, 3], "filled": true},
    ]);
    let pie = json!({"kind": "pie", "parts": [1, 2], "colors": ["C0", "C1"], "labels": ["a", "b"], "shares": ["33 %"],
                     "start": 90, "hole": 0.2});
    let axes = json!([
        {"place": [0, 0, 0.6, 1], "title": "All", "sides": [{"label": "x", "scale": "linear", "form": "%.1f"},
         {"scale": "log", "ticks": {"at": [1, 10], "labels": ["one"]}, "grid": true}], "legend": {"place": "best"},
         "colorbar": {"label": "c"}, "marks": marks},
        {"place": [0.6, 0, 0.4, 1], "equal": true, "off": true, "marks": [pie]},
        {"place": [0, 0, 0.6, 1], "over": [0, "y"], "marks": [line]},
    ]);
    json!({"width": 420, "height": 200, "title": "Marks", "axes": axes})
}

/// Returns all numbers in JSON.
fn numbers_in(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Number(_) => vec![value],
        Value::Array(all) => all.iter_mut().flat_map(numbers_in).collect(),
        Value::Object(all) => all.values_mut().flat_map(numbers_in).collect(),
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_figure_of_marks_harms(changes in prop::collection::vec((any::<usize>(), odd_number()), 1..6)) {
        let mut figure = figure_of_marks();
        for (which, number) in &changes {
            let mut found = numbers_in(figure.pointer_mut("/axes").expect("axes"));
            let count = found.len();
            *found[which % count] = number.clone();
        }
        draw_whatever_it_is(&figure.to_string());
    }
}

fn odd_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(-1)),
        Just(json!(0)),
        Just(json!(1e30)),
        Just(json!(-1e308)),
        Just(json!(1e308)),
        Just(json!(5e-324)),
        Just(json!(4_000_000_000_u64)),
        any::<i32>().prop_map(|number| json!(number)),
        any::<f32>().prop_map(|number| json!(number)),
    ]
}

#[test]
fn marks_of_few_bytes_take_little() {
    assert!(draw_whatever_it_is(&figure_of_marks().to_string()), "the figure itself is drawn");
    let of = |marks: Value| {
        let axes =
            json!([{"place": [0, 0, 1, 1], "sides": [{"limits": [0, 1e9]}, {"limits": [0, 1e9]}], "marks": marks}]);
        json!({"width": 420, "height": 200, "axes": axes}).to_string()
    };
    let even = |count: u64| json!({"start": 0, "step": 1, "count": count});
    let contour = |side: u64, values: Value| {
        let shades = json!({"values": values, "low": 0, "high": 1, "map": "viridis"});
        json!([{"kind": "contour", "x": even(side), "y": even(side), "shades": shades, "levels": [0.5],
                "filled": false}])
    };
    let bars = |count: u64, hatch: &str| {
        json!([{"kind": "bars", "x": {"start": 0, "step": 0, "count": count}, "y": [], "width": even(count),
                "height": even(count), "colors": ["C0"], "edge": "", "hatch": hatch, "alpha": 1, "label": ""}])
    };
    let cells = json!({"rows": u64::MAX, "columns": 9, "kind": "pixels", "colors": "", "place": [0, 1, 0, 1]});
    let mut far = figure_of_marks();
    far["axes"][0]["place"] = json!([-1e300, 0, 1e300, 1]);
    let many = json!({"width": 300, "height": 200, "axes": vec![json!({}); 1_001]});
    let label = json!({"width": 300, "height": 200, "title": "x".repeat(10_001)});
    for (json, reason) in [
        (of(json!(vec![bars(19_000_000, "")[0].clone(); 400])), "evenly spaced numbers"),
        (of(contour(100_000, json!([]))), "cells and levels of contours"),
        (of(json!([cells])), "cells of an image"),
        (far.to_string(), "far outside"),
        (many.to_string(), "1001 axes"),
        (label.to_string(), "bytes in a text"),
    ] {
        let why = Figure::from_json(&json).expect_err(reason).to_string();
        assert!(why.contains(reason), "{why}");
    }
    // All crossings of a contour in one place, dots of a hatch without a gap, and a number that 32 bits don't hold.
    let checkered = (0..250 * 250).map(|at| json!((at + at / 250) % 2)).collect();
    let mut scattered = figure_of_marks()["axes"][0]["marks"][0].clone();
    let numbers: Vec<u64> = (0..30_000).map(|at| at * 7_919 % 30_000).collect();
    for (name, value) in [("x", json!(numbers)), ("y", json!(numbers)), ("every", json!(1_u64 << 32))] {
        scattered[name] = value;
    }
    let mut hatched = bars(1, &".".repeat(9_000))[0].clone();
    (hatched["y"], hatched["width"], hatched["height"]) = (json!([0]), json!([1e9]), json!([1e9]));
    let text = figure_of_marks()["axes"][0]["marks"][8].clone();
    for (key, value) in [("size", json!(1e9)), ("x", json!(1e300)), ("turn", json!(-1e300))] {
        let mut odd = text.clone();
        odd[key] = value;
        assert!(draw_whatever_it_is(&of(json!([odd]))), "{key}");
    }
    for (marks, what) in [
        (contour(250, Value::Array(checkered)), "crossings"),
        (json!([hatched]), "a hatch"),
        (json!([scattered]), "markers"),
    ] {
        assert!(draw_whatever_it_is(&of(marks)), "{what}");
    }
}

#[test]
fn work_is_bounded() {
    let list =
        |ops: Value| json!({"width": 600, "height": 400, "display_list": {"version": 1, "dpi": 100, "ops": ops}});
    // The maximum number of shapes that the reader accepts, each covering the whole figure.
    let large = json!({"op": "path", "v": [-9, -9, 900, -9, 900, 900, -9, 900], "fill": "#00ff0001", "edge": "#000000",
                       "width": 300, "aa": true});
    let figure = Figure::from_json(&list(vec![large; 50_000].into()).to_string()).expect("within bounds");
    let begun = Instant::now();
    let why = plot::render_png(&figure, 1.0).expect_err("too much").to_string();
    assert!(why.contains("too much to draw"), "{why}");
    assert!(begun.elapsed() < MAX_DRAWING_TIME, "{:?}", begun.elapsed());
    let small = json!({"op": "path", "v": [0, 0, 1, 1], "edge": "#000000", "width": 1});
    let why = Figure::from_json(&list(vec![small; 50_001].into()).to_string()).expect_err("too many").to_string();
    assert!(why.contains("50001 operations"), "{why}");
    let many = json!([{"op": "collection", "path": {"v": [0, 0, 9, 9]}, "at": [0, 0], "count": 900_000_000,
                       "turns": [1, 0, 0, 1, 0, 0], "fills": "AAAA/w=="}]);
    assert!(!draw_whatever_it_is(&list(many).to_string()));
    let newer = json!({"width": 600, "height": 400, "display_list": {"version": 9}}).to_string();
    assert!(Figure::from_json(&newer).expect_err("newer").to_string().contains("newer version"));
}
