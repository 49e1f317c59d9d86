//! Dropped files and pasted pictures: they're stored next to the open note, and a link to each is inserted at the
//! caret. A folder becomes a volume, a notebook a note. The host copies them on a separate thread.

use eframe::egui;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::DocId;

/// Pictures by their ending: these are shown, all else is linked.
const IMAGE_EXTENSIONS: &[&str] = &["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif"];

/// What has been copied and is not linked yet.
pub(crate) struct FileDrops {
    pub(crate) brought: Receiver<(DocId, Vec<anyhow::Result<String>>)>,
    pub(crate) bring: Sender<(DocId, Vec<anyhow::Result<String>>)>,
    /// Notebooks that became notes.
    pub(crate) made: Receiver<anyhow::Result<DocId>>,
    pub(crate) make: Sender<anyhow::Result<DocId>>,
}

impl Default for FileDrops {
    fn default() -> Self {
        let ((bring, brought), (make, made)) = (channel(), channel());
        FileDrops { brought, bring, made, make }
    }
}

/// Returns the link to a file next to the note.
pub(crate) fn link(name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let picture = IMAGE_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(ending));
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | '~');
    let target = if name.chars().all(plain) { name.to_owned() } else { format!("<{name}>") };
    // What would end the label early is escaped; a name cannot hold a line end here.
    let label = name.replace('[', "\\[").replace(']', "\\]");
    if picture { format!("![]({target})") } else { format!("[{label}]({target})") }
}

/// A picture as PNG, with straight alpha.
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

#[cfg(test)]
mod tests {
    use super::link;

    #[test]
    fn links_say_what_they_lead_to() {
        assert_eq!(link("a.PNG"), "![](a.PNG)");
        assert_eq!(link("two words.png"), "![](<two words.png>)");
        assert_eq!(link("data[1].csv"), "[data\\[1\\].csv](<data[1].csv>)");
    }
}
