//! Where a link of a note leads: a file, and a heading in it.

use engine::Session;
use store::DocId;
use text::outline::Outline;

/// Where a link of a note leads.
pub fn link_target(session: &Session, note: DocId, link: &str) -> Option<DocId> {
    let (volume, _) = session.locate_file(note)?;
    session.volume(volume)?.links.resolve_rendered_link(note, link)
}

/// Returns where a heading, or with a leading `^` a block, starts.
pub fn heading_offset(outline: &Outline, part: &str) -> Option<usize> {
    if let Some(block) = part.strip_prefix('^') {
        return outline.blocks.iter().find(|(id, _)| id.eq_ignore_ascii_case(block)).map(|(_, at)| *at);
    }
    // `#a#b` names a heading below another: the last one counts. GitHub writes headings in small letters with `-`.
    let plain = |text: &str| -> String {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(part.rsplit('#').next().unwrap_or(part));
    let found = outline.headings.iter().find(|heading| plain(&heading.text) == wanted);
    found.filter(|_| !wanted.is_empty()).map(|heading| heading.at)
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
    }
}
