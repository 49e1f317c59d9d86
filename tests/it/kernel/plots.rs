//! matplotlib calls as notes make them (tests/data/plots.py): each is drawn in every format, or an error names what is
//! missing. `TRACEBOOK_PICTURES=FOLDER` keeps the pictures on one sheet, which is docs/plots.png.

use super::Kernel;
use super::figures::figures;
use plot::Figure;

/// The calls: a name, the expected error if the call is refused, and the code.
pub(crate) fn calls() -> Vec<(String, Option<String>, String)> {
    let all = include_str!("../../data/plots.py");
    let cells = all.split("\n# %% ").skip(1).map(|cell| {
        let (head, code) = cell.split_once('\n').expect("a name and code");
        let (name, why) = head.split_once("! ").map_or((head, None), |(name, why)| (name, Some(why.to_owned())));
        // A `;` after the last line keeps its value from being shown.
        (name.to_owned(), why, format!("{};\n", code.trim_end()))
    });
    cells.collect()
}

#[test]
fn sixty_calls_are_drawn_or_named() {
    let kernel = &mut Kernel::start();
    let calls = calls();
    let drawn = calls.iter().filter(|(_, why, _)| why.is_none()).count();
    assert!(drawn >= 60, "{drawn}");
    let mut sheet = Vec::new();
    for (name, why, code) in calls {
        let (all, rest) = figures(kernel, &code);
        if let Some(why) = why {
            assert!(rest.contains(&why), "{name}: {rest}");
            continue;
        }
        assert_eq!((all.len(), rest.as_str()), (1, ""), "{name}");
        let figure = Figure::from_json(&all[0]).unwrap_or_else(|why| panic!("{name}: {why}"));
        let svg = plot::render_svg(&figure).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(svg.contains("</svg>") && svg.matches("<").count() > 20, "{name}");
        assert!(svg.len() < 4 << 20, "{name}: {} bytes of SVG", svg.len());
        assert!(!svg.contains("NaN,") && !svg.contains(",NaN"), "{name}");
        if std::env::var_os("TRACEBOOK_PICTURES").is_none() {
            let png = plot::render_png(&figure, 0.25).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(&png[..4], b"\x89PNG", "{name}");
        }
        sheet.push(figure);
    }
    if let Some(folder) = std::env::var_os("TRACEBOOK_PICTURES") {
        let png = plot::render_png_sheet(&sheet, 6, 0.5).expect("a sheet");
        std::fs::write(std::path::Path::new(&folder).join("plots.png"), png).expect("a file");
    }
}
