//! Names by which links lead to files, as other programs write them.

use crate::outline::percent_decode;
use unicode_normalization::UnicodeNormalization;

/// Returns a name as names are compared. As in Obsidian, neither case, nor the form in which Unicode writes a letter
/// with a mark, nor the kind of a space makes a difference: macOS, Windows and web pages write names in other forms.
pub fn fold_name(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let plain = |letter| if matches!(letter, '\u{a0}' | '\u{202f}') { ' ' } else { letter };
    name.nfc().map(plain).collect::<String>().to_lowercase()
}

/// Returns the name by which Logseq links to a note whose file name has `___` for `/`, or percent-encoding for what a
/// file name can't hold.
pub(crate) fn page_name(path: &str) -> Option<String> {
    let name = path.strip_suffix(".md")?;
    let name = name.rsplit('/').next().unwrap_or(name);
    let page = name.replace("___", "/");
    let page = percent_decode(&page);
    (page != name).then(|| page.into_owned())
}

/// Names of the notes that stand for their folder, without `.md`: those of GitHub and of programs that build sites.
pub(crate) const FOLDER_PAGES: [&str; 3] = ["readme", "index", "_index"];

/// Returns the folder that a note stands for; empty for that of the volume.
pub(crate) fn folder_of_page(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = fold_name(name.strip_suffix(".md")?);
    FOLDER_PAGES.contains(&name.as_str()).then_some(folder)
}
