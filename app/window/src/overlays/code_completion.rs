//! Code help in cells: completions at the caret, and descriptions of names at the caret or pointer. The idle kernel
//! provides both; while it's busy or off, names assigned in the note's cells are used.

use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Area, Id, Order, Pos2, Sense, pos2, vec2};
use engine::Note;
use host::{CompletionChoice, InquiryAnswer};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use store::DocId;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{floating_frame, set_accessible_name};

/// Number of visible choices. The others scroll into view.
const MAX_VISIBLE_CODE_CHOICES: usize = 8;
/// Number of typed letters after which names are offered automatically.
pub(crate) const MIN_COMPLETION_CHARS: usize = 2;
/// Maximum number of lines in a description.
const MAX_HOVER_CARD_LINES: usize = 16;
const HOVER_CARD_WIDTH: f32 = 520.0;
/// Maximum number of a note's import statements that are sent with a completion request.
const MAX_IMPORT_LINES: usize = 200;
/// Python keywords and builtins, offered when no kernel answers.
const PYTHON_BUILTIN_WORDS: &str = "False None True abs all and any as assert async await bool break bytes class \
    continue def del \
                     dict dir elif else enumerate except filter finally float for from getattr global if import in \
                     input int is isinstance lambda len list map match max min nonlocal not object open or pass \
                     print range raise repr return reversed round set setattr sorted str sum super try tuple type \
                     while with yield zip";

/// The caret's position: note, the note's revision, and byte offset.
pub(crate) type CodePosition = (DocId, u64, usize);

/// The code around a position in a cell.
pub(crate) struct CodeContext {
    pub(crate) place: CodePosition,
    /// The cell's code, and the byte of the note at which it starts.
    pub(crate) code: String,
    pub(crate) start: usize,
    /// The caret, and the start of the word before it, in bytes of the code.
    pub(crate) at: usize,
    pub(crate) word: usize,
}

impl CodeContext {
    pub(crate) fn typed(&self) -> &str {
        &self.code[self.word..self.at]
    }

    /// Returns whether the typed text starts a name rather than a number.
    pub(crate) fn begins_name(&self) -> bool {
        self.typed().chars().next().is_some_and(|c| !c.is_numeric())
    }

    /// Returns whether an attribute after a dot is being completed.
    pub(crate) fn dotted(&self) -> bool {
        self.code[..self.word].ends_with('.')
    }

    /// Returns whether the caret is at a module's name in an import statement.
    pub(crate) fn names_module(&self) -> bool {
        let mut words = self.code[..self.word].rsplit('\n').next().unwrap_or_default().split_whitespace();
        matches!(words.next(), Some("import" | "from")) && !words.any(|word| word == "import")
    }

    /// Returns whether the caret is at a name in an import statement.
    pub(crate) fn names_import(&self) -> bool {
        let line = self.code[..self.word].rsplit('\n').next().unwrap_or_default().trim_start();
        line.starts_with("import ") || line.starts_with("from ")
    }

    /// Returns the line's text before the caret.
    pub(crate) fn line(&self) -> &str {
        let begins = self.code[..self.at].rfind('\n').map_or(0, |newline| newline + 1);
        &self.code[begins..self.at]
    }
}

/// The importable modules of the environment in which a kernel is installed.
pub(crate) struct EnvironmentModules {
    pub(crate) kernel_json: PathBuf,
    pub(crate) answer: Receiver<Vec<String>>,
    pub(crate) modules: Vec<String>,
}

impl EnvironmentModules {
    /// Starts listing an environment's modules on a thread.
    pub(crate) fn list(kernel_json: PathBuf) -> EnvironmentModules {
        let (tell, answer) = channel();
        let path = kernel_json.clone();
        std::thread::spawn(move || tell.send(host::python_setup::environment_modules(&path)));
        EnvironmentModules { kernel_json, answer, modules: Vec::new() }
    }
}

/// The completion list below the caret.
pub(crate) struct CompletionList {
    /// The byte range of the note that a choice replaces.
    pub(crate) range: Range<usize>,
    pub(crate) choices: Vec<CompletionChoice>,
    pub(crate) chosen: usize,
    /// Whether Enter accepts: the user requested the list or moved in it.
    pub(crate) steered: bool,
}

/// A hover description: byte in the note, place on the screen, and text once known.
pub(crate) struct HoverCard {
    pub(crate) at: usize,
    pub(crate) point: Option<Pos2>,
    pub(crate) waits: Option<Receiver<InquiryAnswer>>,
    pub(crate) text: Option<String>,
}

/// Returns the import statements in a note's cells, one per line.
pub(crate) fn import_statements(note: &Note) -> String {
    let lines = note.cells().filter_map(|cell| note.cell_code(cell)).flat_map(str::lines).map(str::trim);
    let imports = lines.filter(|line| line.starts_with("import ") || line.starts_with("from "));
    imports.take(MAX_IMPORT_LINES).collect::<Vec<_>>().join("\n")
}

/// State of code completion and hover descriptions.
#[derive(Default)]
pub(crate) struct CodeCompletion {
    pub(crate) seen: Option<CodePosition>,
    pub(crate) list: Option<CompletionList>,
    /// A requested completion: its code, the receiver of the answer, and the list's `steered` flag.
    pub(crate) waits: Option<(CodeContext, Receiver<InquiryAnswer>, bool)>,
    /// Modules of the kernel's environment, once they are listed.
    pub(crate) environment: Option<EnvironmentModules>,
    /// Start of the word for which the list was closed with Escape.
    pub(crate) left: Option<usize>,
    pub(crate) card: Option<HoverCard>,
}

/// Returns whether a dot before the caret belongs to a number.
pub(crate) fn begins_number(around: &CodeContext) -> bool {
    let before = around.code[..around.word].trim_end_matches('.');
    let word = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    before.get(word..).is_none_or(|word| word.is_empty() || word.starts_with(|c: char| c.is_numeric()))
        && !before.ends_with([')', ']', '}', '"', '\''])
}

/// Returns the names that start with the typed text: those the note's cells define, and Python's own.
pub(crate) fn known_names(note: &Note, around: &CodeContext) -> Vec<CompletionChoice> {
    let typed = around.typed();
    if around.dotted() || typed.is_empty() {
        return Vec::new();
    }
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for name in note.all_cell_names().iter().flat_map(|names| &names.defines) {
        if name.starts_with(typed) && name != typed {
            names.entry(name.clone()).or_insert("in this note");
        }
    }
    for word in PYTHON_BUILTIN_WORDS.split_whitespace().filter(|word| word.starts_with(typed) && *word != typed) {
        names.entry(word.to_owned()).or_default();
    }
    names.into_iter().map(|(text, kind)| CompletionChoice { text, kind: kind.to_owned() }).collect()
}

/// Id of the list's area.
pub(crate) fn code_list() -> Id {
    Id::unique("code completion")
}

impl CompletionList {
    pub(crate) fn step(&mut self, to: usize) {
        (self.chosen, self.steered) = (to, true);
    }

    /// After more typing, removes names that no longer match until the kernel answers again.
    pub(crate) fn narrow(&mut self, typed: &str, from: usize) {
        let kept = self.choices.get(self.chosen).map(|choice| choice.text.clone());
        self.choices.retain(|choice| choice.text.starts_with(typed));
        self.chosen = self.choices.iter().position(|choice| Some(&choice.text) == kept.as_ref()).unwrap_or(0);
        self.range = from..from + typed.len();
    }

    /// Draws the list. Returns the index of the clicked choice.
    pub(crate) fn show(&self, ctx: &egui::Context, at: Pos2) -> Option<usize> {
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ThemeColors::for_dark_mode(dark);
        let first = (self.chosen + 1).saturating_sub(MAX_VISIBLE_CODE_CHOICES);
        let mut clicked = None;
        let area = Area::new(code_list()).order(Order::Foreground);
        area.fixed_pos(at + vec2(-space::M, space::XS)).constrain(true).show(ctx, |ui| {
            floating_frame(colours, dark).inner_margin(egui::Margin::same(4)).show(ui, |ui| {
                ui.spacing_mut().item_spacing.y = 0.0;
                for (index, choice) in self.choices.iter().enumerate().skip(first).take(MAX_VISIBLE_CODE_CHOICES) {
                    let (rect, response) = ui.allocate_exact_size(vec2(320.0, size::MIN_CLICK_HEIGHT), Sense::click());
                    if index == self.chosen {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                    } else if response.hovered() {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.raised));
                    }
                    let code = theme::code();
                    let at = pos2(rect.left() + space::S, rect.center().y - code.line / 2.0);
                    let room = rect.width() - 2.0 * space::S;
                    let width = ui::widgets::paint_clipped_text(ui, at, room * 0.7, &choice.text, &code, colours.ink);
                    let about = pos2(at.x + width + space::S, rect.center().y - 8.0);
                    let rest = room - width - space::S;
                    ui::widgets::paint_clipped_text(ui, about, rest, &choice.kind, &theme::caption(), colours.muted);
                    set_accessible_name(&response, Role::ListBoxOption, &choice.text);
                    if response.clicked() {
                        clicked = Some(index);
                    }
                }
                let more = self.choices.len().saturating_sub(MAX_VISIBLE_CODE_CHOICES);
                if more > 0 {
                    let style = theme::caption();
                    let text = format!("{} of {}", self.chosen + 1, self.choices.len());
                    ui.horizontal(|ui| {
                        ui.add_space(space::S);
                        ui.label(egui::RichText::new(text).font(style.font).color(colours.muted));
                    });
                }
            });
        });
        clicked
    }
}

pub(crate) fn show_card(ctx: &egui::Context, at: Pos2, text: &str) {
    let dark = ctx.global_style().visuals.dark_mode;
    let colours = ThemeColors::for_dark_mode(dark);
    let area = Area::new(Id::unique("code card")).order(Order::Tooltip).interactable(false);
    area.fixed_pos(at + vec2(0.0, space::M)).constrain(true).show(ctx, |ui| {
        let frame = floating_frame(colours, dark).inner_margin(egui::Margin::symmetric(12, 8));
        let response = frame.show(ui, |ui| {
            ui.set_max_width(HOVER_CARD_WIDTH);
            let mut job = LayoutJob::default();
            let text = &text::untrusted_text::escape_block(text);
            let (head, doc) = text.split_once("\n\n").unwrap_or((text, ""));
            let (code, small) = (theme::code(), theme::small());
            job.append(head.trim_end(), 0.0, ui::widgets::format(code.font, code.line, colours.ink));
            if !doc.trim().is_empty() {
                let doc = format!("\n{}", doc.trim_end());
                job.append(&doc, 0.0, ui::widgets::format(small.font, small.line, colours.muted));
            }
            job.wrap.max_width = HOVER_CARD_WIDTH;
            job.wrap.max_rows = MAX_HOVER_CARD_LINES;
            ui.label(job);
        });
        set_accessible_name(&response.response, Role::Tooltip, &format!("Hint: {}", text.lines().next().unwrap_or("")));
    });
}
