//! Markdown without its markup, for snippets of search results and related notes.

use super::{parse, parser_options};
use pulldown_cmark::{Event, Options, Tag, TagEnd};

/// Returns the plain text of a piece of Markdown, with a line for each paragraph, heading, item and table row. Front
/// matter, HTML tags and markers of callouts and blocks are left out; a link shows its text. Text that can't be parsed
/// within the limits is returned unchanged.
pub fn plain_text(source: &str) -> String {
    let read = parse(source, parser_options() | Options::ENABLE_WIKILINKS, |parser| {
        let (mut text, mut is_metadata) = (String::new(), false);
        for event in parser {
            match event {
                Event::Start(Tag::MetadataBlock(_)) => is_metadata = true,
                Event::End(TagEnd::MetadataBlock(_)) => is_metadata = false,
                Event::Text(part) | Event::Code(part) if !is_metadata => text.push_str(&part),
                Event::SoftBreak | Event::HardBreak => text.push('\n'),
                Event::End(
                    TagEnd::Paragraph
                    | TagEnd::Heading(_)
                    | TagEnd::Item
                    | TagEnd::CodeBlock
                    | TagEnd::TableRow
                    | TagEnd::TableHead,
                ) => text.push('\n'),
                Event::End(TagEnd::TableCell) => text.push_str("  "),
                _ => {}
            }
        }
        text
    });
    let Ok(text) = read else { return source.to_owned() };
    let lines = text.lines().map(strip_line_marks).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a line without a callout's kind (`[!note]`) at its start and a block ID (`^name`) at its end.
fn strip_line_marks(line: &str) -> &str {
    let line = line.trim();
    let line = match line.strip_prefix("[!").and_then(|rest| rest.split_once(']')) {
        Some((kind, rest)) if kind.chars().all(|c| c.is_alphanumeric() || c == '-') => {
            rest.trim_start_matches(['+', '-']).trim_start()
        }
        _ => line,
    };
    match line.rsplit_once(" ^") {
        Some((rest, name)) if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') => rest,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::plain_text;

    #[test]
    fn marks_are_left_out_and_words_stay() {
        let source =
            "---\nstatus: active\n---\n# A **bold** head\n\nSee [[Other|a link]], [[Plain]] and [text](x.md). ^ref\n";
        assert_eq!(plain_text(source), "A bold head\nSee a link, Plain and text.");
        assert_eq!(plain_text("> [!warning]- Mind the step\n> It is *high*.\n"), "Mind the step\nIt is high.");
        assert_eq!(plain_text("- [ ] one\n- [x] `two`\n"), "one\ntwo");
        assert_eq!(plain_text("| a | b |\n| - | - |\n| 1 | 2 |\n"), "a  b\n1  2");
        assert_eq!(plain_text("5 < 6 and 2^3 and a_b_c, [not a link]"), "5 < 6 and 2^3 and a_b_c, [not a link]");
        assert_eq!(plain_text(""), "");
    }
}
