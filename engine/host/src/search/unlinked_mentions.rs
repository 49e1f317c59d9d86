//! Unlinked mentions of a note's name in other notes. All files of its volume are searched on a separate thread, since
//! the index may be incomplete.

use crate::fs::confined_dir::ConfinedPath;
use crate::fs::read::{self, FoundFile};
use crate::mailbox::{Mailbox, MailboxMessage};
use engine::Session;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::{DocId, FileKind};
use text::links;
use text::outline::Outline;

/// Maximum number of mentions.
const MAX_MENTIONS: usize = 200;
/// Maximum number of context characters on each side of a mention.
const MENTION_CONTEXT_CHARS: usize = 60;

/// An unlinked mention of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlinkedMention {
    /// The note that contains the mention.
    pub note: DocId,
    /// Offset of the mention in the note, in bytes.
    pub at: usize,
    /// The mention as written.
    pub text: String,
    /// The surrounding text.
    pub line: String,
}

/// Searches for a note's names; results arrive one note at a time, and the channel closes when the search ends.
pub(crate) fn start_mention_search(session: &Session, note: DocId, inbox: Mailbox) -> Receiver<Vec<UnlinkedMention>> {
    let (found, receiver) = channel();
    let place = session.locate_file(note).and_then(|(volume, path)| Some((session.volume(volume)?, path)));
    if let Some((volume, path)) = place
        && let Some(root) = volume.root.clone()
    {
        let own = links::without_md_extension(path.rsplit('/').next().unwrap_or(path)).to_owned();
        let aliases = volume.links.outline(note).map(|outline| outline.aliases.clone()).unwrap_or_default();
        let names: Vec<String> = std::iter::once(own).chain(aliases).filter(|name| !name.is_empty()).collect();
        let notes = volume.files.values().filter(|row| row.kind == FileKind::Note && row.id != note);
        let files: Vec<(DocId, ConfinedPath)> =
            notes.map(|row| (row.id, ConfinedPath::new(&root, &row.path))).collect();
        std::thread::spawn(move || search_files(&names, &files, &found, &inbox));
    }
    receiver
}

fn search_files(
    names: &[String],
    files: &[(DocId, ConfinedPath)],
    found: &Sender<Vec<UnlinkedMention>>,
    inbox: &Mailbox,
) {
    let mut left = MAX_MENTIONS;
    for (note, file) in files {
        let Ok(FoundFile::Text(file)) = read::read_note_file(file) else { continue };
        let mentions = mentions_in_text(*note, &file.text, names, left);
        left -= mentions.len();
        if !mentions.is_empty() {
            if found.send(mentions).is_err() {
                return; // nobody waits for it any more
            }
            inbox.send(MailboxMessage::Read(Box::new(|_| ()))); // wakes who draws
        }
        if left == 0 {
            return;
        }
    }
}

fn mentions_in_text(note: DocId, text: &str, names: &[String], most: usize) -> Vec<UnlinkedMention> {
    let lower = text.to_lowercase();
    // If lower case changes the length, offsets would shift: search the original text.
    let hay = if lower.len() == text.len() { lower.as_str() } else { text };
    let mut mentions: Vec<UnlinkedMention> = Vec::new();
    let mut outline = None;
    for name in names {
        let name = name.to_lowercase();
        for (at, _) in hay.match_indices(&name) {
            let end = at + name.len();
            let letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
            let inside = letter(text[..at].chars().next_back()) || letter(text[end..].chars().next());
            if inside || mentions.len() >= most {
                continue;
            }
            let outline = outline.get_or_insert_with(|| Outline::of(text));
            if is_inside_markup(text, outline, at, end) {
                continue;
            }
            let line = surrounding_text(text, at, end);
            mentions.push(UnlinkedMention { note, at, text: text[at..end].to_owned(), line });
        }
    }
    mentions.sort_by_key(|mention| mention.at);
    mentions
}

/// Returns whether a range is already part of a link, code, a heading or the front matter.
fn is_inside_markup(text: &str, outline: &Outline, at: usize, end: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let stop = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
    let line = &text[start..stop];
    let before = &line[..at - start];
    let open = |left: &str, right: &str| before.rfind(left).is_some_and(|from| !before[from..].contains(right));
    let front = text::outline::front_matter_range(text).is_some_and(|front| at < front.end);
    let code = before.matches('`').count() % 2 == 1;
    let url = line[..end - start].rsplit(char::is_whitespace).next().is_some_and(|word| word.contains("://"));
    let heading = outline.headings.iter().any(|heading| heading.at >= start && heading.at < stop);
    // Inside a code block, a link would only be text.
    let fenced = text[..start].lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1;
    front || code || url || heading || fenced || open("[", "]") || open("](", ")")
}

fn surrounding_text(text: &str, at: usize, end: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let stop = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
    let from = text[start..at].char_indices().rev().nth(MENTION_CONTEXT_CHARS).map_or(start, |(from, _)| start + from);
    let to = text[end..stop].char_indices().nth(MENTION_CONTEXT_CHARS).map_or(stop, |(to, _)| end + to);
    text[from..to].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_link_is_found() {
        let text = "---\nup: Sea\n---\n# Sea\nThe sea and [[Sea]] and [sea](x.md), `sea`, seaside, a SEA.\n\
                    ```\nsea\n```\nhttps://sea.org ok\n";
        let found = mentions_in_text(DocId([1; 16]), text, &["Sea".to_owned()], 10);
        let seen: Vec<&str> = found.iter().map(|mention| mention.text.as_str()).collect();
        assert_eq!(seen, ["sea", "SEA"]);
        assert!(found.iter().all(|mention| text[mention.at..].starts_with(&mention.text)));
        assert!(found[0].line.starts_with("The sea"));
    }
}
