//! Resolves links in notes to a file, and a heading in it.

use engine::Session;
use std::collections::HashMap;
use store::DocId;
use text::markdown;
use text::outline::Outline;

/// Returns the file that a note's link leads to.
pub fn link_target(session: &Session, note: DocId, link: &str) -> Option<DocId> {
    let (volume, _) = session.locate_file(note)?;
    session.volume(volume)?.links.resolve_rendered_link(note, link)
}

/// Maximum length of an address that is shown before another program opens it, in characters.
pub const MAX_SHOWN_ADDRESS_CHARS: usize = 200;

/// Where a link leads that names no file of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideLink {
    /// To a web page, or a message to an email address.
    Web,
    /// To whatever the system does with such an address: it can start programs and open files on other machines.
    Program,
}

/// Returns where a link leads if it names no file of the volume.
pub fn outside_link(link: &str) -> Option<OutsideLink> {
    let begins = |start: &str| link.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    match ["https://", "http://", "mailto:"].into_iter().any(begins) {
        true => Some(OutsideLink::Web),
        false => link.contains("://").then_some(OutsideLink::Program),
    }
}

/// Returns whether a link names a file of its volume rather than a web page, a tag or a run.
fn names_file(session: &Session, link: &str) -> bool {
    let path = link.split_once('#').map_or(link, |(path, _)| path);
    !path.is_empty()
        && outside_link(link).is_none()
        && !link.starts_with(editor::render::embeds::TAG)
        && session.agents().find_by_address(path).is_none()
}

/// Cache of a note's unresolved links.
#[derive(Default)]
pub struct UnresolvedLinks {
    /// The note, its revision, and the revisions of its volume's files and links that the cache is valid for.
    stamp: Option<(DocId, u64, u64, u64)>,
    known: HashMap<String, bool>,
}

impl UnresolvedLinks {
    /// Returns whether a link of the note names a file that doesn't exist.
    pub fn contains(&mut self, session: &Session, note: DocId, link: &str) -> bool {
        let volume = session.locate_file(note).and_then(|(volume, _)| session.volume(volume));
        // Before the first scan, files may still be unknown.
        let Some(volume) = volume.filter(|volume| volume.scans > 0) else { return false };
        let revision = session.note(note).map_or(0, engine::Note::revision);
        let stamp = Some((note, revision, volume.revision, volume.scans));
        if self.stamp != stamp {
            self.stamp = stamp;
            self.known.clear();
        }
        if let Some(known) = self.known.get(link) {
            return *known;
        }
        let unresolved = names_file(session, link) && link_target(session, note, link).is_none();
        self.known.insert(link.to_owned(), unresolved);
        unresolved
    }
}

/// Returns where a heading, or with a leading `^` a block, starts.
pub fn heading_offset(outline: &Outline, part: &str) -> Option<usize> {
    if let Some(block) = part.strip_prefix('^') {
        return outline.blocks.iter().find(|(id, _)| id.eq_ignore_ascii_case(block)).map(|(_, at)| *at);
    }
    let headings: Vec<(u8, &str)> =
        outline.headings.iter().map(|heading| (heading.level, heading.text.as_str())).collect();
    let found = markdown::find_heading(&headings, part)?;
    outline.headings.get(found).map(|heading| heading.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_note_are_found() {
        let outline = Outline::of("# One\n\n## Two & `x` three\n\ntext ^id-1\n");
        assert_eq!(heading_offset(&outline, "One"), Some(0));
        assert_eq!(heading_offset(&outline, "One#Two & x three"), Some(7));
        assert_eq!(heading_offset(&outline, "two--x-three"), Some(7));
        assert_eq!(heading_offset(&outline, "^id-1"), Some(27));
        assert_eq!((heading_offset(&outline, ""), heading_offset(&outline, "no")), (None, None));
        let outline = Outline::of("# A\n## Use\n# B\n## Use\n");
        assert_eq!((heading_offset(&outline, "B#Use"), heading_offset(&outline, "use-1")), (Some(15), Some(15)));
    }
}
