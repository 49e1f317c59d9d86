//! Finds the HTML element `<details>` in notes. The row of its start tag is shown as its summary. Folding hides the
//! rows between that row and the one of its end tag. An element without an empty line in it is a single row.

use std::ops::Range;
use text::markdown::details::{has_attribute, is_html_tag};

/// Containers of HTML around the text of an element, which aren't shown.
const CONTAINERS: &[&str] = &["p", "div", "center", "br", "blockquote"];

/// What a row begins or ends of `<details>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailsTag {
    /// Nothing, or a whole element.
    #[default]
    None,
    /// It begins an element that a later row ends.
    Start {
        /// Whether the element is shown unfolded at first.
        open: bool,
    },
    /// It ends this many elements that began in earlier rows.
    End(usize),
}

impl DetailsTag {
    /// Finds the tags of an HTML row.
    pub(crate) fn of(html: &str) -> DetailsTag {
        let count = |name| html.match_indices('<').filter(|(at, _)| is_html_tag(&html[*at..], name)).count();
        let (starts, ends) = (count("<details"), count("</details"));
        match Details::parse(html) {
            Some(details) if starts > ends => DetailsTag::Start { open: details.is_open },
            _ if ends > starts => DetailsTag::End(ends - starts),
            _ => DetailsTag::None,
        }
    }
}

/// The start tag of `<details>` and what follows it in the same row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Details {
    /// Whether it's shown unfolded at first.
    pub(crate) is_open: bool,
    /// Byte range of the summary; empty if there is none.
    pub(crate) summary: Range<usize>,
    /// Byte range of the text below the summary.
    pub(crate) body: Range<usize>,
    /// Whether the row contains the end tag, too.
    pub(crate) is_whole: bool,
}

impl Details {
    /// Parses a row that begins with `<details>`. Returns `None` if text follows its end tag.
    pub(crate) fn parse(html: &str) -> Option<Details> {
        let start = html.len() - html.trim_start().len();
        if !is_html_tag(&html[start..], "<details") {
            return None;
        }
        let end = end_of_element(&html[start..]).map(|end| start + end);
        if end.is_some_and(|end| !html[end..].trim().is_empty()) {
            return None;
        }
        let body_end = end.and_then(|end| html[..end].rfind('<')).unwrap_or(html.len());
        let tag_end = start + html[start..].find('>')? + 1;
        let is_open = has_attribute(&html[start + "<details".len()..tag_end - 1], "open");
        let (mut summary, mut body) = (tag_end..tag_end, tag_end..body_end);
        let at = trimmed(html, body.clone()).start;
        if is_html_tag(&html[at..], "<summary") {
            let from = at + html[at..].find('>')? + 1;
            let close = html[from..].match_indices("</").find(|(at, _)| is_html_tag(&html[from + at..], "</summary"));
            let to = close.map_or(html.len(), |(at, _)| from + at);
            summary = trimmed(html, from..to);
            body = html[to..].find('>').map_or(html.len(), |end| to + end + 1)..body_end;
        }
        let body = if body.start < body.end { trimmed(html, body) } else { body_end..body_end };
        Some(Details { is_open, summary, body, is_whole: end.is_some() })
    }
}

/// Splits an HTML block into ranges of whole lines: the start tag of an element with its summary, its end tag, and
/// what is between them; a whole element isn't split.
pub(crate) fn split_block(text: &str, block: Range<usize>) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let (mut from, mut at) = (block.start, block.start);
    let line_end = |at: usize| text[at..block.end].find('\n').map_or(block.end, |newline| at + newline + 1);
    while at < block.end {
        let line = text[at..line_end(at)].trim_start();
        let end = if is_html_tag(line, "<details") {
            let rest = &text[at..block.end];
            let summary_end = rest.match_indices("</").find(|(found, _)| is_html_tag(&rest[*found..], "</summary"));
            let next_start =
                rest.match_indices('<').filter(|(found, _)| is_html_tag(&rest[*found..], "<details")).nth(1);
            let own_summary =
                summary_end.filter(|(end, _)| next_start.is_none_or(|(next, _)| *end < next)).map_or(0, |(end, _)| end);
            Some(line_end(at + end_of_element(rest).map_or(own_summary, |end| end - 1)))
        } else {
            is_html_tag(line, "</details").then(|| line_end(at))
        };
        match end {
            Some(end) => {
                parts.extend((from < at).then_some(from..at));
                parts.push(at..end);
                (from, at) = (end, end);
            }
            None => at = line_end(at),
        }
    }
    parts.extend((from < block.end).then_some(from..block.end));
    parts
}

/// Returns whether a text consists only of end tags of `<details>` and tags of containers.
pub(crate) fn is_end_only(html: &str) -> bool {
    let mut rest = html.trim();
    let mut ends = false;
    while let Some(end) = rest.find('>').filter(|_| rest.starts_with('<')) {
        ends |= is_html_tag(rest, "</details");
        if !is_html_tag(rest, "</details") && !is_container(&rest[..end]) {
            return false;
        }
        rest = rest[end + 1..].trim_start();
    }
    rest.is_empty() && ends
}

/// Returns whether a text has as many start tags of `<details>` as end tags.
pub(crate) fn is_balanced(text: &str) -> bool {
    let count = |name| text.match_indices('<').filter(|(at, _)| is_html_tag(&text[*at..], name)).count();
    count("<details") == count("</details")
}

/// Returns whether a text consists only of tags of containers, or is empty.
pub(crate) fn is_containers_only(html: &str) -> bool {
    let mut rest = html.trim();
    while let Some(end) = rest.find('>').filter(|end| is_container(&rest[..*end])) {
        rest = rest[end + 1..].trim_start();
    }
    rest.is_empty()
}

/// Returns whether a tag, without its final `>`, is that of a container.
fn is_container(tag: &str) -> bool {
    let Some(inner) = tag.strip_prefix('<') else { return false };
    let name = inner.trim_start_matches('/').split(|letter: char| letter.is_whitespace() || letter == '/').next();
    name.is_some_and(|name| CONTAINERS.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// Returns the end of the element that a text begins with, after its end tag.
fn end_of_element(html: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, _) in html.match_indices('<') {
        let rest = &html[at..];
        if is_html_tag(rest, "<details") {
            depth += 1;
        } else if is_html_tag(rest, "</details") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(at + rest.find('>')? + 1);
            }
        }
    }
    None
}

/// Returns a range without the white space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_and_bodies_are_found() {
        let parsed = |html: &str| {
            let found = Details::parse(html)?;
            let part = |range: Range<usize>| html[range].to_owned();
            Some((part(found.summary), part(found.body), found.is_open, found.is_whole))
        };
        let some = |summary: &str, body: &str, open, whole| Some((summary.to_owned(), body.to_owned(), open, whole));
        assert_eq!(parsed("<details><summary>a <b>b</b></summary>"), some("a <b>b</b>", "", false, false));
        assert_eq!(parsed("<DETAILS open=\"\">\n<Summary>a</SUMMARY>\n<p>"), some("a", "<p>", true, false));
        assert_eq!(parsed("<details>\n<summary>a</summary>\nb\n</details>\n"), some("a", "b", false, true));
        assert_eq!(parsed("<details class=\"open\">b</details>"), some("", "b", false, true));
        assert_eq!(parsed("<details><summary>a</details>"), some("a</details>", "", false, true));
        assert_eq!(parsed("<details>a</details> b"), None, "text behind it would be lost");
        assert_eq!(parsed("<detailsx>a"), None);
        assert_eq!(parsed("<details"), None);
    }

    #[test]
    fn blocks_are_split_at_elements() {
        let split = |text: &str| -> Vec<(String, DetailsTag)> {
            let parts = split_block(text, 0..text.len());
            assert_eq!(parts.iter().map(|part| &text[part.clone()]).collect::<String>(), text);
            parts.into_iter().map(|part| (text[part.clone()].to_owned(), DetailsTag::of(&text[part]))).collect()
        };
        let start = DetailsTag::Start { open: false };
        assert_eq!(
            split("<p>x\n</details>\n<details>\n<summary>a</summary>\n"),
            [
                ("<p>x\n".to_owned(), DetailsTag::None),
                ("</details>\n".to_owned(), DetailsTag::End(1)),
                ("<details>\n<summary>a</summary>\n".to_owned(), start)
            ]
        );
        assert_eq!(
            split("<details>\n<details>\n<summary>é</summary>\nb"),
            [
                ("<details>\n".to_owned(), start),
                ("<details>\n<summary>é</summary>\n".to_owned(), start),
                ("b".to_owned(), DetailsTag::None)
            ]
        );
        let whole = "<details><summary>a</summary>\n<details>b</details>\n</details>\n";
        assert_eq!(split(whole), [(whole.to_owned(), DetailsTag::None)]);
        assert_eq!(split("</details></details>"), [("</details></details>".to_owned(), DetailsTag::End(2))]);
    }

    #[test]
    fn containers_are_known() {
        assert!(is_end_only("</p>\n</details>") && is_end_only("</DETAILS >"));
        assert!(!is_end_only("</p>") && !is_end_only("a</details>") && !is_end_only("</details> a"));
        assert!(is_containers_only("<p align=x>\n<br/>") && is_containers_only(""));
        assert!(!is_containers_only("<p>a") && !is_containers_only("<img src=a>"));
    }
}
