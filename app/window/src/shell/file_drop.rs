//! Dropped files and pasted pictures: stored next to the open note, with a link to each at the caret.
//!
//! A folder becomes a volume, and a notebook becomes a note. The host copies files on a separate thread.

use eframe::egui;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::DocId;

/// Extensions of files that are embedded as pictures. All others are linked.
const IMAGE_EXTENSIONS: &[&str] = &["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif"];

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

/// Returns where attachments of a note in `folder` are stored: the folder in the volume, and its relative path.
///
/// The relative path starts at the note's folder, and is empty or has a trailing `/`.
pub(crate) fn attachment_place(folder: &str, setting: &str) -> (String, String) {
    let below = |folder: &str, name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    match setting.strip_prefix('/') {
        _ if setting.trim_matches('/').is_empty() => (folder.to_owned(), String::new()),
        Some(name) => {
            let up = if folder.is_empty() { 0 } else { folder.split('/').count() };
            (name.to_owned(), format!("{}{name}/", "../".repeat(up)))
        }
        None => (below(folder, setting), format!("{setting}/")),
    }
}

/// Returns the link to a file next to the note.
pub(crate) fn link(name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let picture = IMAGE_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(ending));
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | '~' | '/');
    let target = if name.chars().all(plain) { name.to_owned() } else { format!("<{name}>") };
    // Brackets would end the label early, so they are escaped. A name can't contain a line break here.
    let label = name.replace('[', "\\[").replace(']', "\\]");
    if picture { format!("![]({target})") } else { format!("[{label}]({target})") }
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

#[cfg(test)]
mod tests {
    use super::{attachment_place, link};

    #[test]
    fn attachments_go_where_the_setting_says() {
        let place = |folder: &str, setting: &str| attachment_place(folder, setting);
        let both = |folder: &str, way: &str| (folder.to_owned(), way.to_owned());
        assert_eq!(place("a/b", ""), both("a/b", ""));
        assert_eq!(place("", "assets"), both("assets", "assets/"));
        assert_eq!(place("a/b", "assets"), both("a/b/assets", "assets/"));
        assert_eq!(place("a/b", "/Files"), both("Files", "../../Files/"));
        assert_eq!(place("", "/Files"), both("Files", "Files/"));
    }

    #[test]
    fn links_say_what_they_lead_to() {
        assert_eq!(link("a.PNG"), "![](a.PNG)");
        assert_eq!(link("two words.png"), "![](<two words.png>)");
        assert_eq!(link("data[1].csv"), "[data\\[1\\].csv](<data[1].csv>)");
    }
}
