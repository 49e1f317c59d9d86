//! Collections embedded in notes: finds the embeds, and renders a view as a Markdown table.

use super::{CollectionCell, CollectionRow, CollectionTable, is_collection};
use std::ops::Range;
use text::markdown::{self, dialect};

/// Maximum number of rows in a table written as Markdown.
const MAX_WRITTEN_ROWS: usize = 5_000;

/// A collection or search that a piece of Markdown embeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddedCollection<'a> {
    /// An embedded `.base` file, as in `![[X.base#View]]`.
    File {
        /// Link target without the view name.
        target: &'a str,
        /// Name of the view; `None` for the first.
        view: Option<&'a str>,
    },
    /// A collection written inline in a fenced block.
    Text {
        /// The YAML text of the collection.
        text: &'a str,
        /// Byte offset in the Markdown piece at which `text` starts.
        at: usize,
    },
    /// A search, rather than a collection, whose hits are shown.
    Search {
        /// The search query.
        text: &'a str,
    },
}

/// Returns the collection that a piece of Markdown embeds, if the piece contains nothing else.
///
/// The piece is `![[X.base#View]]`, or a fenced block with the language `base`, or `query` for a search.
pub fn parse_embed(piece: &str) -> Option<EmbeddedCollection<'_>> {
    let piece = piece.trim_end();
    if let Some(link) = piece.trim_start_matches(' ').strip_prefix("![[") {
        let link = link.strip_suffix("]]").filter(|link| !link.contains(['[', ']', '\n']))?;
        let (target, view) = dialect::split_wiki_target(link.split('|').next().unwrap_or(link));
        return is_collection(target)
            .then_some(EmbeddedCollection::File { target, view: view.filter(|view| !view.is_empty()) });
    }
    if !piece.trim_start_matches(' ').starts_with(['`', '~']) {
        return None;
    }
    let (info, code) = markdown::parse_fenced_block(piece)?;
    if info.eq_ignore_ascii_case("query") {
        return Some(EmbeddedCollection::Search { text: &piece[code] });
    }
    info.eq_ignore_ascii_case("base").then(|| EmbeddedCollection::Text { text: &piece[code.clone()], at: code.start })
}

/// Finds the collections that a note embeds, with their byte ranges.
pub fn find_embeds(text: &str) -> Vec<(Range<usize>, EmbeddedCollection<'_>)> {
    if !text.contains("base") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (range, is_paragraph) in markdown::top_level_pieces(text) {
        let lines = if is_paragraph { split_around_embeds(&text[range.clone()]) } else { Vec::new() };
        let lines = lines.into_iter().map(|line| range.start + line.start..range.start + line.end);
        let all = lines.chain([range.clone()]);
        found.extend(all.filter_map(|range| Some((range.clone(), parse_embed(&text[range])?))));
    }
    found
}

/// Splits a paragraph so that each line that embeds a collection is its own range. Returns an empty list if none does.
pub fn split_around_embeds(paragraph: &str) -> Vec<Range<usize>> {
    if !paragraph.contains(".base") || !paragraph.contains('\n') {
        return Vec::new();
    }
    let (mut parts, mut at): (Vec<(Range<usize>, bool)>, usize) = (Vec::new(), 0);
    for line in paragraph.split_inclusive('\n') {
        let (shows, end) = (parse_embed(line).is_some(), at + line.len());
        match parts.last_mut() {
            Some((range, false)) if !shows => range.end = end,
            _ => parts.push((at..end, shows)),
        }
        at = end;
    }
    let any = parts.len() > 1 && parts.iter().any(|(_, shows)| *shows);
    if any { parts.into_iter().map(|(range, _)| range).collect() } else { Vec::new() }
}

/// Returns a note's text with each embedded collection replaced by what `written` returns; `None` keeps the embed.
pub fn replace_embeds(text: &str, mut written: impl FnMut(EmbeddedCollection<'_>) -> Option<String>) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, embed) in find_embeds(text) {
        if let Some(new) = written(embed) {
            out.push_str(&text[at..range.start]);
            // A Markdown table would absorb adjacent lines, so empty lines must separate it from the text around it.
            if !out.is_empty() && !out.ends_with("\n\n") {
                out.push('\n');
            }
            out.push_str(new.trim_end());
            at = range.start + text[range].trim_end().len();
            if !text[at..].starts_with("\n\n") {
                out.push('\n');
            }
        }
    }
    out.push_str(&text[at..]);
    out
}

impl CollectionTable {
    /// Renders the table as Markdown; each group becomes a separate table under its name.
    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        let rows = &self.rows[..self.rows.len().min(MAX_WRITTEN_ROWS)];
        if rows.is_empty() {
            return "*No note fits this view.*\n".to_owned();
        }
        if self.groups.is_empty() {
            self.push_rows(&mut out, rows);
        }
        let mut first = 0;
        for (name, count) in self.groups.iter().filter(|_| !self.columns.is_empty()) {
            let last = (first + count).min(rows.len());
            if first < last {
                let name = if name.is_empty() { "Without a value" } else { name };
                out.push_str(&format!("**{}** ({count})\n\n", escape_markdown(name)));
                self.push_rows(&mut out, &rows[first..last]);
                out.push('\n');
            }
            first = last;
        }
        let sum = |column: &super::CollectionColumn| {
            let (summary, value) = column.summary.as_ref()?;
            Some(format!(
                "{} of {}: {}",
                escape_markdown(summary),
                escape_markdown(&column.title),
                escape_markdown(value)
            ))
        };
        let sums: Vec<String> = self.columns.iter().filter_map(sum).collect();
        if !sums.is_empty() {
            out.push_str(&format!("\n*{}*\n", sums.join("; ")));
        }
        if rows.len() < self.rows.len() {
            out.push_str(&format!("\n*And {} more.*\n", self.rows.len() - rows.len()));
        }
        out
    }

    fn push_rows(&self, out: &mut String, rows: &[CollectionRow]) {
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            out.push('|');
            cells.for_each(|cell| out.push_str(&format!(" {cell} |")));
            out.push('\n');
        };
        line(&mut self.columns.iter().map(|column| escape_markdown(&column.title)));
        let right = |kind| matches!(kind, text::properties::PropertyKind::Number);
        line(&mut self.columns.iter().map(|column| if right(column.kind) { "--:" } else { "---" }.to_owned()));
        for row in rows {
            line(&mut row.cells.iter().map(cell_markdown));
        }
    }
}

/// Renders a cell's value as Markdown for a table cell.
fn cell_markdown(cell: &CollectionCell) -> String {
    match cell {
        CollectionCell::Link { words: shown, target, .. } if target.contains("://") => {
            format!("[{}](<{}>)", escape_markdown(shown), target.replace(['<', '>', '\n', '|'], ""))
        }
        CollectionCell::Link { words: shown, target, .. } => {
            let plain = |text: &str| text.replace(['[', ']', '|', '\n', '\r'], " ");
            let (shown, target) = (plain(shown), plain(target));
            let target = target.strip_suffix(".md").unwrap_or(&target);
            if shown == target { format!("[[{target}]]") } else { format!("[[{target}\\|{shown}]]") }
        }
        CollectionCell::List(items) => items.iter().map(cell_markdown).collect::<Vec<_>>().join(", "),
        other => escape_markdown(&other.to_text()),
    }
}

/// Escapes text so that it has no Markdown meaning.
fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.trim().chars() {
        match letter {
            '\n' | '\r' | '\t' => out.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '#' | '$' | '~' | '=' | '%' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_shows_a_collection_or_not() {
        let file = |target, view| Some(EmbeddedCollection::File { target, view });
        assert_eq!(parse_embed("![[A b/X.base]]\n"), file("A b/X.base", None));
        assert_eq!(parse_embed("![[X.base#Of this|words]]"), file("X.base", Some("Of this")));
        assert_eq!(parse_embed("```base\nviews:\n```\n\n"), Some(EmbeddedCollection::Text { text: "views:\n", at: 8 }));
        assert_eq!(parse_embed("```query\ntag:food\n```"), Some(EmbeddedCollection::Search { text: "tag:food\n" }));
        assert_eq!(parse_embed("~~~ BASE\n~~~"), Some(EmbeddedCollection::Text { text: "", at: 9 }));
        for other in
            ["![[X.md]]", "![[X.base]] a", "[[X.base]]", "![[X.base]]\n![[Y.base]]", "```bases\n```", "```base"]
        {
            assert_eq!(parse_embed(other), None, "{other}");
        }
    }

    #[test]
    fn they_are_found_between_paragraphs() {
        let text = "# A\n![[X.base]]\n\na ![[X.base]] b\n\n- ![[X.base]]\n\n```base\n```\nc\n";
        let found: Vec<&str> = find_embeds(text).into_iter().map(|(range, _)| text[range].trim_end()).collect();
        assert_eq!(found, ["![[X.base]]", "```base\n```"]);
        let new =
            replace_embeds(text, |embed| matches!(embed, EmbeddedCollection::Text { .. }).then(|| "T\n".to_owned()));
        assert_eq!(new, "# A\n![[X.base]]\n\na ![[X.base]] b\n\n- ![[X.base]]\n\nT\n\nc\n");
        assert_eq!(replace_embeds(text, |_| None), text);
        let lines = "a\nb\n![[X.base]]\n![[Y.base]]\nc";
        assert_eq!(split_around_embeds(lines), [0..4, 4..16, 16..28, 28..29]);
        assert!(split_around_embeds("a\nb [[X.base]]\n").is_empty() && split_around_embeds("![[X.base]]\n").is_empty());
        assert_eq!(replace_embeds(lines, |_| Some("T".to_owned())), "a\nb\n\nT\n\nT\n\nc");
    }
}
