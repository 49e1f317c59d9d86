//! A display list with decoded images, and the transforms for panning and zooming its axes.

use crate::display_list::{DisplayAxes, DisplayList, DisplayOperation, DisplaySide, MAX_IMAGE_PIXELS, OperationShape};
use crate::scale::AxisScale;
use tiny_skia::{IntSize, Pixmap};

/// Visible limits of a pair of axes along x and y; `None` where they match the list.
pub(crate) type SeenLimits = [Option<[f64; 2]>; 2];

/// A display list, ready for repeated drawing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PreparedDisplay {
    pub(crate) list: DisplayList,
    /// The decoded image of each operation that has a valid one.
    pub(crate) images: Vec<Option<Pixmap>>,
}

/// Offset and scale of the contents of a pair of axes: `x' = x * stretch + by`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AxesShift {
    stretch: [f32; 2],
    by: [f32; 2],
}

impl AxesShift {
    /// Returns where a position on the canvas moves to.
    pub(crate) fn apply(&self, x: f32, y: f32) -> (f32, f32) {
        (x * self.stretch[0] + self.by[0], y * self.stretch[1] + self.by[1])
    }
}

/// Decodes a PNG if it has no more than `most` pixels. Its colors are premultiplied.
fn decode_png(bytes: &[u8], most: usize) -> Option<Pixmap> {
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), png::Limits { bytes: 256 << 20 });
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let (width, height) = {
        let head = decoder.read_header_info().ok()?;
        (head.width, head.height)
    };
    let size = IntSize::from_wh(width, height)?;
    if width as usize * height as usize > most {
        return None;
    }
    let mut reader = decoder.read_info().ok()?;
    let mut raw = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut raw).ok()?;
    let pixels = raw.get(..frame.buffer_size())?;
    let over = |part: u8, alpha: u8| u8::try_from((u16::from(part) * u16::from(alpha) + 127) / 255).unwrap_or(u8::MAX);
    let rgba =
        |red: u8, green: u8, blue: u8, alpha: u8| [over(red, alpha), over(green, alpha), over(blue, alpha), alpha];
    let data: Vec<u8> = match frame.color_type {
        png::ColorType::Rgba => pixels
            .as_chunks::<4>()
            .0
            .iter()
            .flat_map(|[red, green, blue, alpha]| rgba(*red, *green, *blue, *alpha))
            .collect(),
        png::ColorType::Rgb => {
            pixels.as_chunks::<3>().0.iter().flat_map(|[red, green, blue]| [*red, *green, *blue, 255]).collect()
        }
        png::ColorType::Grayscale => pixels.iter().flat_map(|gray| [*gray, *gray, *gray, 255]).collect(),
        png::ColorType::GrayscaleAlpha => {
            pixels.as_chunks::<2>().0.iter().flat_map(|[gray, alpha]| rgba(*gray, *gray, *gray, *alpha)).collect()
        }
        png::ColorType::Indexed => return None,
    };
    Pixmap::from_vec(data, size)
}

impl PreparedDisplay {
    /// Decodes the images of a list.
    pub(crate) fn new(list: DisplayList) -> PreparedDisplay {
        let mut left = MAX_IMAGE_PIXELS;
        let images = list.ops.iter().map(|operation| match &operation.shape {
            OperationShape::Image { png, .. } => {
                let image = decode_png(&png.0, left)?;
                left -= image.pixels().len().min(left);
                Some(image)
            }
            _ => None,
        });
        let images = images.collect();
        PreparedDisplay { list, images }
    }

    /// Returns the transform of each pair of axes for the visible limits; `None` where nothing moves.
    pub(crate) fn shifts(&self, seen: &[SeenLimits]) -> Vec<Option<AxesShift>> {
        let shift = |(number, axes): (usize, &DisplayAxes)| {
            let asked = seen.get(number).copied().unwrap_or_default();
            let scales = axes_scales(axes)?;
            if asked == [None, None] {
                return None;
            }
            let mut found = AxesShift { stretch: [1.0, 1.0], by: [0.0, 0.0] };
            for side in [0, 1] {
                let Some([low, high]) = asked[side] else { continue };
                let (old, new) = (scales[side], AxisScale { low, high, ..scales[side] });
                // Two positions define the transform: in pixels it's linear even for a logarithmic scale.
                let [a, b] = [old.from, old.to].map(|at| new.position(old.number(at)));
                let stretch = (b - a) / (old.to - old.from);
                #[allow(clippy::cast_possible_truncation, reason = "pixels")]
                let [stretch, by] = [stretch, a - old.from * stretch].map(|part| part as f32);
                if !(stretch.is_finite() && by.is_finite()) {
                    return None;
                }
                (found.stretch[side], found.by[side]) = (stretch, by);
            }
            Some(found)
        };
        self.list.axes.iter().enumerate().map(shift).collect()
    }
}

/// Returns the scales of a pair of axes, if both are known.
pub(crate) fn axes_scales(axes: &DisplayAxes) -> Option<[AxisScale; 2]> {
    let [left, top, right, bottom] = axes.frame;
    let sound = axes.frame.iter().all(|edge| edge.is_finite()) && right > left && bottom > top;
    if !sound || !axes.sides.iter().all(DisplaySide::is_known) {
        return None;
    }
    let scale = |side: usize, from: f64, to: f64| {
        let [low, high] = axes.sides[side].limits;
        AxisScale { low, high, log: axes.sides[side].scale == "log", from, to }
    };
    Some([scale(0, left, right), scale(1, bottom, top)])
}

/// Returns the axes with which an operation moves: those whose frame clips it.
pub(crate) fn moves_with_axes(display: &PreparedDisplay, operation: &DisplayOperation) -> Option<usize> {
    const NEAR_PIXELS: f64 = 2.0;
    let axes = operation.axes?;
    let frame = display.list.axes.get(axes)?.frame;
    let rect = display.list.clips.get(operation.clip?)?.rect?;
    frame.iter().zip(rect).all(|(a, b)| (a - f64::from(b)).abs() < NEAR_PIXELS).then_some(axes)
}

/// Returns the corners of a mesh cell.
pub(crate) fn mesh_cell(corners: &[[f32; 2]], columns: usize, cell: usize) -> Option<[[f32; 2]; 4]> {
    let (row, column) = (cell.checked_div(columns)?, cell.checked_rem(columns)?);
    let first = row.checked_mul(columns.checked_add(1)?)?.checked_add(column)?;
    let next = first.checked_add(columns)?.checked_add(1)?;
    Some([*corners.get(first)?, *corners.get(first + 1)?, *corners.get(next.checked_add(1)?)?, *corners.get(next)?])
}
