//! The variables panel: queried after each run, with sorting and a filter. A click inserts a name into the cell.

use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Rect, Sense, Ui, pos2, vec2};
use engine::commands::CommandId;
use host::{InquiryAnswer, KernelVariable};
use notebook::actions::PageAction;
use std::ops::Range;
use std::sync::mpsc::{Receiver, TryRecvError};
use store::DocId;
use ui::empty_state::show_panel_message;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name};

const VARIABLE_ROW_HEIGHT: f32 = 44.0;

/// The sort order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum VariableSort {
    /// In the order in which the cells created them.
    #[default]
    Made,
    Name,
    Type,
}

impl VariableSort {
    const ALL: [(VariableSort, &'static str); 3] =
        [(VariableSort::Made, "Made"), (VariableSort::Name, "Name"), (VariableSort::Type, "Type")];
}

/// State of the variables panel.
#[derive(Default)]
pub(crate) struct VariablesPanel {
    by: VariableSort,
    filter: String,
    /// The note and run for which they were requested.
    pub(crate) asked: Option<(DocId, u64)>,
    pub(crate) waits: Option<Receiver<InquiryAnswer>>,
    /// The note and its variables; `None` if its kernel can't list them.
    pub(crate) known: Option<(DocId, Option<Vec<KernelVariable>>)>,
    /// The last selection with its note and revision, since a click in the panel takes the caret from the note.
    pub(crate) last: Option<(DocId, u64, Range<usize>)>,
}

impl VariablesPanel {
    pub(crate) fn receive(&mut self, note: DocId) {
        let Some(waits) = &self.waits else { return };
        match waits.try_recv() {
            Ok(InquiryAnswer::Variables(rows)) => {
                self.known = Some((note, rows));
                self.waits = None;
            }
            Ok(_) | Err(TryRecvError::Disconnected) => self.waits = None,
            Err(TryRecvError::Empty) => {}
        }
    }

    /// Returns the filtered and sorted rows.
    fn rows<'a>(&self, all: &'a [KernelVariable]) -> Vec<&'a KernelVariable> {
        let query = self.filter.trim().to_lowercase();
        let fits = |row: &&KernelVariable| {
            row.name.to_lowercase().contains(&query) || row.kind.to_lowercase().contains(&query)
        };
        let mut rows: Vec<&KernelVariable> = all.iter().filter(fits).collect();
        match self.by {
            VariableSort::Made => {}
            VariableSort::Name => rows.sort_by_key(|row| row.name.to_lowercase()),
            VariableSort::Type => rows.sort_by_key(|row| (row.kind.to_lowercase(), row.name.to_lowercase())),
        }
        rows
    }

    /// Draws the list. Returns the clicked name.
    pub(crate) fn show(&mut self, ui: &mut Ui, actions: &mut Vec<PageAction>) -> Option<String> {
        let colours = ThemeColors::of(ui);
        let Some((_, known)) = self.known.clone() else {
            words(ui, "Asking the kernel…");
            return None;
        };
        let Some(all) = known else {
            words(ui, "This kernel doesn't list its variables.");
            return None;
        };
        if all.is_empty() {
            if show_panel_message(ui, "No variables yet", Some("Run the cells")) {
                actions.push(PageAction::Run(CommandId::NoteRunAll));
            }
            return None;
        }
        self.bar(ui);
        let rows = self.rows(&all);
        if rows.is_empty() {
            words(ui, "No variable has that name.");
        }
        let mut clicked = None;
        let area = egui::ScrollArea::vertical().id_salt("variables").auto_shrink(false);
        area.show_rows(ui, VARIABLE_ROW_HEIGHT, rows.len(), |ui, range| {
            ui.spacing_mut().item_spacing.y = 0.0;
            for row in rows.iter().skip(range.start).take(range.len()) {
                let (rect, response) =
                    ui.allocate_exact_size(vec2(ui.available_width(), VARIABLE_ROW_HEIGHT), Sense::click());
                let rect = rect.shrink2(vec2(space::S, 0.0));
                if response.hovered() {
                    ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.paper));
                }
                line(ui, rect, row, colours);
                paint_focus_ring(ui, &response, CONTROL_CORNER);
                let size = if row.size.is_empty() { String::new() } else { format!(", {}", row.size) };
                set_accessible_name(
                    &response,
                    Role::Button,
                    &format!("{}: {}{size} {}", row.name, row.kind, row.value),
                );
                if response.clicked() {
                    clicked = Some(row.name.clone());
                }
                response.on_hover_text("Click: at the caret in a cell, else copied");
            }
        });
        clicked
    }

    /// Draws the filter field and the sort buttons.
    fn bar(&mut self, ui: &mut Ui) {
        let colours = ThemeColors::of(ui);
        let style = theme::small();
        egui::Frame::NONE.inner_margin(egui::Margin::symmetric(16, 4)).show(ui, |ui| {
            let field = egui::TextEdit::singleline(&mut self.filter)
                .id(egui::Id::unique("variables filter"))
                .font(style.font.clone())
                .hint_text(egui::RichText::new("Filter").font(style.font.clone()).color(colours.muted))
                .margin(egui::Margin::symmetric(8, 4))
                .desired_width(f32::INFINITY);
            ui.add(field).accessible_name("Filter variables");
            ui.horizontal(|ui| {
                ui.spacing_mut().item_spacing.x = space::XS;
                for (by, name) in VariableSort::ALL {
                    let on = self.by == by;
                    let font =
                        theme::inter_font(if on { theme::InterCut::SemiBold } else { theme::InterCut::Regular }, 12.0);
                    let colour = if on { colours.ink } else { colours.muted };
                    let galley = ui.painter().layout_no_wrap(name.to_owned(), font, colour);
                    let wanted = vec2(galley.size().x + 2.0 * space::S, size::MIN_CLICK_HEIGHT);
                    let (rect, response) = ui.allocate_exact_size(wanted, Sense::click());
                    ui::widgets::paint_hover_fill(ui, &response);
                    let at = Align2::CENTER_CENTER.align_size_within_rect(galley.size(), rect).min;
                    ui.painter().galley(at, galley, colour);
                    paint_focus_ring(ui, &response, CONTROL_CORNER);
                    response.widget_info(|| {
                        egui::WidgetInfo::selected(Role::RadioButton, true, on, format!("Sort by: {name}"))
                    });
                    if response.clicked() {
                        self.by = by;
                    }
                }
            });
        });
    }
}

/// Draws a row: name and type, and the value below.
fn line(ui: &Ui, rect: Rect, row: &KernelVariable, colours: &ThemeColors) {
    let (code, caption) = (theme::code(), theme::caption());
    let left = rect.left() + space::S;
    let about = match row.size.as_str() {
        "" => row.kind.clone(),
        size => format!("{}, {size}", row.kind),
    };
    let width = rect.width() - 2.0 * space::S;
    let used = paint_clipped_text(ui, pos2(left, rect.top() + 2.0), width * 0.6, &row.name, &code, colours.ink);
    let at = pos2(left + used + space::S, rect.top() + 2.0 + (code.line - caption.line) / 2.0);
    paint_clipped_text(ui, at, width - used - space::S, &about, &caption, colours.muted);
    let at = pos2(left, rect.top() + 2.0 + code.line);
    let value = theme::TypeStyle { font: egui::FontId::new(12.0, code.font.family.clone()), line: caption.line };
    paint_clipped_text(ui, at, width, &row.value, &value, colours.muted);
}

fn words(ui: &mut Ui, text: &str) {
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
    let at = pos2(rect.left() + space::L, rect.center().y - 10.0);
    paint_clipped_text(ui, at, rect.width() - 2.0 * space::L, text, &theme::small(), colours.muted);
    set_accessible_name(&response, Role::Label, text);
}

#[cfg(test)]
mod tests {
    use super::{VariableSort, VariablesPanel};
    use host::KernelVariable;

    #[test]
    fn rows_are_sorted_and_narrowed() {
        let row = |name: &str, kind: &str| KernelVariable {
            name: name.into(),
            kind: kind.into(),
            ..KernelVariable::default()
        };
        let all = [row("total", "int"), row("Boat", "type"), row("area", "str")];
        let names = |by: VariableSort, filter: &str| {
            let variables = VariablesPanel { by, filter: filter.into(), ..VariablesPanel::default() };
            variables.rows(&all).iter().map(|row| row.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(VariableSort::Made, ""), ["total", "Boat", "area"]);
        assert_eq!(names(VariableSort::Name, ""), ["area", "Boat", "total"]);
        assert_eq!(names(VariableSort::Type, ""), ["total", "area", "Boat"]);
        assert_eq!(names(VariableSort::Name, "T"), ["area", "Boat", "total"], "a type counts, too");
        assert_eq!(names(VariableSort::Name, "boa"), ["Boat"]);
    }
}
