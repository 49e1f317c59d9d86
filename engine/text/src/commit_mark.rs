//! The message of a note's change whose text came with a commit of Git. It names the commit and its author, and travels
//! with the change to other devices, which may not have the repository.

use crate::untrusted_text;
use sha1::{Digest, Sha1};

/// What a message begins with.
const MARK_PREFIX: &str = "commit ";
/// Number of digits of a commit's hash that are shown.
pub const SHORT_COMMIT_DIGITS: usize = 8;
/// Maximum length of an author's name, in characters.
const MAX_AUTHOR_CHARS: usize = 100;

/// A commit that brought a change of a note.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommitMark {
    /// Hash of the commit, 40 hexadecimal digits.
    pub id: String,
    /// Hash of the file's content in the commit, 40 hexadecimal digits. It stays the same if a rebase or squash makes
    /// another commit of it.
    pub blob: String,
    /// Name of the author, without the e-mail address: the note may reach people who don't have the repository.
    pub author: String,
}

impl CommitMark {
    /// Returns the mark as a change's message.
    pub fn to_message(&self) -> String {
        format!("{MARK_PREFIX}{} {} {}", self.id, self.blob, clean_author(&self.author))
    }

    /// Reads a change's message; `None` if it isn't such a mark. It may be from another device, so nothing is trusted.
    pub fn from_message(message: &str) -> Option<CommitMark> {
        let mut words = message.strip_prefix(MARK_PREFIX)?.splitn(3, ' ');
        let mut hash = || words.next().filter(|word| is_hash(word)).map(ToOwned::to_owned);
        let (id, blob) = (hash()?, hash()?);
        Some(CommitMark { id, blob, author: clean_author(words.next()?) })
    }

    /// Returns whether the file has this text in the commit. Git hashes a file's content after a header of its own
    /// (gitformat-loose-object). A repository with SHA-256 hashes has no such marks.
    pub fn has_content(&self, text: &str) -> bool {
        let mut hasher = Sha1::new();
        hasher.update(format!("blob {}\0", text.len()));
        hasher.update(text);
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>() == self.blob
    }
}

/// Returns the digits of a commit's hash that are shown.
pub fn short_commit(id: &str) -> &str {
    id.get(..SHORT_COMMIT_DIGITS).unwrap_or(id)
}

fn is_hash(word: &str) -> bool {
    word.len() == 40 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns a name without characters that would change what is around it.
fn clean_author(name: &str) -> String {
    let kept = name.chars().filter(|c| !c.is_control() && !untrusted_text::is_unsafe_char(*c));
    let name: String = kept.take(MAX_AUTHOR_CHARS).collect();
    match name.trim() {
        "" => "Unknown".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_were_written_and_nothing_else_is() {
        let mark = CommitMark { id: "a".repeat(40), blob: "0".repeat(40), author: "Ada L. King".to_owned() };
        assert_eq!(CommitMark::from_message(&mark.to_message()), Some(mark.clone()));
        let hostile = CommitMark { author: " \u{202e}Eve\n\u{1b}[2J ".to_owned(), ..mark.clone() };
        let read = CommitMark::from_message(&hostile.to_message()).expect("a mark");
        assert!(!read.author.contains(['\u{202e}', '\n', '\u{1b}']) && read.author.contains("Eve"), "{read:?}");
        let nameless = CommitMark { author: String::new(), ..mark };
        assert_eq!(
            CommitMark::from_message(&nameless.to_message()).map(|mark| mark.author).as_deref(),
            Some("Unknown")
        );
        for message in ["outside", "commit ", "commit abc def Ada", &format!("commit {} {} Ada", "g".repeat(40), "0")] {
            assert_eq!(CommitMark::from_message(message), None, "{message}");
        }
    }
}
