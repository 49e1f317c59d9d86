//! Splits HTML blocks at the tags of `<details>` and its `<summary>`.

use std::ops::Range;

/// A part of an HTML block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetailsPart {
    /// HTML outside of these tags, without the white space around it.
    Html(Range<usize>),
    /// A start tag of `<details>`, with the summary that follows it.
    Start {
        /// Whether it's shown unfolded at first.
        is_open: bool,
        /// Byte range of the summary; empty if there is none.
        summary: Range<usize>,
    },
    /// An end tag of `<details>`.
    End,
}

/// Splits an HTML block at the tags of `<details>`. Returns `None` if it has none.
pub fn details_parts(html: &str) -> Option<Vec<DetailsPart>> {
    let mut parts = Vec::new();
    let mut is_split = false;
    let (mut from, mut at) = (0, 0);
    while let Some(start) = html[at..].find('<').map(|found| at + found) {
        let rest = &html[start..];
        if rest.starts_with("<!--") {
            at = rest.find("-->").map_or(html.len(), |end| start + end + 3);
            continue;
        }
        let begins = is_html_tag(rest, "<details");
        if !begins && !is_html_tag(rest, "</details") {
            at = start + 1;
            continue;
        }
        // Without an end, neither this tag nor a later one is a tag.
        let Some(end) = rest.find('>').map(|end| start + end + 1) else { break };
        push_html(&mut parts, html, from..start);
        is_split = true;
        at = end;
        if begins {
            let is_open = has_attribute(&html[start + "<details".len()..end - 1], "open");
            let (summary, after) = summary_after(html, end);
            parts.push(DetailsPart::Start { is_open, summary });
            at = after;
        } else {
            parts.push(DetailsPart::End);
        }
        from = at;
    }
    push_html(&mut parts, html, from..html.len());
    is_split.then_some(parts)
}

/// Returns whether a text begins with a tag; `name` is the tag's start, such as `</summary`.
pub fn is_html_tag(text: &str, name: &str) -> bool {
    let Some((start, rest)) = text.split_at_checked(name.len()) else { return false };
    start.eq_ignore_ascii_case(name)
        && rest.starts_with(|next: char| matches!(next, '>' | '/') || next.is_ascii_whitespace())
}

/// Returns whether the attributes of a tag contain one with this name.
pub fn has_attribute(attributes: &str, name: &str) -> bool {
    let first = |word: &str| word.split(['=', '/']).next().is_some_and(|found| found.eq_ignore_ascii_case(name));
    attributes.split_whitespace().any(first)
}

/// Returns the range of the summary that follows a start tag, and where what is below it begins. A summary ends before
/// another `<details>`, so none is in it.
fn summary_after(html: &str, tag_end: usize) -> (Range<usize>, usize) {
    let none = (tag_end..tag_end, tag_end);
    let at = tag_end + html[tag_end..].len() - html[tag_end..].trim_start().len();
    if !is_html_tag(&html[at..], "<summary") {
        return none;
    }
    let Some(from) = html[at..].find('>').map(|end| at + end + 1) else { return none };
    let ends = ["</summary", "</details", "<details"];
    let is_end = |at: usize| ends.iter().any(|name| is_html_tag(&html[at..], name));
    let end = html[from..].match_indices('<').find(|(end, _)| is_end(from + end));
    let to = end.map_or(html.len(), |(end, _)| from + end);
    let is_whole = is_html_tag(&html[to..], "</summary");
    let after = if is_whole { html[to..].find('>').map_or(html.len(), |end| to + end + 1) } else { to };
    (trimmed(html, from..to), after)
}

fn push_html(parts: &mut Vec<DetailsPart>, html: &str, range: Range<usize>) {
    let range = trimmed(html, range);
    if !range.is_empty() {
        parts.push(DetailsPart::Html(range));
    }
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
    fn blocks_are_split_at_the_tags() {
        let split = |html: &str| -> Option<Vec<String>> {
            let parts = details_parts(html)?;
            Some(
                parts
                    .into_iter()
                    .map(|part| match part {
                        DetailsPart::Html(range) => html[range].to_owned(),
                        DetailsPart::Start { is_open, summary } => format!("{is_open}+{}", &html[summary]),
                        DetailsPart::End => "-".to_owned(),
                    })
                    .collect(),
            )
        };
        let some = |parts: &[&str]| Some(parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        assert_eq!(split("<details>\n<summary>a <b>b</b></summary>\n"), some(&["false+a <b>b</b>"]));
        assert_eq!(split("<DETAILS Open=\"\">é</details>"), some(&["true+", "é", "-"]));
        assert_eq!(
            split("x <details><summary>a</summary>b<details>c</details></details>"),
            some(&["x", "false+a", "b", "false+", "c", "-", "-"])
        );
        assert_eq!(split("<details><summary>a</details>"), some(&["false+a", "-"]));
        assert_eq!(split("<details><summary>a<details>b</details>"), some(&["false+a", "false+", "b", "-"]));
        assert_eq!(split("<details class=\"open\"><summary"), some(&["false+", "<summary"]));
        for other in ["<p>a</p>", "<detailsx>", "<details", "<!-- <details> -->", "<!-- <details>"] {
            assert_eq!(split(other), None, "{other}");
        }
        // Each of these would take quadratic time if every tag searched for its end.
        for many in ["<details ", "<details><summary>", "<!-- <details> "] {
            details_parts(&many.repeat(50_000));
        }
    }
}
