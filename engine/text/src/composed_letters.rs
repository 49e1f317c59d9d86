//! Letters with marks, in one form: macOS writes file names in another one than keyboards.

use unicode_normalization::{UnicodeNormalization, is_nfc};
use unicode_segmentation::UnicodeSegmentation;

/// Returns the characters of a text as keyboards write them: a letter and its marks are one character if there is one.
/// Each comes with its position in the text, in characters.
pub fn composed_letters(text: &str) -> Vec<(usize, char)> {
    if is_nfc(text) {
        return text.chars().enumerate().collect();
    }
    let mut letters = Vec::new();
    let mut at = 0;
    for cluster in text.graphemes(true) {
        letters.extend(cluster.nfc().map(|letter| (at, letter)));
        at += cluster.chars().count();
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::composed_letters;

    #[test]
    fn letters_and_marks_are_joined() {
        assert_eq!(composed_letters("aé"), [(0, 'a'), (1, 'é')]);
        assert_eq!(composed_letters("e\u{301}b"), [(0, 'é'), (2, 'b')]);
        let korean = "x\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}";
        assert_eq!(composed_letters(korean), [(0, 'x'), (1, '한'), (4, '글')]);
    }
}
