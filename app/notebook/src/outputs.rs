//! Outputs of a cell, each in the richest format that can be drawn: laid out once per change, and collapsed beyond a
//! number of lines.

mod cut_run;
mod json_tree;
mod line_limit;
mod mime_bundle;
pub mod save_file;
mod terminal_colors;

use crate::actions::PageAction;
pub use cut_run::CutRun;
use editor::assets::{self, AssetBytes, DrawingState};
use editor::figure::FigureSlot;
use editor::output_table::{DataTable, FetchedRows};
use editor::render::{self, TextStyleContext};
use editor::row_layout::{RowLayout as Row, text_rects};
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Color32, CursorIcon, Galley, Pos2, Rect, Sense, Stroke, TextureHandle, Ui, Vec2, vec2};
use engine::commands::CommandId;
use host::note_environment::is_requirement;
use host::science_pack::{self, PACK_WHEEL_BYTES, megabytes};
use json_tree::JsonTree;
use mime_bundle::OutputForm;
pub use save_file::OutputFile;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use store::{BlockId, CellOutput, Execution, ExecutionId, ExecutionStatus, OutputBody};
use terminal_colors::styled;
use text::untrusted_text;
use typeset::ansi::{CSV_MIME, TerminalStyle, multiline_text, parse_styled};
use ui::text::format_thousands;
use ui::theme::{self, MAX_UNFOLDED_OUTPUT_LINES, size, space};
use ui::widgets::{format, set_accessible_name, word_button, word_width};

/// Maximum number of bytes of HTML, converted to Markdown, that are laid out.
const MAX_RICH_OUTPUT_BYTES: usize = 60_000;
/// Maximum length of a module name in bytes; a longer one isn't recognized.
const MAX_MODULE_NAME_BYTES: usize = 100;
/// Maximum height of an image, in points.
const MAX_OUTPUT_PICTURE_HEIGHT: f32 = 1_200.0;
/// Key of egui's memory that stores whether the science pack is installed.
const SCIENCE_INSTALLED_KEY: &str = "science pack installed";

/// Laid-out outputs of one execution.
pub struct OutputLayout {
    key: OutputLayoutKey,
    /// Printed texts.
    pub galleys: Vec<OutputText>,
    /// Places reserved for figures.
    pub figures: Vec<FigureSlot>,
    /// Everything other than text and figures, each with its vertical position.
    pub others: Vec<(f32, OutputItem)>,
    /// Total height, in points.
    pub height: f32,
    /// Total number of lines if some are hidden or could be.
    pub lines: usize,
    /// The full text, for the clipboard.
    pub text: String,
}

/// Text printed by a cell.
pub struct OutputText {
    /// Distance from the top of the output, in points.
    pub y: f32,
    /// The laid-out text.
    pub galley: Arc<Galley>,
    /// References to lines of cells: rectangle, cell number, line number.
    pub places: Vec<(Rect, usize, usize)>,
}

/// An output item other than text or a figure.
pub enum OutputItem {
    /// Markdown, including converted HTML and LaTeX.
    Rich(Row),
    /// An image, and its size in points.
    Picture(TextureHandle, Vec2),
    /// A progress bar; `None` if the progress is unknown.
    Progress(Option<f32>, Vec2),
    /// A JSON tree of the output at this index.
    Tree(usize),
    /// A sortable table of the output at this index.
    Table(usize),
    /// Link to the full output at this index, with its size in bytes.
    Whole(usize, u64),
    /// Offers to set up a full Python that has this module.
    Kernels(String),
    /// A link to the note's packages: the missing one, or `None` if none are installed.
    Packages(Option<String>),
    /// Offers what can be done after a stop or a crash.
    Cut(CutRun),
}

/// View state of a cell's outputs.
#[derive(Default)]
pub struct OutputViewState {
    execution: Option<ExecutionId>,
    trees: BTreeMap<usize, (u64, JsonTree)>,
    tables: BTreeMap<usize, DataTable>,
    /// Indices of the outputs shown in full.
    whole: HashSet<usize>,
    /// Whether all outputs are collapsed.
    pub folded: bool,
    /// Incremented when something is expanded or collapsed.
    pub version: u64,
}

impl OutputViewState {
    /// Selects the cell of a table at a point of the screen. Returns the index of the table's output.
    pub(crate) fn select_table_cell(&mut self, point: Pos2) -> Option<usize> {
        self.tables.iter_mut().find_map(|(index, table)| table.select_at(point).then_some(*index))
    }

    /// Returns all tables.
    pub(crate) fn tables_mut(&mut self) -> impl Iterator<Item = &mut DataTable> {
        self.tables.values_mut()
    }

    /// Returns the table of the output at an index.
    pub(crate) fn shown_table(&mut self, index: usize) -> Option<&mut DataTable> {
        self.tables.get_mut(&index)
    }

    /// Returns all rows of the data frame that this run's output at an index shows, if they were fetched.
    pub(crate) fn fetched_rows(&self, run: &Execution, index: usize) -> Option<FetchedRows> {
        self.tables.get(&index).filter(|_| self.execution == Some(run.id))?.fetched_rows()
    }

    /// Updates the state for the outputs of this run.
    fn sync(&mut self, run: &Execution, ctx: &egui::Context) {
        if self.execution != Some(run.id) {
            *self =
                OutputViewState { execution: Some(run.id), version: self.version + 1, ..OutputViewState::default() };
        }
        self.tables.values_mut().for_each(|table| table.poll_results(ctx));
    }

    fn state(&self) -> u64 {
        self.version + self.tables.values().map(|table| table.version).sum::<u64>()
    }

    fn table(
        &mut self,
        at: usize,
        form: editor::output_table::TableFormat,
        bytes: AssetBytes,
        ctx: &egui::Context,
    ) -> f32 {
        let source = hash(&(form, &bytes));
        let table = self.tables.entry(at).or_insert_with(|| DataTable::new(source, form, bytes.clone(), ctx));
        if table.source != source {
            let version = table.version + 1;
            *table = DataTable::new(source, form, bytes, ctx);
            table.version = version;
        }
        table.height()
    }

    fn tree(&mut self, at: usize, value: &Value) -> f32 {
        let source = hash(&value.to_string());
        let (known, tree) = self.trees.entry(at).or_insert_with(|| (source, JsonTree::new(value.clone())));
        if *known != source {
            (*known, *tree) = (source, JsonTree::new(value.clone()));
        }
        tree.height()
    }
}

/// Returns a hash of what is shown, to notice when that changes.
pub(crate) fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// What an output's layout depends on.
#[derive(Clone, Copy, PartialEq)]
struct OutputLayoutKey {
    execution: ExecutionId,
    outputs: usize,
    bytes: usize,
    /// Number of changes to the note's displayed values that this output may depend on.
    changed: u64,
    views: u64,
    status: ExecutionStatus,
    /// How the run was cut short, if it was.
    cut: Option<CutRun>,
    open: bool,
    width: f32,
    paper: Color32,
    scale: f32,
    letters: u64,
}

impl OutputLayout {
    /// Returns the layout of an execution's outputs, which is cached until something changes.
    pub fn layout_outputs(
        old: Option<OutputLayout>,
        run: &Execution,
        (open, changed, cut): (bool, u64, Option<CutRun>),
        views: &mut OutputViewState,
        width: f32,
        pen: TextStyleContext<'_>,
    ) -> OutputLayout {
        views.sync(run, pen.ctx);
        let changes =
            !run.status.is_final() || run.outputs.iter().any(|output| mime_bundle::mime_data(output).is_some());
        let key = OutputLayoutKey {
            execution: run.id,
            outputs: run.outputs.len(),
            bytes: run.outputs.iter().map(bytes).sum(),
            changed: if changes { changed } else { 0 },
            views: views.state(),
            status: run.status,
            cut,
            open,
            width,
            paper: pen.colours.paper,
            scale: pen.ctx.pixels_per_point() * theme::text_scale(),
            letters: assets::version(pen.ctx),
        };
        match old {
            Some(old) if old.key == key => old,
            _ if views.folded => folded(key, run, pen),
            _ => layout_execution(key, run, views, pen),
        }
    }
}

fn bytes(output: &CellOutput) -> usize {
    match &output.body {
        OutputBody::Stream { text, .. } => text.len(),
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => data.len(),
        OutputBody::Error { traceback, .. } => traceback.len(),
    }
}

/// Lays out collapsed outputs: one line that summarizes them.
fn folded(key: OutputLayoutKey, run: &Execution, pen: TextStyleContext<'_>) -> OutputLayout {
    let count = run.outputs.len();
    let text = if count == 1 { "1 output, folded".to_owned() } else { format!("{count} outputs, folded") };
    let galley = pen.text(&text, &theme::caption(), pen.colours.muted, key.width);
    let height = galley.size().y;
    let galleys = vec![OutputText { y: 0.0, galley, places: Vec::new() }];
    OutputLayout { key, galleys, figures: Vec::new(), others: Vec::new(), height, lines: 0, text: whole_text(run) }
}

/// Returns the text of an execution's outputs.
fn whole_text(run: &Execution) -> String {
    let words = run.outputs.iter().map(|output| match &output.body {
        OutputBody::Stream { text, .. } => parse_styled(text).0.trim_end_matches('\n').to_owned(),
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
            let text = ["text/plain", "text/markdown", "text/latex"].into_iter().find_map(|mime| data.get(mime));
            text.map(multiline_text).unwrap_or_default()
        }
        OutputBody::Error { traceback, .. } => parse_styled(&traceback.join("\n")).0.trim_end().to_owned(),
    });
    words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Reads a number of rows from a kernel's description of a table.
fn count(about: &Value, key: &str) -> Option<usize> {
    usize::try_from(about.get(key)?.as_u64()?).ok()
}

/// State of a layout in progress.
struct OutputLayouter<'a> {
    pen: TextStyleContext<'a>,
    width: f32,
    /// Number of rows that may still be shown, total number of rows, and how many characters a row holds.
    left: usize,
    lines: usize,
    per_row: usize,
    y: f32,
    made: OutputLayout,
}

fn layout_execution(
    key: OutputLayoutKey,
    run: &Execution,
    views: &mut OutputViewState,
    pen: TextStyleContext<'_>,
) -> OutputLayout {
    let per_row = line_limit::characters_per_row(key.width, pen);
    let lines = |text: &str| line_limit::row_count(&parse_styled(text).0, per_row);
    let all: usize = run
        .outputs
        .iter()
        .map(|output| match &output.body {
            OutputBody::Stream { text, .. } => lines(text),
            OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => {
                if let OutputForm::Text(text) = mime_bundle::output_form(output, data) { lines(&text) } else { 0 }
            }
            OutputBody::Error { traceback, .. } => lines(&traceback.join("\n")),
        })
        .sum();
    let left = if key.open || all <= MAX_UNFOLDED_OUTPUT_LINES { usize::MAX } else { MAX_UNFOLDED_OUTPUT_LINES };
    let made = OutputLayout {
        key,
        galleys: Vec::new(),
        figures: Vec::new(),
        others: Vec::new(),
        height: 0.0,
        lines: 0,
        text: whole_text(run),
    };
    let mut lay = OutputLayouter { pen, width: key.width, left, lines: 0, per_row, y: 0.0, made };
    let colours = pen.colours;
    for (at, output) in run.outputs.iter().enumerate() {
        if let Some(whole) = output.whole.as_ref().filter(|_| views.whole.contains(&at)) {
            let height =
                views.table(at, editor::output_table::TableFormat::Lines, AssetBytes::Blob(whole.blob), pen.ctx);
            lay.other(OutputItem::Table(at), height);
            continue;
        }
        match &output.body {
            OutputBody::Stream { name, text } if name == "stderr" => {
                lay.text(text, colours.muted.lerp_to_gamma(colours.bad, 0.5));
            }
            OutputBody::Stream { text, .. } => lay.text(text, colours.ink),
            OutputBody::ExecuteResult { data, metadata, .. } | OutputBody::DisplayData { data, metadata } => {
                let form = mime_bundle::output_form(output, data);
                let is_table = matches!(form, OutputForm::Table(..));
                lay.form(at, output, data, form, views);
                if let Some(cut) = metadata.get(CSV_MIME).filter(|_| is_table)
                    && let (Some(shown), Some(all)) = (count(cut, "rows"), count(cut, "all_rows"))
                {
                    let has_all = views.tables.get_mut(&at).is_some_and(|table| {
                        if let Some(frame) = cut["frame"].as_str() {
                            table.set_frame(frame, all);
                        }
                        table.has_all_rows()
                    });
                    if !has_all {
                        lay.note(&format!("The first {} of {} rows.", format_thousands(shown), format_thousands(all)));
                    }
                }
            }
            OutputBody::Error { ename, evalue, traceback } => lay.error(ename, evalue, traceback),
        }
        if let Some(whole) = &output.whole
            && let OutputBody::Stream { .. } | OutputBody::ExecuteResult { .. } = &output.body
            && whole.mime == "text/plain"
        {
            lay.note("The note keeps only the beginning.");
            lay.other(OutputItem::Whole(at, whole.size), size::MIN_CLICK_HEIGHT);
        }
    }
    if let Some(cut) = key.cut {
        lay.note(cut.sentence());
        if cut.has_offers() {
            lay.other(OutputItem::Cut(cut), size::MIN_CLICK_HEIGHT);
        }
    }
    // A single long stream has one button, which shows it in full.
    let whole = lay.made.others.iter().any(|(_, shown)| matches!(shown, OutputItem::Whole(..)));
    let lines = if whole && run.outputs.len() == 1 { 0 } else { lay.lines };
    OutputLayout { height: lay.y, lines: if lines > MAX_UNFOLDED_OUTPUT_LINES { lines } else { 0 }, ..lay.made }
}

impl OutputLayouter<'_> {
    /// Lays out printed text, as far as the line limit allows.
    fn text(&mut self, text: &str, colour: Color32) {
        let (text, spans) = parse_styled(text);
        self.coloured(text.trim_end_matches('\n'), &spans, colour, &[]);
    }

    fn coloured(
        &mut self,
        text: &str,
        spans: &[(std::ops::Range<usize>, TerminalStyle)],
        colour: Color32,
        places: &[(std::ops::Range<usize>, usize, usize)],
    ) {
        if text.is_empty() {
            return;
        }
        let all = line_limit::row_count(text, self.per_row);
        self.lines += all;
        if self.left == 0 {
            return;
        }
        let shown = line_limit::first_rows_bytes(text, self.left, self.per_row);
        self.left = self.left.saturating_sub(all);
        let shown = text[..shown].trim_end_matches('\n');
        let code = theme::code();
        let mut job = LayoutJob::default();
        job.wrap.max_width = self.width;
        // Hidden characters are made visible; if that makes a piece longer, clickable ranges move along.
        let put = |job: &mut LayoutJob, range: std::ops::Range<usize>, look| {
            job.append(&untrusted_text::escape_block(&shown[range]), 0.0, look);
        };
        // Where the format changes: at spans and at clickable ranges.
        let mut looks: Vec<(std::ops::Range<usize>, egui::TextFormat)> = spans
            .iter()
            .map(|(range, style)| (range.clone(), styled(style, colour, self.pen)))
            .chain(places.iter().map(|(range, ..)| {
                let mut format = format(code.font.clone(), code.line, self.pen.colours.accent);
                format.underline = Stroke::new(1.0, self.pen.colours.accent.gamma_multiply(0.5));
                (range.clone(), format)
            }))
            .collect();
        looks.sort_by_key(|(range, _)| range.start);
        let mut at = 0;
        for (range, look) in looks {
            let (start, end) = (range.start.max(at).min(shown.len()), range.end.min(shown.len()));
            if start >= end {
                continue;
            }
            put(&mut job, at..start, format(code.font.clone(), code.line, colour));
            put(&mut job, start..end, look);
            at = end;
        }
        put(&mut job, at..shown.len(), format(code.font.clone(), code.line, colour));
        let galley = self.pen.galley(job);
        let places = places.iter().filter(|(range, ..)| range.end <= shown.len()).flat_map(|(range, cell, line)| {
            let chars = |to: usize| untrusted_text::escape_block(&shown[..to]).chars().count();
            let found = text_rects(&galley, chars(range.start)..chars(range.end));
            found.into_iter().map(|rect| (rect, *cell, *line)).collect::<Vec<_>>()
        });
        let places = places.collect();
        self.galley(galley, places);
    }

    fn galley(&mut self, galley: Arc<Galley>, places: Vec<(Rect, usize, usize)>) {
        let y = self.y;
        self.y += galley.size().y;
        self.made.galleys.push(OutputText { y, galley, places });
    }

    /// Lays out an exception: its traceback, then its message.
    fn error(&mut self, ename: &str, evalue: &str, traceback: &[String]) {
        let head = if evalue.is_empty() { ename.to_owned() } else { format!("{ename}: {evalue}") };
        let (trace, spans) = parse_styled(&traceback.join("\n"));
        let before = trace.trim_end();
        let before = before.strip_suffix(head.trim_end()).unwrap_or(before).trim_end();
        self.coloured(before, &spans, self.pen.colours.muted, &mime_bundle::traceback_locations(before));
        self.text(&head, self.pen.colours.bad);
        if let Some(missing) = missing_packages(ename, evalue) {
            self.other(OutputItem::Packages(missing), size::MIN_CLICK_HEIGHT);
            return;
        }
        // Tracebacks of the embedded kernel refer to cells like this.
        if let Some(module) = missing_module(ename, evalue).filter(|_| trace.contains("File \"cell ")) {
            let words = match science_pack::has_module(module) {
                true => format!("This cell needs {module}."),
                false => format!("{module} needs a full Python."),
            };
            self.note(&words);
            self.other(OutputItem::Kernels(module.to_owned()), size::MIN_CLICK_HEIGHT);
        }
    }

    /// Adds a message from the program about the output above.
    pub(crate) fn note(&mut self, text: &str) {
        let galley = self.pen.text(text, &theme::caption(), self.pen.colours.muted, self.width);
        if self.y > 0.0 {
            self.y += space::XS;
        }
        self.galley(galley, Vec::new());
    }

    fn other(&mut self, shown: OutputItem, height: f32) {
        if self.y > 0.0 {
            self.y += space::XS;
        }
        self.made.others.push((self.y, shown));
        self.y += height;
    }

    fn rich(&mut self, text: &str) {
        let width = self.width.min(size::NOTE_COLUMN_WIDTH);
        let row = render::draw(&untrusted_text::escape_block(text), RowKind::Paragraph, width, self.width, self.pen);
        let height = row.height;
        self.other(OutputItem::Rich(row), height);
    }

    fn form(
        &mut self,
        at: usize,
        output: &CellOutput,
        data: &serde_json::Map<String, Value>,
        form: OutputForm<'_>,
        views: &mut OutputViewState,
    ) {
        let pen = self.pen;
        match form {
            OutputForm::Figure => {
                if let Some(mut slot) = FigureSlot::from_output((self.made.key.execution, at), output, self.width, pen)
                {
                    slot.y = self.y;
                    self.y += slot.size.y;
                    self.made.figures.push(slot);
                }
            }
            OutputForm::Table(form, bytes) => {
                let height = views.table(at, form, bytes, pen.ctx);
                self.other(OutputItem::Table(at), height);
            }
            OutputForm::Progress(value) => self.progress(value),
            OutputForm::Html(bytes) => match assets::request_text(pen.ctx, &bytes, short_markdown) {
                None => self.note("Reading …"),
                Some(Some(text)) => self.rich(&text),
                // The HTML has no more content than the text, or is too large.
                Some(None) => self.form(at, output, data, mime_bundle::plain_form(output, data), views),
            },
            OutputForm::Markdown(bytes) => match &bytes {
                AssetBytes::Here(text) => self.rich(text),
                AssetBytes::Blob(_) | AssetBytes::File(..) => {
                    match assets::request_text(pen.ctx, &bytes, |text| Some(short(text))) {
                        None => self.note("Reading …"),
                        Some(text) => self.rich(&text.unwrap_or_default()),
                    }
                }
            },
            OutputForm::Picture { bytes, is_svg } => match assets::shown_picture(pen.ctx, &bytes, is_svg) {
                DrawingState::Waiting => self.note("Drawing …"),
                DrawingState::Failed(why) => self.note(&ui::text::sentence(&why)),
                DrawingState::Ready(texture, wanted) => {
                    let scale =
                        (self.width / wanted.x.max(1.0)).min(MAX_OUTPUT_PICTURE_HEIGHT / wanted.y.max(1.0)).min(1.0);
                    let drawn = wanted * scale;
                    self.other(OutputItem::Picture(texture, drawn), drawn.y);
                }
            },
            OutputForm::Tree(value) => {
                let height = views.tree(at, value);
                self.other(OutputItem::Tree(at), height);
            }
            OutputForm::Text(text) => self.text(&text, pen.colours.ink),
        }
    }

    /// Lays out a progress bar with its text below.
    fn progress(&mut self, value: &Value) {
        let (done, total) = (value["done"].as_f64().unwrap_or(0.0), value["total"].as_f64());
        #[allow(clippy::cast_possible_truncation, reason = "a share")]
        let share = total.filter(|total| *total > 0.0).map(|total| (done / total).clamp(0.0, 1.0) as f32);
        let wide = vec2(self.width.min(size::DIALOG_WIDTH), space::XS + 2.0);
        self.other(OutputItem::Progress(share, wide), wide.y);
        self.note(value["words"].as_str().unwrap_or(""));
    }
}

/// Sets whether the science pack is installed, for the offers below cells.
pub fn set_science_installed(ctx: &egui::Context, is_installed: bool) {
    ctx.data_mut(|data| data.insert_temp(egui::Id::unique(SCIENCE_INSTALLED_KEY), is_installed));
}

fn is_science_installed(ctx: &egui::Context) -> bool {
    ctx.data(|data| data.get_temp(egui::Id::unique(SCIENCE_INSTALLED_KEY))).unwrap_or(false)
}

/// Returns the module that an exception says is missing from the built-in Python, and that a package could bring.
fn missing_module<'a>(ename: &str, evalue: &'a str) -> Option<&'a str> {
    if evalue.contains("a full Python kernel has it") {
        return Some(if evalue.contains("matplotlib") { "matplotlib" } else { "numpy" });
    }
    let name =
        (ename == "ModuleNotFoundError").then(|| evalue.strip_prefix("No module named '"))??.split('\'').next()?;
    let module = name.split('.').next()?;
    let is_name = module.len() <= MAX_MODULE_NAME_BYTES
        && module.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && module.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_name && !evalue.contains("part of the standard library")).then_some(module)
}

/// Returns what an exception says is missing from the note's environment: a package, or `None` for all packages that
/// the note lists.
fn missing_packages(ename: &str, evalue: &str) -> Option<Option<String>> {
    match ename {
        "ModuleNotFoundError" => {
            // The built-in Python mentions this command among others; an environment mentions only this one.
            let (_, advice) = evalue.rsplit_once("(add it with `tracebook kernels env ")?;
            let package = advice.rsplit_once(" --add ")?.1.split('`').next()?;
            is_requirement(package).then(|| Some(package.to_owned()))
        }
        // A query reads a file that the kernel's Python can't.
        "SqlError" => {
            let (_, advice) = evalue.rsplit_once("can't read Parquet; ")?;
            let package = advice.split_once("`tracebook kernels env NOTE --add ")?.1.split('`').next()?;
            is_requirement(package).then(|| Some(package.to_owned()))
        }
        "KernelDied" => evalue.contains("`tracebook kernels env ").then_some(None),
        _ => None,
    }
}

/// Draws everything other than text and figures at a position, in this width.
pub fn show(
    ui: &mut Ui,
    piece: &OutputItem,
    id: egui::Id,
    (block, cell): (BlockId, usize),
    (at, width): (Pos2, f32),
    views: &mut OutputViewState,
    actions: &mut Vec<PageAction>,
) {
    let colours = theme::ThemeColors::of(ui);
    match piece {
        OutputItem::Rich(row) => {
            let rect = Rect::from_min_size(at, vec2(width, row.height));
            if !ui.is_rect_visible(rect) {
                return;
            }
            let response = ui.interact(rect, id, Sense::click() - Sense::FOCUSABLE);
            set_accessible_name(&response, Role::Label, &row.text);
            row.paint(ui.painter(), at, colours, "", &[]);
            let over = ui.input(|input| input.pointer.latest_pos()).filter(|_| response.hovered());
            if let Some(link) = over.and_then(|point| row.byte_at_point("", point - at).1).map(str::to_owned)
                && response.on_hover_cursor(CursorIcon::PointingHand).clicked()
            {
                actions.push(PageAction::Follow(link));
            }
        }
        OutputItem::Picture(texture, size) => {
            let rect = Rect::from_min_size(at, *size);
            let response = ui.interact(rect, id, Sense::hover());
            set_accessible_name(&response, Role::Image, &format!("Picture of cell {cell}"));
            let whole = Rect::from_min_max(Pos2::ZERO, egui::pos2(1.0, 1.0));
            ui.painter().image(texture.id(), rect, whole, Color32::WHITE);
        }
        OutputItem::Progress(share, size) => {
            let rect = Rect::from_min_size(at, *size);
            let response = ui.interact(rect, id, Sense::hover());
            let words =
                share.map_or_else(|| "Progress".to_owned(), |share| format!("Progress: {:.0} %", share * 100.0));
            set_accessible_name(&response, Role::ProgressIndicator, &words);
            ui.painter().rect_filled(rect, theme::CONTROL_CORNER, colours.line);
            let done = rect.with_max_x(rect.left() + rect.width() * share.unwrap_or(0.0));
            let colour = if *share == Some(1.0) { colours.ok } else { colours.accent };
            ui.painter().rect_filled(done, theme::CONTROL_CORNER, colour);
        }
        OutputItem::Tree(index) => {
            if let Some((_, tree)) = views.trees.get_mut(index)
                && tree.show(ui, id, at, width)
            {
                views.version += 1;
            }
        }
        OutputItem::Table(index) => {
            if let Some(table) = views.tables.get_mut(index) {
                let rect = Rect::from_min_size(at, vec2(width, table.height()));
                if ui.is_rect_visible(rect) {
                    table.show(ui, id, &format!("Table of cell {cell}"), at, width);
                }
            }
        }
        OutputItem::Kernels(module) => {
            let mut place = at;
            let mut button = |ui: &mut Ui, salt: &str, text: &str| {
                let rect = Rect::from_min_size(place, vec2(word_width(ui, text), size::MIN_CLICK_HEIGHT));
                place.x = rect.right() + space::L;
                word_button(ui, rect, id.with(salt), text, &format!("{text} for cell {cell}")).clicked()
            };
            let in_science = science_pack::has_module(module);
            if in_science {
                let text = match is_science_installed(ui.ctx()) {
                    true => "Use Science".to_owned(),
                    false => format!("Use Science ({} MB download)", megabytes(PACK_WHEEL_BYTES)),
                };
                if button(ui, "science", &text) {
                    actions.push(PageAction::UseScience { cell: block, module: module.clone() });
                }
            }
            let text = if in_science { "Use an environment…" } else { "Set up Python…" };
            if button(ui, "set up", text) {
                actions.push(PageAction::SetUpPython { cell: block, module: module.clone() });
            }
            if button(ui, "choose", "Choose kernel…") {
                actions.push(PageAction::Run(CommandId::KernelChoose));
            }
        }
        OutputItem::Packages(missing) => {
            let text = match missing {
                Some(package) => format!("Add {package} to the environment…"),
                None => "Install packages…".to_owned(),
            };
            let rect = Rect::from_min_size(at, vec2(word_width(ui, &text).min(width), size::MIN_CLICK_HEIGHT));
            if word_button(ui, rect, id, &text, &format!("{text} for cell {cell}")).clicked() {
                actions.push(PageAction::ShowPackages { cell: block, missing: missing.clone() });
            }
        }
        OutputItem::Cut(cut) => cut.show(ui, id, at, (block, cell), actions),
        OutputItem::Whole(index, bytes) => {
            let rect = Rect::from_min_size(at, vec2(200.0, size::MIN_CLICK_HEIGHT));
            let text = format!("Show all ({})", ui::text::amount(*bytes));
            if word_button(ui, rect, id, &text, &format!("Show all of the output of cell {cell}")).clicked() {
                views.whole.insert(*index);
                views.version += 1;
            }
        }
    }
}

fn short(text: &str) -> String {
    if text.len() <= MAX_RICH_OUTPUT_BYTES {
        return text.to_owned();
    }
    let cut = &text[..text.floor_char_boundary(MAX_RICH_OUTPUT_BYTES)];
    format!("{}\n\n…", &cut[..cut.rfind('\n').unwrap_or(cut.len())])
}

fn short_markdown(html: &str) -> Option<String> {
    export::render_jobs::html_to_markdown(html).map(|text| short(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_environment_lacks_is_no_matter_of_the_built_in_python() {
        let lacks = "No module named 'yaml' (add it with `tracebook kernels env 'a b.md' --add pyyaml`)";
        assert_eq!(missing_packages("ModuleNotFoundError", lacks), Some(Some("pyyaml".to_owned())));
        let died = "its packages (six) aren't installed. Install them with `tracebook kernels env a.md`";
        assert_eq!(missing_packages("KernelDied", died), Some(None));
        assert_eq!(missing_packages("KernelDied", "it was killed"), None);
        let built_in = "No module named 'boats' (the built-in Python doesn't have it; make an environment that does \
                        with `tracebook kernels env NOTE --add boats`, or choose a Jupyter kernel with `tracebook \
                        kernels NOTE --use KERNEL`)";
        assert_eq!(missing_packages("ModuleNotFoundError", built_in), None);
        let part = "No module named 'cProfile' (the built-in Python doesn't have this part of the standard library)";
        assert_eq!([built_in, part].map(|why| missing_module("ModuleNotFoundError", why)), [Some("boats"), None]);
        let parquet = "a: Science can't read Parquet; use `tracebook kernels env NOTE --add pyarrow`, or another";
        assert_eq!(missing_packages("SqlError", parquet), Some(Some("pyarrow".to_owned())));
    }
}
