//! Converts HTML from the clipboard to Markdown, as browsers, Google Docs, Word and others write it.
//!
//! The HTML isn't trusted: scripts, forms and unknown URL schemes are dropped. HTML that's too large or too deep is
//! pasted as plain text.

use htmd::options::{BrStyle, BulletListMarker, Options};
use htmd::{Element, HtmlToMarkdown, element_handler::Handlers};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum length of pasted HTML in bytes; longer HTML is pasted as plain text.
const MAX_PASTED_BYTES: usize = 2 << 20;
/// Maximum nesting depth of pasted HTML, because the parser is recursive. Deeper HTML is pasted as plain text.
const MAX_PASTED_DEPTH: usize = 150;
/// Maximum product of element count and depth: for some HTML, a parser reopens all unclosed elements again and again.
const MAX_PASTED_WORK: usize = 4_000_000;

/// Maximum number of rows or columns that a cell spans.
const MAX_CELL_SPAN: usize = 500;
/// Spans of cells beyond this column are ignored.
const MAX_SPANNED_COLUMNS: usize = 500;
/// Maximum number of empty cells that are added for spans. With more of them, spans are ignored.
const MAX_FILLED_CELLS: usize = 20_000;

/// Elements that are dropped with their contents.
const DROPPED_ELEMENTS: &[&str] = &[
    "script", "style", "title", "meta", "link", "noscript", "template", "iframe", "object", "embed", "svg", "canvas",
    "form", "input", "select", "button", "textarea", "audio", "video", "head", "xml",
];
/// Elements that carry more information than plain text.
const MEANINGFUL_ELEMENTS: &[&str] = &[
    "a",
    "b",
    "strong",
    "i",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "table",
    "pre",
    "code",
    "blockquote",
    "img",
    "hr",
    "del",
    "s",
    "strike",
    "mark",
    "sup",
    "sub",
];

/// Converts HTML to Markdown. Returns `None` if plain text says as much, or the HTML is too large.
///
/// Takes up to a second for large HTML.
pub fn html_to_markdown(html: &str) -> Option<String> {
    pasted_markdown(html, false)
}

/// Converts HTML that has no plain text beside it to Markdown. Returns `None` if it has no text or is too large.
pub fn lone_html_to_markdown(html: &str) -> Option<String> {
    pasted_markdown(html, true)
}

fn pasted_markdown(html: &str, lone: bool) -> Option<String> {
    if html.len() > MAX_PASTED_BYTES {
        return None;
    }
    let html = copied_fragment(html);
    let (depth, tags, says) = measure_html(html);
    if depth > MAX_PASTED_DEPTH || depth.saturating_mul(tags) > MAX_PASTED_WORK || (!lone && (!says || is_code(html))) {
        return None;
    }
    let html = regular_tables(html);
    let made = catch_unwind(AssertUnwindSafe(|| markdown_converter().convert(&html).ok())).ok()??;
    let text = tidy_markdown(&made);
    (!text.is_empty()).then_some(text)
}

/// Returns the copied fragment, without the wrapper that programs add.
fn copied_fragment(html: &str) -> &str {
    let start = html.find("<!--StartFragment").and_then(|at| html[at..].find("-->").map(|end| at + end + 3));
    let html = start.map_or(html, |start| &html[start..]);
    let html = html.find("<!--EndFragment").map_or(html, |end| &html[..end]);
    // Windows adds header lines such as `Version:0.9`.
    if html.starts_with("Version:") { html.find('<').map_or("", |at| &html[at..]) } else { html }
}

/// Returns the maximum nesting depth, the number of tags, and whether any carries more than its text.
fn measure_html(html: &str) -> (usize, usize, bool) {
    // Elements that end where the next one starts.
    const UNCLOSED_ELEMENTS: &[&str] =
        &["p", "li", "td", "th", "tr", "dt", "dd", "option", "br", "hr", "img", "meta", "link", "input", "col"];
    let (mut depth, mut most, mut tags, mut says) = (0_usize, 0, 0, false);
    for part in html.split('<').skip(1) {
        let (closes, part) = part.strip_prefix('/').map_or((false, part), |part| (true, part));
        let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        let name = part[..end].to_ascii_lowercase();
        if name.is_empty() {
            continue;
        }
        tags += 1;
        says |= MEANINGFUL_ELEMENTS.contains(&name.as_str()) || (name == "span" && has_style_marks(part).is_some());
        if UNCLOSED_ELEMENTS.contains(&name.as_str()) {
            continue;
        }
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        most = most.max(depth);
    }
    (most, tags, says)
}

/// A table row during the scan of its HTML.
#[derive(Default)]
struct OpenRow {
    /// Byte offsets of the `h` in `<th>` and `</th>`.
    headers: Vec<usize>,
    has_cells: bool,
    /// Byte offsets at which empty cells are inserted, and their numbers.
    gaps: Vec<(usize, usize)>,
    /// Number of columns so far.
    columns: usize,
    /// Number of empty cells after the last cell, because it spans columns.
    owed: usize,
}

/// A table during the scan of its HTML.
#[derive(Default)]
struct OpenTable {
    row: OpenRow,
    /// For each column, the number of following rows that a cell above still covers.
    covered: Vec<usize>,
}

impl OpenTable {
    fn start_cell(&mut self, at: usize, [rows, columns]: [usize; 2]) {
        let row = &mut self.row;
        let mut gap = std::mem::take(&mut row.owed);
        while let Some(left) = self.covered.get_mut(row.columns).filter(|left| **left > 0) {
            *left -= 1;
            row.columns += 1;
            gap += 1;
        }
        if gap > 0 {
            row.gaps.push((at, gap));
        }
        // The number of columns with spans is bounded, because each row visits them.
        let columns = if row.columns < MAX_SPANNED_COLUMNS { columns } else { 1 };
        let end = row.columns + columns;
        if end > MAX_SPANNED_COLUMNS + MAX_CELL_SPAN {
            row.columns = end;
            return;
        }
        if self.covered.len() < end {
            self.covered.resize(end, 0);
        }
        self.covered[row.columns..end].fill(rows - 1);
        row.columns = end;
        row.owed = columns - 1;
    }

    /// Ends the row. Collects the offsets of headers to rename and of empty cells to insert.
    fn end_row(&mut self, at: usize, headers: &mut Vec<usize>, gaps: &mut Vec<(usize, usize, bool)>) {
        let mut row = std::mem::take(&mut self.row);
        if row.columns == 0 {
            return;
        }
        let mut gap = row.owed;
        for left in self.covered.iter_mut().skip(row.columns).filter(|left| **left > 0) {
            *left -= 1;
            gap += 1;
        }
        if gap > 0 {
            row.gaps.push((at, gap));
        }
        gaps.extend(row.gaps.into_iter().map(|(at, count)| (at, count, row.has_cells)));
        if row.has_cells {
            headers.extend(row.headers);
        }
    }
}

/// Returns the number of rows and columns that a cell's tag spans: 1 to [`MAX_CELL_SPAN`].
fn cell_spans(tag: &str) -> [usize; 2] {
    let tag = &tag[..tag.find('>').unwrap_or(tag.len())];
    let tag = tag[..tag.floor_char_boundary(2_000)].to_ascii_lowercase();
    ["rowspan", "colspan"].map(|name| {
        let value = tag.split_once(name).map_or("", |(_, value)| value.trim_start());
        let value = value.strip_prefix('=').map_or("", |value| value.trim_start().trim_start_matches(['"', '\'']));
        let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
        value[..digits].parse().unwrap_or(1).clamp(1, MAX_CELL_SPAN)
    })
}

/// Gives each table row one cell per column, all of one kind. The converter reads either `<td>` or `<th>` from a row
/// and ignores spans, so columns would shift. A row with both kinds, such as one of a data frame, gets `<td>` for
/// `<th>`. Empty cells fill what a cell spans.
fn regular_tables(html: &str) -> Cow<'_, str> {
    let (mut headers, mut gaps) = (Vec::new(), Vec::new());
    // The stack of open tables, because a cell may contain a table.
    let mut tables = vec![OpenTable::default()];
    for (at, _) in html.match_indices('<') {
        let tag = &html[at + 1..];
        let (closes, name) = tag.strip_prefix('/').map_or((false, tag), |name| (true, name));
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        let Some(table) = tables.last_mut() else { break };
        let name = name[..end].to_ascii_lowercase();
        if !closes && (name == "th" || name == "td") {
            table.start_cell(at, cell_spans(tag));
        }
        match name.as_str() {
            "th" => table.row.headers.push(at + usize::from(closes) + 2),
            "td" => table.row.has_cells = true,
            "tr" => table.end_row(at, &mut headers, &mut gaps),
            "table" if !closes => tables.push(OpenTable::default()),
            "table" => {
                table.end_row(at, &mut headers, &mut gaps);
                if tables.len() > 1 {
                    tables.pop();
                }
            }
            _ => {}
        }
    }
    for table in &mut tables {
        table.end_row(html.len(), &mut headers, &mut gaps);
    }
    let is_too_much = gaps.iter().map(|(_, count, _)| count).sum::<usize>() > MAX_FILLED_CELLS;
    if is_too_much {
        gaps.clear();
    }
    let mut edits: Vec<(usize, usize, Cow<'_, str>)> =
        headers.into_iter().map(|at| (at, 1, Cow::Borrowed("d"))).collect();
    edits.extend(gaps.into_iter().map(|(at, count, has_cells)| {
        let cell = if has_cells { "<td></td>" } else { "<th></th>" };
        (at, 0, Cow::Owned(cell.repeat(count)))
    }));
    if edits.is_empty() {
        return Cow::Borrowed(html);
    }
    edits.sort_by_key(|(at, ..)| *at);
    let mut text = String::with_capacity(html.len());
    let mut copied = 0;
    for (at, replaced, by) in edits {
        text.push_str(&html[copied..at]);
        text.push_str(&by);
        copied = at + replaced;
    }
    text.push_str(&html[copied..]);
    Cow::Owned(text)
}

/// Returns whether the HTML is syntax-colored code from an editor, for which plain text is better.
fn is_code(html: &str) -> bool {
    let head = &html[..html.floor_char_boundary(600)].to_ascii_lowercase();
    head.contains("white-space: pre") && head.contains("monospace") && !head.contains("<pre") && !head.contains("<code")
}

fn markdown_converter() -> HtmlToMarkdown {
    let options = Options {
        br_style: BrStyle::Backslash,
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    HtmlToMarkdown::builder()
        .options(options)
        .skip_tags(DROPPED_ELEMENTS.to_vec())
        .add_handler(vec!["b", "strong"], |handlers: &dyn Handlers, element: Element| {
            // Google Docs wraps everything in a `<b>` that isn't bold.
            let plain = attribute(&element, "style").is_some_and(|style| bold_style(&style) == Some(false));
            let inner = handlers.walk_children(element.node).content;
            Some(if plain { inner } else { surround_words(&inner, "**") }.into())
        })
        .add_handler(vec!["span"], |handlers: &dyn Handlers, element: Element| {
            let inner = handlers.walk_children(element.node).content;
            let style = attribute(&element, "style").unwrap_or_default();
            let mut text = inner;
            for mark in style_marks(&style) {
                text = surround_words(&text, mark);
            }
            Some(text.into())
        })
        .add_handler(vec!["del", "s", "strike"], |handlers: &dyn Handlers, element: Element| {
            Some(surround_words(&handlers.walk_children(element.node).content, "~~").into())
        })
        .add_handler(vec!["hr"], |_: &dyn Handlers, _: Element| Some("\n\n---\n\n".into()))
        .add_handler(vec!["mark"], |handlers: &dyn Handlers, element: Element| {
            Some(surround_words(&handlers.walk_children(element.node).content, "==").into())
        })
        .add_handler(vec!["a"], |handlers: &dyn Handlers, element: Element| {
            let inner = handlers.walk_children(element.node).content;
            let words = inner.split_whitespace().collect::<Vec<_>>().join(" ");
            let target = attribute(&element, "href").filter(|target| is_kept_link(target));
            Some(match target {
                Some(target) if !words.is_empty() => format!("[{words}]({})", escape_url(&target)).into(),
                _ => inner.into(),
            })
        })
        .add_handler(vec!["img"], |_: &dyn Handlers, element: Element| {
            let target =
                attribute(&element, "src").filter(|target| is_kept_link(target) && !target.starts_with("mailto"));
            let alt = attribute(&element, "alt").unwrap_or_default().replace(['[', ']', '\n'], " ");
            let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(match target {
                Some(target) => format!("![{alt}]({})", escape_url(&target)).into(),
                None => alt.into(),
            })
        })
        .add_handler(vec!["p"], |handlers: &dyn Handlers, element: Element| {
            let inner = handlers.walk_children(element.node).content;
            let words = inner.trim();
            // Word's list items are paragraphs that start with a marker.
            if attribute(&element, "class").is_some_and(|class| class.contains("MsoList")) {
                return Some(word_list_item(words).into());
            }
            Some(if words.is_empty() { String::new() } else { format!("\n\n{words}\n\n") }.into())
        })
        .build()
}

fn attribute(element: &Element<'_>, name: &str) -> Option<String> {
    element.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| attribute.value.to_string())
}

/// Returns whether a style makes text bold; `None` if it doesn't say.
fn bold_style(style: &str) -> Option<bool> {
    let value = style_value(style, "font-weight")?;
    match value.as_str() {
        "bold" | "bolder" => Some(true),
        "normal" | "lighter" => Some(false),
        number => number.parse::<u32>().ok().map(|number| number >= 600),
    }
}

/// Returns the value of a style property in lowercase.
fn style_value(style: &str, name: &str) -> Option<String> {
    let mut parts = style.split(';').filter_map(|part| part.split_once(':'));
    parts.find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_ascii_lowercase())
}

/// Returns the Markdown marks that a style stands for.
fn style_marks(style: &str) -> Vec<&'static str> {
    let mut marks = Vec::new();
    if style_value(style, "text-decoration")
        .or_else(|| style_value(style, "text-decoration-line"))
        .is_some_and(|v| v.contains("line-through"))
    {
        marks.push("~~");
    }
    if style_value(style, "font-style").is_some_and(|style| style == "italic") {
        marks.push("*");
    }
    if bold_style(style) == Some(true) {
        marks.push("**");
    }
    marks
}

/// Returns `Some` if a tag's style stands for Markdown marks.
fn has_style_marks(tag: &str) -> Option<()> {
    let tag = tag.split('>').next()?;
    let style = tag.split("style=").nth(1)?;
    let quote = style.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let style = style[1..].split(quote).next()?;
    (!style_marks(style).is_empty()).then_some(())
}

/// Surrounds the text with marks, leaving spaces at its ends outside.
fn surround_words(text: &str, mark: &str) -> String {
    let words = text.trim();
    if words.is_empty() || words.contains("\n\n") {
        return text.to_owned();
    }
    let start = &text[..text.len() - text.trim_start().len()];
    let end = &text[text.trim_end().len()..];
    format!("{start}{mark}{words}{mark}{end}")
}

/// Returns whether a link's scheme is allowed: web and email addresses.
fn is_kept_link(target: &str) -> bool {
    let target = target.trim().to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

fn escape_url(target: &str) -> String {
    let target = target.trim();
    let mut out = String::with_capacity(target.len());
    for letter in target.chars() {
        match letter {
            ' ' | '\n' | '\t' | '\r' => out.push_str("%20"),
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

/// Converts an item of a Word list to Markdown.
fn word_list_item(words: &str) -> String {
    let signs = ['·', '•', '§', '\u{f0b7}', '\u{a7}'];
    let plain = words.trim_start_matches('\\');
    if let Some(rest) = plain.strip_prefix(signs).or_else(|| plain.strip_prefix("o\u{a0}")) {
        return format!("\n- {}\n", rest.trim_matches(|c: char| c.is_whitespace() || c == '\u{a0}'));
    }
    let digits = plain.bytes().take_while(u8::is_ascii_digit).count();
    let rest = plain[digits..].trim_start_matches('\\');
    match rest.strip_prefix(['.', ')']) {
        Some(rest) if digits > 0 => {
            format!("\n{}. {}\n", &plain[..digits], rest.trim_matches(|c: char| c.is_whitespace() || c == '\u{a0}'))
        }
        _ => format!("\n\n{words}\n\n"),
    }
}

/// Normalizes Markdown: at most one empty line in a row, and no trailing spaces.
fn tidy_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut blank, mut fence) = (0, false);
    for line in text.replace('\u{a0}', " ").lines() {
        let line = line.trim_end();
        if line.trim_start().starts_with("```") {
            fence = !fence;
        }
        if line.is_empty() && !fence {
            blank += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if blank > 0 { "\n\n" } else { "\n" });
        }
        blank = 0;
        out.push_str(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, markdown: &str) {
        assert_eq!(html_to_markdown(html).as_deref(), Some(markdown), "{html}");
    }

    #[test]
    fn what_browsers_copy() {
        check(
            "<meta charset='utf-8'><h2>Rain</h2><p>It <strong>falls</strong> on <a \
             href=\"https://example.org/a b\">the roof</a>.</p><ul><li>one</li><li>two<ul><li>inside</li>\
             </ul></li></ul><ol><li>first</li><li>second</li></ol>",
            "## Rain\n\nIt **falls** on [the roof](https://example.org/a%20b).\n\n- one\n- two\n  - \
             inside\n\n1. first\n2. second",
        );
        check(
            "<html><body>\n<!--StartFragment--><table><thead><tr><th>Month</th><th>Rain</th></tr></thead><tbody><tr>\
             <td>May</td><td>42</td></tr></tbody></table><!--EndFragment-->\n</body></html>",
            "| Month | Rain |\n| ----- | ---- |\n| May   | 42   |",
        );
        // The index of a data frame, as pandas writes it.
        check(
            "<table border=\"1\" class=\"dataframe\"><thead><tr style=\"text-align: right;\"><th></th><th>a</th>\
             <th>b</th></tr></thead><tbody><tr><th>x</th><td>1</td><td>é</td></tr><tr><TH>y</TH><td>3</td><td>4</td>\
             </tr></tbody></table>",
            "|   | a | b |\n| - | - | - |\n| x | 1 | é |\n| y | 3 | 4 |",
        );
        // An index of two levels, as pandas writes it, under a title over two columns.
        check(
            "<table><tr><th></th><th></th><th colspan=\"2\">a</th></tr><tr><th rowspan=\"2\" valign=\"top\">x</th>\
             <th>1</th><td>2</td><td>3</td></tr><tr><th>4</th><td>5</td><td rowspan='2'>6</td></tr><tr><th>y</th>\
             <th>7</th><td>8</td></tr></table>",
            "|   |   | a |   |\n| - | - | - | - |\n| x | 1 | 2 | 3 |\n|   | 4 | 5 | 6 |\n| y | 7 | 8 |   |",
        );
        check(
            "<pre><code class=\"language-rust\">fn main() {\n    x();\n}</code></pre>",
            "```rust\nfn main() {\n    x();\n}\n```",
        );
        check("<blockquote><p>a <em>b</em> <code>c</code></p></blockquote>", "> a *b* `c`");
        check(
            "<p>a <img src=\"https://example.org/x.png\" alt=\"A [cat]\"> b</p>",
            "a ![A cat](https://example.org/x.png) b",
        );
        check("<p>a<br>b <del>c</del> <mark>d</mark></p><hr><p>e</p>", "a\\\nb ~~c~~ ==d==\n\n---\n\ne");
    }

    #[test]
    fn what_google_docs_copies() {
        check(
            "<meta charset='utf-8'><meta charset=\"utf-8\"><b style=\"font-weight:normal;\" \
             id=\"docs-internal-guid-1\"><p dir=\"ltr\"><span style=\"font-size:11pt;font-weight:400;\">Plain, \
             </span><span style=\"font-weight:700;\">bold</span><span style=\"font-style:italic;\"> and \
             italic</span></p><ul><li dir=\"ltr\"><p dir=\"ltr\"><span \
             style=\"font-weight:400\">item</span></p></li></ul></b>",
            "Plain, **bold** *and italic*\n\n- item",
        );
    }

    #[test]
    fn what_word_copies() {
        check(
            "Version:0.9\r\nStartHTML:1\r\n<html xmlns:o=\"urn:x\"><body><!--StartFragment--><p class=MsoNormal>Some \
             <b>bold</b> words.<o:p></o:p></p><p class=MsoListParagraphCxSpFirst><![if !supportLists]><span>·<span>\
             &nbsp;&nbsp; </span></span><![endif]>one</p><p class=MsoListParagraphCxSpLast><span>·<span>&nbsp; </span>\
             </span>two</p><!--EndFragment--></body></html>",
            "Some **bold** words.\n\n- one\n\n- two",
        );
    }

    #[test]
    fn nothing_that_acts_comes_through() {
        let evil = "<h1>A</h1><script>alert(1)</script><style>x</style><a href=\"javascript:alert(1)\">b</a><img \
                    src=\"data:image/png;base64,AAAA\" alt=\"c\"><img src=x onerror=alert(1)><iframe \
                    src=\"https://evil\"></iframe><form><input value=d></form><a href=\" JavaScript:x\">e</a>";
        let text = html_to_markdown(evil).expect("some text");
        for part in ["alert", "javascript", "JavaScript", "data:", "evil", "onerror", "<"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("# A") && text.contains('b') && text.contains('c'), "{text}");
    }

    #[test]
    fn tables_that_span_too_much_are_read_in_time() {
        let wide = "<td rowspan=999999999999 colspan=500>x</td>".repeat(20);
        let rows = "<tr><td>y".repeat(20_000);
        assert!(regular_tables(&format!("<table><tr>{wide}</tr>{rows}</table>").repeat(4)).len() < 4 << 20);
        let long = format!("<table><tr>{}</table>", "<td rowspan=3>".repeat(100_000));
        assert!(regular_tables(&long).len() <= long.len() + (MAX_FILLED_CELLS + 1) * 9);
    }

    #[test]
    fn plain_text_is_left_alone() {
        assert_eq!(html_to_markdown("<meta charset='utf-8'><span>words</span>"), None);
        assert_eq!(html_to_markdown("words"), None);
        assert_eq!(html_to_markdown(""), None);
        assert_eq!(lone_html_to_markdown("<meta charset='utf-8'><span>words</span>").as_deref(), Some("words"));
        assert_eq!(lone_html_to_markdown("<meta charset='utf-8'><script>1</script>"), None);
        let code = "<meta charset='utf-8'><div style=\"font-family: 'Fira Code', monospace;white-space: pre;\">\
                    <div><span style=\"font-weight: bold\">fn</span> x()</div></div>";
        assert_eq!(html_to_markdown(code), None, "code of an editor");
    }

    #[test]
    fn hostile_html_is_refused_or_done_quickly() {
        let start = std::time::Instant::now();
        for deep in
            ["<div>", "<b>", "<ul><li>", "<blockquote>", "<table><tr><td>", "<font color=1>", "<a href=x>", "<span>"]
        {
            assert_eq!(html_to_markdown(&format!("<b>x</b>{}", deep.repeat(100_000))), None, "{deep}");
            let _ = html_to_markdown(&format!("<b>x</b>{}", deep.repeat(60)));
        }
        assert_eq!(html_to_markdown(&"<p><b>x</b></p>".repeat(1_000_000)), None, "15 MB");
        let _ = html_to_markdown(&"<b a=1><p>".repeat(140));
        let parts = [
            "<p>", "<b>", "</b>", "</p>", "<ul>", "<li>", "</ul>", "x", "é", "&amp;", "&#0;", "<!--", "-->", "<table>",
            "<td>", "\"", "<a href=", ">",
        ];
        let mut seed = 9_u64;
        for _ in 0..1_000 {
            let mut html = String::from("<b>");
            for _ in 0..20 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                html.push_str(parts[(seed >> 40) as usize % parts.len()]);
            }
            let _ = html_to_markdown(&html);
        }
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}
