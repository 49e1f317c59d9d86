//! Draws figures (JSON files) as PNG and SVG beside them, and prints how long each took: for tests/matplotlib.
//!
//! `cargo run --release -p plot --example render_figures -- [--scale N] [--svg] FILE.json …`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let (mut scale, mut svg, mut failed) = (1.0, false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--scale" => scale = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(1.0),
            "--svg" => svg = true,
            file => {
                let path = PathBuf::from(file);
                match render(&path, scale, svg) {
                    Ok(words) => println!("{file}\t{words}"),
                    Err(why) => {
                        failed = true;
                        println!("{file}\tfailed: {why}");
                    }
                }
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn render(path: &std::path::Path, scale: f64, svg: bool) -> Result<String, Box<dyn std::error::Error>> {
    let json = std::fs::read_to_string(path)?;
    let begun = Instant::now();
    let figure = plot::Figure::from_json(&json)?;
    let read = begun.elapsed();
    let begun = Instant::now();
    let png = plot::render_png(&figure, scale)?;
    let drawn = begun.elapsed();
    std::fs::write(path.with_extension("png"), &png)?;
    if svg {
        std::fs::write(path.with_extension("svg"), plot::render_svg(&figure)?)?;
    }
    Ok(format!(
        "{} bytes\tread {:.1} ms\tdrawn {:.1} ms",
        json.len(),
        read.as_secs_f64() * 1e3,
        drawn.as_secs_f64() * 1e3
    ))
}
