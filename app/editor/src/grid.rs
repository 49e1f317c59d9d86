//! Markdown tables: positions of cells, and source with aligned columns. Works on text only; positions are bytes.

use std::ops::Range;
use unicode_width::UnicodeWidthStr;

/// Text alignment of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ColumnAlignment {
    #[default]
    None,
    Left,
    Right,
    Centre,
}

/// A parsed Markdown table.
#[derive(Debug)]
pub(crate) struct MarkdownTable {
    /// Cells by row, without the delimiter row (the second line, of dashes).
    rows: Vec<Vec<String>>,
    aligns: Vec<ColumnAlignment>,
    indent: String,
}

/// A position in a table: row (0 is the header), column, and byte offset in the cell's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TablePosition {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) offset: usize,
}

/// Returns the byte ranges of a line's cells.
fn cells(line: &str) -> Vec<Range<usize>> {
    let start = line.len() - line.trim_start().len();
    let end = line.trim_end().len();
    let (mut cells, mut from, mut escaped, mut code) = (Vec::new(), start, false, false);
    for (at, letter) in line[..end].char_indices().skip_while(|(at, _)| *at < start) {
        match letter {
            '\\' => {
                escaped = !escaped;
                continue;
            }
            '`' if !escaped => code = !code && line[at + 1..end].contains('`'),
            '|' if !escaped && !code => {
                if at > start {
                    cells.push(from..at);
                }
                from = at + 1;
            }
            _ => {}
        }
        escaped = false;
    }
    if from < end || cells.is_empty() {
        cells.push(from..end);
    }
    cells
}

fn align(cell: &str) -> ColumnAlignment {
    match (cell.starts_with(':'), cell.ends_with(':') && cell.len() > 1) {
        (true, true) => ColumnAlignment::Centre,
        (true, false) => ColumnAlignment::Left,
        (false, true) => ColumnAlignment::Right,
        (false, false) => ColumnAlignment::None,
    }
}

impl MarkdownTable {
    /// Parses a table's source.
    pub(crate) fn parse_table(text: &str) -> MarkdownTable {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut aligns = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let texts: Vec<String> = cells(line).into_iter().map(|cell| line[cell].trim().to_owned()).collect();
            if index == 1 {
                aligns = texts.iter().map(|cell| align(cell)).collect();
            } else {
                rows.push(texts);
            }
        }
        let width = rows.iter().map(Vec::len).chain([aligns.len()]).max().unwrap_or(1);
        rows.iter_mut().for_each(|row| row.resize(width, String::new()));
        aligns.resize(width, ColumnAlignment::None);
        let indent = text[..text.len() - text.trim_start_matches([' ', '\t']).len()].to_owned();
        MarkdownTable { rows, aligns, indent }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn columns(&self) -> usize {
        self.aligns.len()
    }

    /// Returns the table position of a byte of the table's source.
    pub(crate) fn position_at(&self, text: &str, at: usize) -> TablePosition {
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[..at].matches('\n').count();
        let row = line.saturating_sub(1);
        let source = text[start..].lines().next().unwrap_or("");
        let cells = cells(source);
        let here = at - start;
        let column = cells.iter().position(|cell| here <= cell.end).unwrap_or(cells.len().saturating_sub(1));
        let cell = cells.get(column).cloned().unwrap_or(0..0);
        let inner = cell.start + source[cell.clone()].len() - source[cell.clone()].trim_start().len();
        let length = source[cell].trim().len();
        let offset = if line == 1 { 0 } else { here.saturating_sub(inner).min(length) };
        TablePosition {
            row: row.min(self.rows.len().saturating_sub(1)),
            column: column.min(self.columns() - 1),
            offset,
        }
    }

    /// Inserts an empty row after a row.
    pub(crate) fn insert_row(&mut self, behind: usize) {
        let row = vec![String::new(); self.columns()];
        self.rows.insert((behind + 1).min(self.rows.len()), row);
    }

    /// Inserts an empty column after a column; `None` inserts it before the first.
    pub(crate) fn insert_column(&mut self, behind: Option<usize>) {
        let at = behind.map_or(0, |behind| (behind + 1).min(self.columns()));
        self.rows.iter_mut().for_each(|row| row.insert(at, String::new()));
        self.aligns.insert(at, ColumnAlignment::None);
    }

    pub(crate) fn remove_column(&mut self, column: usize) {
        self.rows.iter_mut().for_each(|row| _ = row.remove(column));
        self.aligns.remove(column);
    }

    /// Returns whether all cells of a row are empty.
    pub(crate) fn is_empty_row(&self, row: usize) -> bool {
        self.rows.get(row).is_some_and(|row| row.iter().all(String::is_empty))
    }

    pub(crate) fn remove_row(&mut self, row: usize) {
        self.rows.remove(row);
    }

    /// Returns the table's source with aligned columns, and the offset of a position in it.
    pub(crate) fn aligned_source(&self, place: TablePosition) -> (String, usize) {
        let widths: Vec<usize> = (0..self.columns())
            .map(|column| self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0).max(3))
            .collect();
        let (mut out, mut found) = (String::new(), 0);
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            out.push_str(&self.indent);
            out.push('|');
            for (column, cell) in row.iter().enumerate() {
                let free = widths[column] - cell.width();
                let left = match self.aligns[column] {
                    ColumnAlignment::Right => free,
                    ColumnAlignment::Centre => free / 2,
                    ColumnAlignment::None | ColumnAlignment::Left => 0,
                };
                out.push_str(&" ".repeat(left + 1));
                if (index, column) == (place.row, place.column) {
                    found = out.len() + place.offset.min(cell.len());
                }
                out.push_str(cell);
                out.push_str(&" ".repeat(free - left + 1));
                out.push('|');
            }
            if index == 0 {
                out.push('\n');
                out.push_str(&self.indent);
                out.push('|');
                for (align, width) in self.aligns.iter().zip(&widths) {
                    let (first, last) = match align {
                        ColumnAlignment::None => ('-', '-'),
                        ColumnAlignment::Left => (':', '-'),
                        ColumnAlignment::Right => ('-', ':'),
                        ColumnAlignment::Centre => (':', ':'),
                    };
                    out.push(' ');
                    out.push(first);
                    out.push_str(&"-".repeat(width - 2));
                    out.push(last);
                    out.push_str(" |");
                }
            }
        }
        (out, found)
    }

    /// Returns the length of a cell's text in bytes; 0 if there's no such cell.
    pub(crate) fn cell_len(&self, row: usize, column: usize) -> usize {
        self.rows.get(row).and_then(|row| row.get(column)).map_or(0, String::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let text = "|a|long head|\n|-|:-:|\n|日本|x \\| y|\n| 1";
        let grid = MarkdownTable::parse_table(text);
        let place = grid.position_at(text, text.find('x').unwrap_or(0));
        assert_eq!(place, TablePosition { row: 1, column: 1, offset: 0 });
        let (source, at) = grid.aligned_source(place);
        assert_eq!(source, "| a    | long head |\n| ---- | :-------: |\n| 日本 |  x \\| y   |\n| 1    |           |");
        assert_eq!(&source[at..=at], "x");
        let again = MarkdownTable::parse_table(&source);
        assert_eq!(again.aligned_source(place), (source, at), "nothing to do twice");
    }
}
