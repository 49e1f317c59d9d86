//! Dropped files and pasted pictures: stored next to the open note, with a link to each at the caret.
//!
//! A folder becomes a volume, and a notebook becomes a note. The host copies files on a separate thread.

use eframe::egui;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::DocId;

/// Files stored for a note.
pub(crate) struct BroughtFiles {
    pub(crate) note: DocId,
    /// Relative path from the note's folder to the files' folder: empty, or with a trailing `/`.
    pub(crate) way: String,
    /// The name of each file, or why it couldn't be stored.
    pub(crate) names: Vec<anyhow::Result<String>>,
}

/// Files that are copied but not linked yet.
pub(crate) struct FileDrops {
    pub(crate) brought: Receiver<BroughtFiles>,
    pub(crate) bring: Sender<BroughtFiles>,
    /// Notes created from notebooks.
    pub(crate) made: Receiver<anyhow::Result<DocId>>,
    pub(crate) make: Sender<anyhow::Result<DocId>>,
}

impl Default for FileDrops {
    fn default() -> Self {
        let ((bring, brought), (make, made)) = (channel(), channel());
        FileDrops { brought, bring, made, make }
    }
}

/// Encodes a picture as PNG, with unpremultiplied alpha.
pub(crate) fn packed(picture: &egui::ColorImage) -> Result<Vec<u8>, png::EncodingError> {
    let side = |at: usize| u32::try_from(picture.size[at]).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side(0), side(1));
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let pixels: Vec<u8> = picture.pixels.iter().flat_map(|pixel| pixel.to_srgba_unmultiplied()).collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(bytes)
}
