//! Layout of Markdown tables as a grid: column widths, hairlines between rows, alignment. No vertical lines, no frame.

use super::render::{InlineText, TextStyleContext};
use super::row_layout::RowPart;
use eframe::egui;
use egui::{CornerRadius, Galley, Rect, pos2, vec2};
use pulldown_cmark::Alignment;
use std::sync::Arc;
use ui::theme::{self, space};

/// Space to the left and right of a cell's text, in points.
const TABLE_CELL_PADDING: f32 = space::M;
/// Minimum width to which a column is squeezed, in points.
const MIN_TABLE_COLUMN_WIDTH: f32 = 64.0;

/// A table that is being built; the first row is its header.
pub(crate) struct TableRenderer {
    columns: Vec<Alignment>,
    pub(crate) rows: Vec<Vec<InlineText>>,
}

impl TableRenderer {
    pub(crate) fn new(columns: Vec<Alignment>) -> TableRenderer {
        TableRenderer { columns, rows: Vec::new() }
    }

    /// Lays out the grid at a position. Returns its height and its text.
    pub(crate) fn layout_grid(
        mut self,
        parts: &mut Vec<RowPart>,
        x: f32,
        y: f32,
        width: f32,
        wide: f32,
        pen: TextStyleContext<'_>,
    ) -> (f32, String) {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        if count == 0 {
            return (0.0, String::new());
        }
        for cell in self.rows.iter_mut().flatten().filter(|cell| cell.is_numeric()) {
            for section in &mut cell.job.sections {
                section.format.font_id = theme::tabular_font(section.format.font_id.size);
            }
        }
        let mut natural = vec![0.0_f32; count];
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let mut job = cell.job.clone();
                job.wrap.max_width = f32::INFINITY;
                natural[column] = natural[column].max(pen.galley(job).size().x.ceil() + 2.0 * TABLE_CELL_PADDING);
            }
        }
        let room = if x > 0.0 { width - x } else { wide };
        let widths = shares(&natural, room.max(MIN_TABLE_COLUMN_WIDTH));
        let total: f32 = widths.iter().sum();
        // A table wider than the column extends beyond it on both sides.
        let left = if total > width - x && x == 0.0 { (width - total) / 2.0 } else { x - TABLE_CELL_PADDING };
        let (mut top, mut words) = (y, String::new());
        let lines = self.rows.len();
        for (index, row) in self.rows.into_iter().enumerate() {
            let mut laid: Vec<(Arc<Galley>, InlineText, f32, f32)> = Vec::new();
            let mut at = left;
            for (column, mut cell) in row.into_iter().enumerate() {
                let inner = widths[column] - 2.0 * TABLE_CELL_PADDING;
                words.push_str(&cell.words());
                let mut job = std::mem::take(&mut cell.job);
                words.push(if column + 1 == count { '\n' } else { '\t' });
                job.wrap.max_width = inner.max(24.0);
                let galley = pen.galley(job);
                let free = (inner - galley.size().x).max(0.0);
                let shift = match self.columns.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => (free / 2.0).round(),
                    Some(Alignment::Left | Alignment::None) | None => 0.0,
                };
                laid.push((galley, cell, at + TABLE_CELL_PADDING + shift, widths[column]));
                at += widths[column];
            }
            let height = laid.iter().map(|(galley, ..)| galley.size().y).fold(20.0, f32::max) + space::M;
            for (galley, cell, at, _) in laid {
                let at = vec2(at, top + space::M / 2.0);
                parts.extend(cell.grounds(&galley, at));
                parts.push(RowPart::Text { at, galley, map: cell.map, links: cell.links });
            }
            top += height;
            if index + 1 < lines {
                let strong = index == 0;
                let line = Rect::from_min_size(
                    pos2(left + TABLE_CELL_PADDING, top),
                    vec2(total - 2.0 * TABLE_CELL_PADDING, 1.0),
                );
                let colour = if strong { pen.colours.muted.gamma_multiply(0.6) } else { pen.colours.line };
                parts.push(RowPart::Fill { rect: line, colour, corner: CornerRadius::ZERO });
                top += 1.0;
            }
        }
        (top - y, words)
    }
}

/// Returns column widths: natural widths, or if there's too little room, wide columns share what narrow ones leave.
fn shares(natural: &[f32], room: f32) -> Vec<f32> {
    if natural.iter().sum::<f32>() <= room {
        return natural.to_vec();
    }
    let mut order: Vec<usize> = (0..natural.len()).collect();
    order.sort_by(|a, b| natural[*a].total_cmp(&natural[*b]));
    let (mut left, mut widths) = (room, vec![0.0; natural.len()]);
    for (done, column) in order.iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "a table has few columns")]
        let fair = left / (natural.len() - done) as f32;
        widths[*column] = natural[*column].min(fair.max(MIN_TABLE_COLUMN_WIDTH));
        left -= widths[*column];
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn wide_columns_give_way() {
        assert_eq!(shares(&[100.0, 50.0], 200.0), [100.0, 50.0]);
        assert_eq!(shares(&[400.0, 80.0, 300.0], 480.0), [200.0, 80.0, 200.0]);
    }
}
