//! Where attachments of a note are stored, and how the note links to them.

/// Extensions of files that are embedded as pictures. All others are linked.
const IMAGE_EXTENSIONS: &[&str] = &["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif"];

/// Returns where attachments of a note in `folder` are stored: the folder in the volume, and its relative path.
///
/// The relative path starts at the note's folder, and is empty or has a trailing `/`.
pub fn attachment_place(folder: &str, setting: &str) -> (String, String) {
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
pub fn attachment_link(name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let picture = IMAGE_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(ending));
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | '~' | '/');
    let target = if name.chars().all(plain) { name.to_owned() } else { format!("<{name}>") };
    // Brackets would end the label early, so they are escaped. A name can't contain a line break here.
    let label = name.replace('[', "\\[").replace(']', "\\]");
    if picture { format!("![]({target})") } else { format!("[{label}]({target})") }
}

#[cfg(test)]
mod tests {
    use super::{attachment_link, attachment_place};

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
        assert_eq!(attachment_link("a.PNG"), "![](a.PNG)");
        assert_eq!(attachment_link("two words.png"), "![](<two words.png>)");
        assert_eq!(attachment_link("data[1].csv"), "[data\\[1\\].csv](<data[1].csv>)");
    }
}
