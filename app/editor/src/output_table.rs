//! Tables in outputs. A table has up to a million rows, of which only the visible ones are drawn. Rows can be sorted by
//! column, filtered and copied; parsing, sorting and filtering run on a separate thread.

use crate::assets::{self, AssetBytes};
use crate::column_summary::ColumnSummary;
use crate::frame_rows::FrameRows;
use crate::table_data::{ColumnSort, TableData};
use anyhow::bail;
use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Align2, Context, CursorIcon, EventFilter, Id, Key, Pos2, Rect, Sense, Stroke, Ui, pos2, vec2};
use engine::KernelPhase;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use store::DocId;
use text::untrusted_text;
use ui::icons;
use ui::text::{counted, format_thousands};
use ui::theme::{self, CONTROL_CORNER, InterCut, ThemeColors, size, space};
use ui::widgets::format;
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name, word_button, word_width};

/// Height of a row, in points.
const DATA_TABLE_ROW_HEIGHT: f32 = 24.0;
/// Maximum number of rows visible at once.
const MAX_VISIBLE_TABLE_ROWS: usize = 14;
/// Maximum number of rows for which no filter field is shown.
const MAX_ROWS_WITHOUT_FILTER: usize = 8;
/// Height of the columns' summaries below their names, in points.
const SUMMARY_HEIGHT: f32 = 32.0;
/// Maximum width of a column's bars, in points.
const MAX_SUMMARY_WIDTH: f32 = 160.0;
/// Width of the scroll bars, in points.
const TABLE_SCROLL_BAR_WIDTH: f32 = 10.0;
/// Minimum width of a column in points.
const MIN_DATA_COLUMN_WIDTH: f32 = 56.0;
const MAX_DATA_COLUMN_WIDTH: f32 = 360.0;

/// Source format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableFormat {
    /// Comma-separated values.
    Csv,
    /// An `application/vnd.dataresource+json` table.
    Resource,
    /// Plain text, one row per line.
    Lines,
}

enum TableState {
    Reading(Receiver<anyhow::Result<Arc<TableData>>>),
    Ready(Arc<TableData>),
    Failed(String),
}

/// Receives a table that is being parsed, and afterwards the summaries of its columns.
type TableReading = (Receiver<anyhow::Result<Arc<TableData>>>, Receiver<Vec<ColumnSummary>>);

/// All rows of a data frame, which were fetched from its kernel.
#[derive(Clone, Debug)]
pub struct FetchedRows(Arc<TableData>);

impl FetchedRows {
    /// Returns the rows as CSV, with the names of the columns. May be long, so don't call it while drawing.
    pub fn to_csv(&self) -> String {
        self.0.all_as_csv()
    }
}

/// A table and its view state.
pub struct DataTable {
    /// Hash of the output that the table shows; a different hash means a different table.
    pub source: u64,
    form: TableFormat,
    state: TableState,
    /// Rows to show, in order; `None` shows all in their original order.
    rows: Option<Arc<[u32]>>,
    sort: ColumnSort,
    filter: String,
    /// Receives the sorted and filtered rows that are being computed.
    coming: Option<Receiver<Arc<[u32]>>>,
    copy: Option<Receiver<String>>,
    /// The columns' summaries, and the channel that they come by.
    summaries: Vec<ColumnSummary>,
    coming_summaries: Receiver<Vec<ColumnSummary>>,
    /// The data frame of which the table shows the first rows, and whether its kernel runs.
    frame: Option<FrameRows>,
    is_kernel_on: bool,
    /// Receives all rows of the frame.
    coming_rows: Option<TableReading>,
    /// First visible row; `left` is the horizontal scroll offset.
    top: f64,
    left: f32,
    /// The selected cell: row as displayed, and column.
    chosen: Option<(usize, usize)>,
    /// Where the rows were last drawn.
    area: Rect,
    /// Number of times its height changed.
    pub version: u64,
}

impl DataTable {
    /// Creates a table and starts to parse it in the background.
    pub fn new(source: u64, form: TableFormat, bytes: AssetBytes, ctx: &Context) -> DataTable {
        let handle = assets::host_handle(ctx);
        let (receive, coming_summaries) = start_reading(form, ctx, move || {
            let bytes = bytes.read(handle.as_ref())?;
            if bytes.len() > crate::table_data::MAX_TABLE_BYTES {
                bail!("the table is too large to be shown");
            }
            let text = String::from_utf8_lossy(&bytes);
            match form {
                TableFormat::Csv => TableData::parse_csv(&text),
                TableFormat::Resource => TableData::parse_data_resource(&serde_json::from_str(&text)?),
                TableFormat::Lines => TableData::lines(&typeset::ansi::strip_codes(&text)),
            }
        });
        DataTable {
            source,
            form,
            state: TableState::Reading(receive),
            rows: None,
            sort: None,
            filter: String::new(),
            coming: None,
            copy: None,
            summaries: Vec::new(),
            coming_summaries,
            frame: None,
            is_kernel_on: false,
            coming_rows: None,
            top: 0.0,
            left: 0.0,
            chosen: None,
            area: Rect::NOTHING,
            version: 0,
        }
    }

    /// Stores results that have arrived.
    pub fn poll_results(&mut self, ctx: &Context) {
        if let TableState::Reading(read) = &self.state {
            match read.try_recv() {
                Ok(Ok(data)) => (self.state, self.version) = (TableState::Ready(data), self.version + 1),
                Ok(Err(why)) => (self.state, self.version) = (TableState::Failed(why.to_string()), self.version + 1),
                Err(TryRecvError::Disconnected) => self.state = TableState::Failed("it could not be read".to_owned()),
                Err(TryRecvError::Empty) => {}
            }
        }
        self.poll_all_rows(ctx);
        if let Some(rows) = self.coming.as_ref().and_then(|coming| coming.try_recv().ok()) {
            (self.rows, self.coming, self.top) = (Some(rows), None, 0.0);
            self.chosen = self.chosen.map(|(_, column)| (0, column));
        }
        if let Ok(summaries) = self.coming_summaries.try_recv() {
            self.summaries = summaries;
        }
        if let Some(text) = self.copy.as_ref().and_then(|copy| copy.try_recv().ok()) {
            self.copy = None;
            ctx.copy_text(text);
        }
    }

    /// Shows all rows of a data frame once they're parsed.
    fn poll_all_rows(&mut self, ctx: &Context) {
        let Some((data, summaries)) = self.coming_rows.take() else { return };
        match data.try_recv() {
            Ok(Ok(data)) => {
                (self.state, self.rows, self.version) = (TableState::Ready(data), None, self.version + 1);
                (self.summaries, self.coming_summaries) = (Vec::new(), summaries);
                self.coming = None; // it's of the first rows
                if self.sort.is_some() || !self.filter.is_empty() {
                    self.look(ctx);
                }
            }
            Err(TryRecvError::Empty) => self.coming_rows = Some((data, summaries)),
            Ok(Err(_)) | Err(TryRecvError::Disconnected) => {
                if let Some(frame) = &mut self.frame {
                    frame.fail("The rows can't be shown as a table.");
                }
            }
        }
    }

    /// Says which data frame the table shows the first rows of, by its ID and number of rows in the output's metadata.
    pub fn set_frame(&mut self, frame: &str, all: usize) {
        if self.frame.as_ref().is_none_or(|known| !known.is_frame(frame)) {
            self.frame = FrameRows::new(frame, all);
        }
    }

    /// Returns whether the table shows all rows of a data frame.
    pub fn has_all_rows(&self) -> bool {
        self.coming_rows.is_none() && self.frame.as_ref().is_some_and(FrameRows::is_fetched)
    }

    /// Returns all rows of a data frame, once they were fetched.
    pub fn fetched_rows(&self) -> Option<FetchedRows> {
        self.data().filter(|_| self.has_all_rows()).cloned().map(FetchedRows)
    }

    /// Fetches rows of a data frame from the note's kernel if the user asked for all.
    pub fn fetch_rows(&mut self, ctx: &Context, driver: &mut host::Driver, note: DocId) {
        let Some(frame) = &mut self.frame else { return };
        self.is_kernel_on = driver.session().note(note).is_some_and(|note| note.kernel != KernelPhase::Off);
        if let Some(pieces) = frame.fetch(driver, note) {
            let read = move || TableData::parse_csv(&pieces.concat());
            self.coming_rows = Some(start_reading(self.form, ctx, read));
        }
    }

    fn data(&self) -> Option<&Arc<TableData>> {
        match &self.state {
            TableState::Ready(data) => Some(data),
            TableState::Reading(_) | TableState::Failed(_) => None,
        }
    }

    fn has_head(&self) -> bool {
        self.form != TableFormat::Lines
    }

    /// Returns the height of the columns' names and summaries.
    fn head_height(&self, data: &TableData) -> f32 {
        match (self.has_head(), is_summarized(data)) {
            (false, _) => 0.0,
            (true, false) => size::MIN_CLICK_HEIGHT,
            (true, true) => size::MIN_CLICK_HEIGHT + SUMMARY_HEIGHT,
        }
    }

    /// Returns the table's height, which doesn't change while it is filtered.
    #[allow(clippy::cast_precision_loss, reason = "some rows")]
    pub fn height(&self) -> f32 {
        let Some(data) = self.data() else { return DATA_TABLE_ROW_HEIGHT };
        let field = if data.rows > MAX_ROWS_WITHOUT_FILTER { size::MIN_CLICK_HEIGHT + space::S } else { 0.0 };
        field
            + self.head_height(data)
            + data.rows.min(MAX_VISIBLE_TABLE_ROWS) as f32 * DATA_TABLE_ROW_HEIGHT
            + TABLE_SCROLL_BAR_WIDTH
            + size::MIN_CLICK_HEIGHT
    }

    fn shown(&self, data: &TableData) -> usize {
        self.rows.as_ref().map_or(data.rows, |rows| rows.len())
    }

    fn row(&self, at: usize) -> usize {
        self.rows.as_ref().map_or(at, |rows| rows.get(at).map_or(usize::MAX, |row| *row as usize))
    }

    /// Starts to compute the sorted and filtered rows.
    fn look(&mut self, ctx: &Context) {
        let Some(data) = self.data().cloned() else { return };
        let (send, receive) = channel();
        let (sort, filter, wake) = (self.sort, self.filter.clone(), ctx.clone());
        std::thread::spawn(move || {
            let _ = send.send(Arc::from(data.filtered_rows(sort, &filter))); // a newer view may be wanted by now
            wake.request_repaint();
        });
        self.coming = Some(receive);
    }

    /// Starts to copy the shown rows to the clipboard.
    fn copy_rows(&mut self, ctx: &Context) {
        let Some(data) = self.data().cloned() else { return };
        let rows = self.rows.clone();
        let (send, receive) = channel();
        let wake = ctx.clone();
        std::thread::spawn(move || {
            let rows = rows.unwrap_or_else(|| data.filtered_rows(None, "").into());
            let _ = send.send(data.rows_as_tsv(&rows)); // the note may be gone
            wake.request_repaint();
        });
        self.copy = Some(receive);
    }

    /// Draws the table; `name` identifies it among the outputs.
    pub fn show(&mut self, ui: &mut Ui, id: Id, name: &str, origin: Pos2, width: f32) {
        let colours = ThemeColors::of(ui);
        let data = match &self.state {
            TableState::Ready(data) => data.clone(),
            TableState::Reading(_) => {
                paint_clipped_text(ui, origin, width, "Reading the table …", &theme::caption(), colours.muted);
                return;
            }
            TableState::Failed(why) => {
                let why = ui::text::sentence(why);
                paint_clipped_text(ui, origin, width, &why, &theme::caption(), colours.bad);
                let line = Rect::from_min_size(origin, vec2(width, theme::caption().line));
                set_accessible_name(&ui.interact(line, id.with("failure"), Sense::hover()), Role::Label, &why);
                return;
            }
        };
        let spans = spans(&data);
        let wide = spans.last().map_or(0.0, |(x, wide)| x + wide);
        let width = width.min(wide + TABLE_SCROLL_BAR_WIDTH + 2.0).max(360.0_f32.min(width));
        let mut top = origin.y;
        if data.rows > MAX_ROWS_WITHOUT_FILTER {
            self.field(
                ui,
                id,
                name,
                Rect::from_min_size(origin, vec2(width.min(size::DIALOG_WIDTH), size::MIN_CLICK_HEIGHT)),
            );
            top += size::MIN_CLICK_HEIGHT + space::S;
        }
        let head = self.head_height(&data);
        #[allow(clippy::cast_precision_loss, reason = "some rows")]
        let high = data.rows.min(MAX_VISIBLE_TABLE_ROWS) as f32 * DATA_TABLE_ROW_HEIGHT;
        let body = Rect::from_min_size(pos2(origin.x, top + head), vec2(width - TABLE_SCROLL_BAR_WIDTH, high));
        self.left = self.left.clamp(0.0, (wide - body.width()).max(0.0));
        self.body(ui, id, name, &data, body, &spans);
        if head > 0.0 {
            let head = body.with_min_y(top).with_max_y(top + size::MIN_CLICK_HEIGHT);
            self.head(ui, id, &data, head, &spans);
            self.summaries(ui, id, &data, body.with_min_y(head.bottom()).with_max_y(body.top()), &spans);
        }
        self.bars(ui, id, &data, body, wide);
        let foot = pos2(origin.x, body.bottom() + TABLE_SCROLL_BAR_WIDTH);
        let shown = format_thousands(self.shown(&data));
        let all = counted(data.rows, if self.has_head() { "row" } else { "line" });
        let words = match (&self.coming, self.rows.is_some() && self.shown(&data) != data.rows) {
            (Some(_), _) => "Looking …".to_owned(),
            (None, true) => format!("{shown} of {all}"),
            (None, false) => all,
        };
        let used = paint_clipped_text(ui, foot + vec2(0.0, 6.0), width, &words, &theme::caption(), colours.muted);
        let count = ui.interact(
            Rect::from_min_size(foot, vec2(used, size::MIN_CLICK_HEIGHT)),
            id.with("count"),
            Sense::hover(),
        );
        set_accessible_name(&count, Role::Label, &words);
        let text = if self.copy.is_some() { "Copying …" } else { "Copy" };
        let place = foot + vec2(used + space::L, 0.0);
        let button = Rect::from_min_size(place, vec2(word_width(ui, text), size::MIN_CLICK_HEIGHT));
        if word_button(ui, button, id.with("copy"), text, &format!("Copy rows of {name}")).clicked() {
            self.copy_rows(ui.ctx());
        }
        self.show_all_rows(ui, id, name, button.right_top() + vec2(space::L, 0.0));
    }

    /// Draws the button that fetches all rows of a data frame, or how far that is.
    fn show_all_rows(&mut self, ui: &mut Ui, id: Id, name: &str, at: Pos2) {
        let Some(frame) = &mut self.frame else { return };
        if let Some(text) = frame.offer().filter(|_| self.is_kernel_on) {
            let rect = Rect::from_min_size(at, vec2(word_width(ui, &text), size::MIN_CLICK_HEIGHT));
            if word_button(ui, rect, id.with("all"), &text, &format!("{text} of {name}")).clicked() {
                frame.start();
                ui.ctx().request_repaint();
            }
        }
        let parsing = self.coming_rows.is_some().then(|| "Reading the table …".to_owned());
        if let Some(words) = parsing.or_else(|| frame.message()) {
            let at = at + vec2(0.0, 6.0);
            let muted = ThemeColors::of(ui).muted;
            let used = paint_clipped_text(ui, at, size::DIALOG_WIDTH, &words, &theme::caption(), muted);
            let rect = Rect::from_min_size(at, vec2(used, DATA_TABLE_ROW_HEIGHT));
            set_accessible_name(&ui.interact(rect, id.with("all rows"), Sense::hover()), Role::Label, &words);
        }
    }

    fn field(&mut self, ui: &mut Ui, id: Id, name: &str, rect: Rect) {
        let colours = ThemeColors::of(ui);
        let style = theme::small();
        let hint = if self.has_head() { "Filter: words, column=word, column>5" } else { "Filter" };
        let edit = egui::TextEdit::singleline(&mut self.filter)
            .id(id.with("filter"))
            .hint_text(egui::RichText::new(hint).font(style.font.clone()).color(colours.muted))
            .font(style.font)
            .margin(egui::Margin::symmetric(8, 5))
            .desired_width(rect.width());
        let response = ui.put(rect, edit).accessible_name(untrusted_text::escape_line(&format!("Filter {name}")));
        if response.changed() {
            self.look(ui.ctx());
        }
    }

    /// Draws the visible rows.
    fn body(&mut self, ui: &mut Ui, id: Id, name: &str, data: &TableData, body: Rect, spans: &[(f32, f32)]) {
        let colours = ThemeColors::of(ui);
        let shown = self.shown(data);
        let grid = id.with("grid");
        let response = ui.interact(body, grid, Sense::click());
        if response.clicked() {
            response.request_focus();
            let point = response.interact_pointer_pos().unwrap_or(body.min);
            self.chosen = self.cell_at(point, body, shown, spans);
        }
        self.area = body;
        self.keys(ui, &response, data, shown, body);
        let most = most(shown, body);
        if response.has_focus() && ui.rect_contains_pointer(body) {
            // The wheel scrolls the table only after a click into it; otherwise it scrolls the page.
            let wheel = ui.input_mut(|input| std::mem::take(&mut input.smooth_scroll_delta));
            self.top -= f64::from(wheel.y / DATA_TABLE_ROW_HEIGHT);
            self.left -= wheel.x;
        }
        self.top = self.top.clamp(0.0, most);
        set_accessible_name(
            &response,
            Role::Grid,
            &format!("{name}, {} {}", data.rows, if data.rows == 1 { "row" } else { "rows" }),
        );
        let painter = ui.painter().with_clip_rect(body.intersect(ui.clip_rect()));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a row")]
        let first = self.top.floor() as usize;
        let style = theme::tabular_font(13.0);
        for at in first..shown.min(first + MAX_VISIBLE_TABLE_ROWS + 2) {
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a row in sight")]
            let y = body.top() + (at as f64 - self.top) as f32 * DATA_TABLE_ROW_HEIGHT;
            let row = self.row(at);
            let line = Rect::from_min_size(pos2(body.left(), y), vec2(body.width(), DATA_TABLE_ROW_HEIGHT));
            if ui.rect_contains_pointer(line.intersect(body)) {
                painter.rect_filled(line, 0.0, colours.hover_color(colours.paper).gamma_multiply(0.6));
            }
            for (place, (x, wide)) in spans.iter().enumerate() {
                let cell =
                    Rect::from_min_size(pos2(body.left() + x - self.left, y), vec2(*wide, DATA_TABLE_ROW_HEIGHT));
                if cell.right() < body.left() || cell.left() > body.right() {
                    continue;
                }
                if self.chosen == Some((at, place)) {
                    painter.rect_filled(cell, 0.0, colours.accent_ground);
                }
                let text = data.cell(row, place);
                if text.is_empty() {
                    continue;
                }
                let cut = &text[..text.floor_char_boundary(400)];
                let mut job = LayoutJob::default();
                job.append(
                    &untrusted_text::escape_line(&cut.replace(['\n', '\r'], " ")),
                    0.0,
                    format(style.clone(), DATA_TABLE_ROW_HEIGHT, colours.ink),
                );
                job.wrap = egui::text::TextWrapping::truncate_at_width((wide - 2.0 * space::S).max(1.0));
                let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
                let numeric = data.columns.get(place).is_some_and(|column| column.numeric);
                let x = if numeric { cell.right() - space::S - galley.size().x } else { cell.left() + space::S };
                painter.galley(pos2(x, cell.top()), galley, colours.ink);
            }
            painter.hline(
                body.x_range(),
                y + DATA_TABLE_ROW_HEIGHT - 0.5,
                Stroke::new(1.0, colours.line.gamma_multiply(0.6)),
            );
        }
        if let Some((row, column)) = self.chosen.filter(|_| response.has_focus()) {
            // Screen readers announce the selected cell.
            let title = data.columns.get(column).map_or("", |column| column.name.as_str());
            let said = format!("{title}: {}", data.cell(self.row(row), column));
            ui.ctx().accesskit_node_builder(grid, |node| node.set_description(&*untrusted_text::escape_line(&said)));
        }
        paint_focus_ring(ui, &response, CONTROL_CORNER);
    }

    /// Returns the cell at a point: row as displayed, and column.
    fn cell_at(&self, point: Pos2, body: Rect, shown: usize, spans: &[(f32, f32)]) -> Option<(usize, usize)> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a row in sight")]
        let row = (self.top + f64::from((point.y - body.top()) / DATA_TABLE_ROW_HEIGHT)).max(0.0) as usize;
        let x = point.x - body.left() + self.left;
        let column = spans.iter().position(|(left, wide)| x < left + wide).unwrap_or(spans.len().saturating_sub(1));
        (row < shown).then_some((row, column))
    }

    /// Selects the cell at a point of the screen. Returns whether there's one.
    pub fn select_at(&mut self, point: Pos2) -> bool {
        let Some(data) = self.data().filter(|_| self.area.contains(point)).cloned() else { return false };
        self.chosen = self.cell_at(point, self.area, self.shown(&data), &spans(&data));
        self.chosen.is_some()
    }

    /// Returns the row in the data, and the column, of the selected cell.
    fn chosen_cell(&self) -> Option<(Arc<TableData>, usize, usize)> {
        let (row, column) = self.chosen?;
        Some((self.data()?.clone(), self.row(row), column))
    }

    /// Copies the selected cell.
    pub fn copy_value(&self, ctx: &Context) {
        if let Some((data, row, column)) = self.chosen_cell() {
            ctx.copy_text(data.cell(row, column).to_owned());
        }
    }

    /// Copies the row of the selected cell, as tab-separated values.
    pub fn copy_row(&self, ctx: &Context) {
        if let Some((data, row, _)) = self.chosen_cell() {
            let cell = |column| data.cell(row, column).replace(['\t', '\n', '\r'], " ");
            ctx.copy_text((0..data.columns.len()).map(cell).collect::<Vec<_>>().join("\t"));
        }
    }

    /// Returns whether the table has a filter.
    pub fn has_filter(&self) -> bool {
        self.data().is_some_and(|data| data.rows > MAX_ROWS_WITHOUT_FILTER)
    }

    /// Shows only rows with the value of the selected cell.
    pub fn filter_by_value(&mut self, ctx: &Context) {
        let Some((data, row, column)) = self.chosen_cell() else { return };
        let name = data.columns.get(column).map_or("", |column| column.name.as_str());
        self.filter = value_filter(name, data.cell(row, column));
        self.look(ctx);
    }

    /// Moves the selected cell with arrow, page and Home/End keys; Ctrl+C copies it.
    fn keys(&mut self, ui: &Ui, response: &egui::Response, data: &TableData, shown: usize, body: Rect) {
        if !response.has_focus() || shown == 0 {
            return;
        }
        let filter = EventFilter { tab: false, horizontal_arrows: true, vertical_arrows: true, escape: true };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rows in sight")]
        let page = ((body.height() / DATA_TABLE_ROW_HEIGHT) as usize).saturating_sub(1).max(1);
        let last = data.columns.len().saturating_sub(1);
        for event in ui.input(|input| input.events.clone()) {
            let (row, column) = self.chosen.unwrap_or_default();
            match event {
                egui::Event::Copy => ui.ctx().copy_text(data.cell(self.row(row), column).to_owned()),
                egui::Event::Key { key, pressed: true, modifiers, .. } => {
                    let to = match key {
                        Key::ArrowUp => (row.saturating_sub(1), column),
                        Key::ArrowDown => (row + 1, column),
                        Key::ArrowLeft => (row, column.saturating_sub(1)),
                        Key::ArrowRight => (row, column + 1),
                        Key::PageUp => (row.saturating_sub(page), column),
                        Key::PageDown => (row + page, column),
                        Key::Home if modifiers.command_only() => (0, column),
                        Key::End if modifiers.command_only() => (shown, column),
                        Key::Home => (row, 0),
                        Key::End => (row, last),
                        Key::Escape => {
                            response.surrender_focus();
                            self.chosen = None;
                            continue;
                        }
                        _ => continue,
                    };
                    let to = (to.0.min(shown - 1), to.1.min(last));
                    self.chosen = Some(to);
                    self.reveal(to, data, body);
                }
                _ => {}
            }
        }
    }

    fn reveal(&mut self, (row, column): (usize, usize), data: &TableData, body: Rect) {
        #[allow(clippy::cast_precision_loss, reason = "a row")]
        let row = row as f64;
        let high = f64::from(body.height() / DATA_TABLE_ROW_HEIGHT);
        self.top = self.top.clamp((row + 1.0 - high).max(0.0).min(row), row);
        if let Some((x, wide)) = spans(data).get(column) {
            self.left = self.left.clamp((x + wide - body.width()).min(*x), *x);
        }
    }

    /// Draws the column names; a click sorts by a column, the next reverses the order, and the third removes it.
    fn head(&mut self, ui: &Ui, id: Id, data: &TableData, head: Rect, spans: &[(f32, f32)]) {
        let colours = ThemeColors::of(ui);
        let clip = head.intersect(ui.clip_rect());
        let style = theme::inter_font(InterCut::SemiBold, 13.0);
        let mut wish = None;
        for (place, ((x, wide), column)) in spans.iter().zip(&data.columns).enumerate() {
            let cell = Rect::from_min_size(pos2(head.left() + x - self.left, head.top()), vec2(*wide, head.height()));
            if cell.right() < head.left() || cell.left() > head.right() {
                continue;
            }
            let response = ui.interact(cell.intersect(head), id.with(("column", place)), Sense::click());
            let sorted = self.sort.filter(|(by, _)| *by == place).map(|(_, down)| down);
            let how = match sorted {
                None => "Sort by",
                Some(false) => "Sort descending by",
                Some(true) => "Don't sort by",
            };
            set_accessible_name(&response, Role::Button, &format!("{how} {}", column.name));
            let painter = ui.painter().with_clip_rect(clip);
            if response.hovered() {
                painter.rect_filled(cell, CONTROL_CORNER, colours.hover_color(colours.paper));
            }
            let mark = if sorted.is_some() { 16.0 } else { 0.0 };
            let mut job = LayoutJob::default();
            job.append(
                &untrusted_text::escape_line(&column.name),
                0.0,
                format(style.clone(), head.height(), colours.ink),
            );
            job.wrap = egui::text::TextWrapping::truncate_at_width((wide - 2.0 * space::S - mark).max(1.0));
            let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
            let text = if column.numeric { cell.right() - space::S - galley.size().x } else { cell.left() + space::S };
            if let Some(down) = sorted {
                let icon = if down { icons::CARET_DOWN } else { icons::CARET_UP };
                let x = if column.numeric { text - space::S } else { text + galley.size().x + space::S };
                let at = pos2(x, cell.center().y);
                painter.text(at, Align2::CENTER_CENTER, icon, theme::icon_font(12.0), colours.accent);
            }
            painter.galley(pos2(text, cell.top()), galley, colours.ink);
            paint_focus_ring(ui, &response, CONTROL_CORNER);
            if response.on_hover_cursor(CursorIcon::PointingHand).clicked() {
                wish = Some(match sorted {
                    None => Some((place, false)),
                    Some(false) => Some((place, true)),
                    Some(true) => None,
                });
            }
        }
        ui.painter().hline(head.x_range(), head.bottom() - 0.5, Stroke::new(1.0, colours.line));
        if let Some(sort) = wish {
            self.sort = sort;
            self.look(ui.ctx());
        }
    }

    /// Draws what the columns hold, below their names.
    fn summaries(&self, ui: &Ui, id: Id, data: &TableData, strip: Rect, spans: &[(f32, f32)]) {
        let colours = ThemeColors::of(ui);
        let painter = ui.painter().with_clip_rect(strip.intersect(ui.clip_rect()));
        for (place, ((x, wide), summary)) in spans.iter().zip(&self.summaries).enumerate() {
            let left = strip.left() + x - self.left;
            let cell = Rect::from_min_max(pos2(left, strip.top()), pos2(left + wide, strip.bottom()));
            if cell.right() < strip.left() || cell.left() > strip.right() {
                continue;
            }
            let response = ui.interact(cell.intersect(strip), id.with(("summary", place)), Sense::hover());
            let name = data.columns.get(place).map_or("", |column| column.name.as_str());
            set_accessible_name(&response, Role::Label, &format!("Values of {name}: {}", summary.text));
            let inner = cell.shrink2(vec2(space::S, space::XS));
            let most = summary.bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
            #[allow(clippy::cast_precision_loss, reason = "some bars")]
            let step = inner.width().min(MAX_SUMMARY_WIDTH) / summary.bars.len().max(1) as f32;
            let numeric = data.columns.get(place).is_some_and(|column| column.numeric);
            // As their cells, numbers are at the right.
            let left = if numeric { inner.right() - inner.width().min(MAX_SUMMARY_WIDTH) } else { inner.left() };
            let mut pointed = None;
            for (at, bar) in summary.bars.iter().enumerate() {
                #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a share")]
                let (x, high) = (
                    left + at as f32 * step,
                    (f64::from(bar.count) / f64::from(most) * f64::from(inner.height())) as f32,
                );
                let column = Rect::from_x_y_ranges(x..=x + step, cell.y_range());
                let is_pointed = response.hover_pos().is_some_and(|pointer| column.contains(pointer));
                let high = if bar.count > 0 { high.max(1.5) } else { 0.0 };
                let rect = Rect::from_min_max(
                    pos2(x, inner.bottom() - high),
                    pos2(x + (step - 1.0).max(step * 0.7), inner.bottom()),
                );
                let colour = if is_pointed { colours.accent } else { colours.accent.gamma_multiply(0.55) };
                painter.rect_filled(rect, 1.0, colour);
                if is_pointed {
                    pointed = Some(bar.text.as_str());
                }
            }
            if summary.bars.is_empty() {
                let mut job = LayoutJob::default();
                let style = theme::caption();
                // Columns are often narrow; the rest is said by the pointer.
                let text = match summary.text.strip_prefix("more than ") {
                    Some(counted) => format!("> {}", counted.replace(" different values", "")),
                    None => summary.text.replace(" different values", " values"),
                };
                job.append(&untrusted_text::escape_line(&text), 0.0, format(style.font, style.line, colours.muted));
                job.wrap = egui::text::TextWrapping::truncate_at_width(inner.width().max(1.0));
                let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
                painter.galley(inner.left_center() - vec2(0.0, galley.size().y / 2.0), galley, colours.muted);
            }
            if response.hovered() {
                let pointed = pointed.map(|text| format!("\n{text}")).unwrap_or_default();
                response.on_hover_text_at_pointer(untrusted_text::escape_block(&format!("{}{pointed}", summary.text)));
            }
        }
        ui.painter().hline(strip.x_range(), strip.bottom() - 0.5, Stroke::new(1.0, colours.line));
    }

    /// Draws the scroll bars at the right and the bottom; they scroll rows and columns when dragged.
    fn bars(&mut self, ui: &Ui, id: Id, data: &TableData, body: Rect, wide: f32) {
        let colours = ThemeColors::of(ui);
        let shown = self.shown(data);
        let most = most(shown, body);
        if most > 0.0 {
            let rail = Rect::from_min_size(body.right_top(), vec2(TABLE_SCROLL_BAR_WIDTH, body.height()));
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a share")]
            let (part, at) =
                ((f64::from(body.height() / DATA_TABLE_ROW_HEIGHT) / shown as f64) as f32, (self.top / most) as f32);
            let thumb = (rail.height() * part).max(space::XL).min(rail.height());
            let y = rail.top() + (rail.height() - thumb) * at;
            let response = ui.interact(rail, id.with("rows"), Sense::click_and_drag() - Sense::FOCUSABLE);
            if let Some(point) = response.interact_pointer_pos() {
                let share = (point.y - rail.top() - thumb / 2.0) / (rail.height() - thumb).max(1.0);
                self.top = f64::from(share.clamp(0.0, 1.0)) * most;
                ui.ctx().request_repaint();
            }
            let rect = Rect::from_min_size(pos2(rail.left() + 3.0, y), vec2(TABLE_SCROLL_BAR_WIDTH - 4.0, thumb));
            let strong = response.hovered() || response.dragged();
            ui.painter().rect_filled(rect, 3.0, if strong { colours.muted } else { colours.line });
        }
        if wide > body.width() + 0.5 {
            let rail = Rect::from_min_size(body.left_bottom(), vec2(body.width(), TABLE_SCROLL_BAR_WIDTH));
            let thumb = (rail.width() * body.width() / wide).max(space::XL);
            let room = (wide - body.width()).max(1.0);
            let x = rail.left() + (rail.width() - thumb) * (self.left / room);
            let response = ui.interact(rail, id.with("columns"), Sense::click_and_drag() - Sense::FOCUSABLE);
            if let Some(point) = response.interact_pointer_pos() {
                let share = (point.x - rail.left() - thumb / 2.0) / (rail.width() - thumb).max(1.0);
                self.left = share.clamp(0.0, 1.0) * room;
                ui.ctx().request_repaint();
            }
            let rect = Rect::from_min_size(pos2(x, rail.top() + 3.0), vec2(thumb, TABLE_SCROLL_BAR_WIDTH - 4.0));
            let strong = response.hovered() || response.dragged();
            ui.painter().rect_filled(rect, 3.0, if strong { colours.muted } else { colours.line });
        }
    }
}

/// Starts to parse a table on another thread.
fn start_reading(
    form: TableFormat,
    ctx: &Context,
    read: impl FnOnce() -> anyhow::Result<TableData> + Send + 'static,
) -> TableReading {
    let (send, receive) = channel();
    let (send_summaries, coming_summaries) = channel();
    let wake = ctx.clone();
    std::thread::spawn(move || {
        let read = read().map(Arc::new);
        let data = read.as_ref().ok().filter(|data| form != TableFormat::Lines && is_summarized(data)).cloned();
        let _ = send.send(read); // the note may be gone
        wake.request_repaint();
        if let Some(data) = data {
            let _ = send_summaries.send(data.summaries()); // as above
            wake.request_repaint();
        }
    });
    (receive, coming_summaries)
}

/// Returns a filter for rows with this value in a column. Terms of filters hold no spaces.
fn value_filter(column: &str, value: &str) -> String {
    let is_word = |text: &str| !text.contains(char::is_whitespace);
    let names_column = !column.is_empty() && is_word(column) && !column.contains(['<', '>', '=', '!', ':']);
    match (names_column, is_word(value)) {
        (true, true) => format!("{column}={value}"),
        (true, false) => value.split_whitespace().map(|word| format!("{column}:{word}")).collect::<Vec<_>>().join(" "),
        (false, _) => value.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Returns the highest row that can be the first visible one.
#[allow(clippy::cast_precision_loss, reason = "a count of rows")]
fn most(shown: usize, body: Rect) -> f64 {
    (shown as f64 - f64::from(body.height() / DATA_TABLE_ROW_HEIGHT)).max(0.0)
}

/// Returns whether a table is long enough for summaries of its columns.
fn is_summarized(data: &TableData) -> bool {
    data.rows > MAX_ROWS_WITHOUT_FILTER
}

/// Returns the left edge and width of each column.
fn spans(data: &TableData) -> Vec<(f32, f32)> {
    let mut x = 0.0;
    let spans = data.columns.iter().map(|column| {
        #[allow(clippy::cast_precision_loss, reason = "some letters")]
        let wide = (column.letters as f32 * 7.6 + 2.0 * space::S + space::M)
            .clamp(MIN_DATA_COLUMN_WIDTH, MAX_DATA_COLUMN_WIDTH);
        let wide = if data.columns.len() == 1 { wide.max(size::NOTE_COLUMN_WIDTH) } else { wide };
        let span = (x, wide);
        x += wide;
        span
    });
    spans.collect()
}
