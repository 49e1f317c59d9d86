//! Drawings that take their time: diagrams, SVG, formulas as pixels. Each is made in a thread of its own with a limit
//! on time, so that what a note holds can neither hang nor end the program. Never called on the thread that draws.

use crate::tokens::Colours;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use typeset::fonts::Fonts;
use typeset::vector::{Drawing, Raster};

/// What is not drawn by then is given up.
const PATIENCE: Duration = Duration::from_secs(4);
/// Threads that were given up and still work; with so many nothing more is begun.
const LOST: usize = 4;
/// The stack of such a thread, in bytes: readers of deep texts call themselves.
const STACK: usize = 32 << 20;

/// Does something in a thread of its own. `None` where that takes too long or panics.
pub(crate) fn within<T: Send + 'static>(time: Duration, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static LATE: AtomicUsize = AtomicUsize::new(0);
    /// Counts a thread for as long as it lives, also where it panics.
    struct Alive;
    impl Drop for Alive {
        fn drop(&mut self) {
            LATE.fetch_sub(1, Ordering::Relaxed);
        }
    }
    // Two are at work at the same time at most: one for the window, one for an export.
    if LATE.load(Ordering::Relaxed) >= LOST + 2 {
        return None;
    }
    LATE.fetch_add(1, Ordering::Relaxed);
    let alive = Alive;
    let (done, answer) = sync_channel(1);
    let work = move || {
        let _alive = alive;
        let _ = done.send(job());
    };
    std::thread::Builder::new().name("drawing".to_owned()).stack_size(STACK).spawn(work).ok()?;
    answer.recv_timeout(time).ok()
}

/// Our fonts and the system's; looked for when they are first needed.
pub(crate) fn fonts() -> &'static Fonts {
    static FONTS: OnceLock<Fonts> = OnceLock::new();
    FONTS.get_or_init(Fonts::with_system)
}

/// A mermaid diagram in the colours of a theme.
///
/// # Errors
/// Why it is not drawn, as a sentence.
pub(crate) fn diagram(source: &str, colours: &Colours) -> Result<Drawing, String> {
    let (source, tints) = (source.to_owned(), colours.tints());
    let draw = move || {
        let svg = typeset::diagram::svg(&source, &tints)?;
        Drawing::read(&svg, fonts()).map_err(|why| format!("The diagram cannot be drawn: {why}."))
    };
    within(PATIENCE, draw).unwrap_or_else(|| Err("The diagram takes too long to draw.".to_owned()))
}

/// An SVG that nobody vouches for.
///
/// # Errors
/// Why it is not shown, as a sentence.
pub(crate) fn svg(bytes: Vec<u8>) -> Result<Drawing, String> {
    let read = move || {
        let text = String::from_utf8(bytes).map_err(|_| "The picture is not UTF-8.".to_owned())?;
        Drawing::read(&text, fonts()).map_err(|why| format!("The picture cannot be shown: {why}."))
    };
    within(PATIENCE, read).unwrap_or_else(|| Err("The picture takes too long to read.".to_owned()))
}

/// A drawing as pixels, so many to a point, with its own size in points.
///
/// # Errors
/// Why it is not drawn, as a sentence.
pub(crate) fn raster(drawing: Drawing, scale: f32) -> Result<(Raster, [f32; 2]), String> {
    let size = [drawing.width, drawing.height];
    let pixels = within(PATIENCE, move || drawing.raster(scale));
    let pixels = pixels.ok_or_else(|| "The drawing takes too long.".to_owned())?;
    pixels.map(|pixels| (pixels, size)).ok_or_else(|| "The drawing is too large.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hangs_and_nothing_ends_the_program() {
        assert_eq!(within(Duration::from_secs(5), || 7), Some(7));
        assert_eq!(within(Duration::from_secs(5), || -> u8 { panic!("on purpose") }), None);
        assert_eq!(within(Duration::from_millis(10), || std::thread::park_timeout(Duration::from_millis(300))), None);
        let drawing = diagram("flowchart LR\n A-->B", &crate::tokens::LIGHT).expect("a drawing");
        let (pixels, size) = raster(drawing, 2.0).expect("pixels");
        assert!(pixels.width as f32 >= size[0] * 1.9);
        assert!(diagram("nonsense", &crate::tokens::LIGHT).is_err_and(|why| why.ends_with('.')));
        assert!(svg(b"<svg".to_vec()).is_err() && svg(vec![0xff]).is_err());
    }
}
