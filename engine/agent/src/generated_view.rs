//! Generated views: trees of a few controls that an agent proposes for a note, in a fenced block with the language
//! `view`. A view contains no code. It names properties of the note, variables of its cells, and the actions of
//! buttons. It's parsed strictly here, and drawn only after the user has approved it.

mod data;
mod read;

pub use data::{PlotCurves, ViewValues, WordGrid, property_value, to_curves, to_grid, value_text};

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use store::BlobHash;
use text::markdown;

/// Info string of the code block that holds a view.
pub const VIEW_LANGUAGE: &str = "view";
/// Maximum size of a view's source.
pub const MAX_VIEW_BYTES: usize = 16 << 10;
/// Maximum number of nodes in a view.
pub const MAX_VIEW_NODES: usize = 200;
/// Maximum nesting of nodes in a view.
pub const MAX_VIEW_DEPTH: usize = 8;
/// A command of the window that a button may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ButtonCommand {
    /// Id of the command.
    pub id: &'static str,
    /// Title of the command in the user interface.
    pub title: &'static str,
}

/// Commands of the window that a button may run: those for the cells of the note.
pub const BUTTON_COMMANDS: [ButtonCommand; 4] = [
    ButtonCommand { id: "note.run_all", title: "Run all cells" },
    ButtonCommand { id: "note.run_stale", title: "Run stale cells" },
    ButtonCommand { id: "note.run_clean", title: "Restart and run all" },
    ButtonCommand { id: "kernel.restart", title: "Restart kernel" },
];

/// A generated view: controls that an agent described as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentView {
    /// Title of the view; may be empty.
    pub title: String,
    /// The root of the tree of controls.
    pub root: ViewNode,
}

/// A control of a generated view.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewNode {
    /// Nodes below each other.
    Column(Vec<ViewNode>),
    /// Nodes side by side.
    Row(Vec<ViewNode>),
    /// Text that may contain values.
    Text {
        /// Segments of the text in order.
        pieces: Vec<TextSegment>,
        /// Size and color of the text.
        look: TextLook,
    },
    /// A table of values.
    Table {
        /// The rows: a list of objects.
        rows: ValueSource,
        /// Names of the columns to show, in order; empty for all.
        columns: Vec<String>,
    },
    /// A line, bar or scatter plot.
    Plot {
        /// The kind of plot.
        kind: PlotKind,
        /// Values along x; `None` counts from 1.
        x: Option<ValueSource>,
        /// Values along y.
        y: ValueSource,
        /// Title above the plot.
        title: String,
    },
    /// Fields that are submitted together.
    Form {
        /// Title above the form.
        title: String,
        /// Fields of the form in order.
        fields: Vec<FormField>,
    },
    /// A slider for a numeric property.
    Slider {
        /// Name of the property.
        property: String,
        /// Label next to the slider.
        label: String,
        /// Smallest value.
        from: f64,
        /// Largest value.
        to: f64,
        /// Distance between two values.
        step: f64,
    },
    /// A button that runs an action.
    Button {
        /// Label of the button.
        label: String,
        /// The action to run.
        action: ButtonAction,
    },
}

/// A segment of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSegment {
    /// Literal text.
    Words(String),
    /// The value with this name.
    Bound(ValueName),
}

/// The name of a property or variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueName {
    /// A property of the note.
    Property(String),
    /// A variable of the note's cells.
    Variable(String),
}

/// The source of values.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSource {
    /// Read from a property or variable.
    Bound(ValueName),
    /// Written in the view itself.
    Values(Value),
}

/// Style of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextLook {
    /// Large, as a heading.
    Heading,
    /// Normal size.
    #[default]
    Body,
    /// Small and muted.
    Caption,
}

/// Kind of plot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlotKind {
    /// Points connected by a line.
    #[default]
    Line,
    /// Vertical bars.
    Bar,
    /// Points without a line.
    Points,
}

/// A form field, which sets a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormField {
    /// Name of the property.
    pub property: String,
    /// Label next to the field.
    pub label: String,
    /// The kind of input.
    pub input: FieldInput,
}

/// The kind of input of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldInput {
    /// A line of text.
    Text,
    /// A number.
    Number,
    /// A checkbox.
    Check,
    /// One of several values.
    Choice(Vec<String>),
}

/// The action of a button. The policy checks it like an agent's call.
#[derive(Clone, Debug, PartialEq)]
pub enum ButtonAction {
    /// Calls a tool, subject to the policy.
    Tool {
        /// Name of the tool.
        name: String,
        /// Arguments of the call.
        arguments: Map<String, Value>,
    },
    /// Runs one of [`BUTTON_COMMANDS`].
    Command(ButtonCommand),
}

/// Returns the source of a view if a piece of Markdown is a fenced block with that language.
pub fn view_source(piece: &str) -> Option<&str> {
    let piece = piece.trim_end();
    if !piece.trim_start_matches(' ').starts_with(['`', '~']) {
        return None;
    }
    let (info, code) = markdown::parse_fenced_block(piece)?;
    info.eq_ignore_ascii_case(VIEW_LANGUAGE).then(|| &piece[code])
}

/// Returns the hash of a view's source, to which the user's approval applies. Changed source needs a new approval.
pub fn source_hash(source: &str) -> BlobHash {
    BlobHash::of(source.trim().as_bytes())
}

/// Returns the source of the view in a note whose [`source_hash`] is `wanted`.
pub fn find_view(text: &str, wanted: BlobHash) -> Option<&str> {
    let mut sources = markdown::top_level_pieces(text).into_iter().filter_map(|(range, _)| view_source(&text[range]));
    sources.find(|source| source_hash(source) == wanted)
}

/// Returns a note's text with each view replaced by its content: text, tables, and the values of controls.
pub fn text_with_views(text: &str) -> String {
    if !text.contains(VIEW_LANGUAGE) {
        return text.to_owned();
    }
    let values = ViewValues { properties: data::note_properties(text), ..ViewValues::default() };
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, _) in markdown::top_level_pieces(text) {
        let Some(source) = view_source(&text[range.clone()]) else { continue };
        out.push_str(&text[at..range.start]);
        let said = match AgentView::parse(source) {
            Ok(view) => view.to_markdown(&values),
            Err(why) => format!("*This view is not shown: {why}.*"),
        };
        out.push_str(said.trim_end());
        at = range.start + text[range].trim_end().len();
    }
    out.push_str(&text[at..]);
    out
}

/// Why a view isn't valid, and where: a sentence for the agent and the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ViewParseError(String);

impl From<String> for ViewParseError {
    fn from(why: String) -> ViewParseError {
        ViewParseError(why)
    }
}

impl AgentView {
    /// Parses a view from the block's source.
    ///
    /// # Errors
    /// Returns the place and the reason if the source isn't a valid view.
    pub fn parse(source: &str) -> Result<AgentView, ViewParseError> {
        read::parse_view(source)
    }

    /// Returns all nodes, parents before their children.
    pub fn all_nodes(&self) -> Vec<&ViewNode> {
        let mut all = Vec::new();
        let mut waiting = vec![&self.root];
        while let Some(node) = waiting.pop() {
            all.push(node);
            if let ViewNode::Column(children) | ViewNode::Row(children) = node {
                waiting.extend(children.iter().rev());
            }
        }
        all
    }

    /// Returns the label and action of each button, in order.
    pub fn buttons<'a>(&'a self) -> Vec<(&'a str, &'a ButtonAction)> {
        let button = |node: &'a ViewNode| match node {
            ViewNode::Button { label, action } => Some((label.as_str(), action)),
            _ => None,
        };
        self.all_nodes().into_iter().filter_map(button).collect()
    }

    /// Returns the names of the values that the view shows, without duplicates.
    pub fn bound_names(&self) -> BTreeSet<&ValueName> {
        let mut found = BTreeSet::new();
        for node in self.all_nodes() {
            match node {
                ViewNode::Text { pieces, .. } => {
                    found.extend(pieces.iter().filter_map(|piece| match piece {
                        TextSegment::Bound(name) => Some(name),
                        TextSegment::Words(_) => None,
                    }));
                }
                ViewNode::Table { rows, .. } => found.extend(rows.bound_name()),
                ViewNode::Plot { x, y, .. } => {
                    found.extend(y.bound_name().into_iter().chain(x.iter().filter_map(ValueSource::bound_name)))
                }
                ViewNode::Column(_)
                | ViewNode::Row(_)
                | ViewNode::Form { .. }
                | ViewNode::Slider { .. }
                | ViewNode::Button { .. } => {}
            }
        }
        found
    }

    /// Returns the names of the variables that the view shows.
    pub fn variable_names(&self) -> Vec<String> {
        let variable = |name: &&ValueName| match name {
            ValueName::Variable(name) => Some(name.clone()),
            ValueName::Property(_) => None,
        };
        self.bound_names().iter().filter_map(variable).collect()
    }

    /// Summarizes what the view shows and does, for the user who decides whether to draw it.
    pub fn summary(&self) -> String {
        let count = |word: &str, of: fn(&ViewNode) -> bool| {
            let count = self.all_nodes().into_iter().filter(|node| of(node)).count();
            match count {
                0 => None,
                1 => Some(format!("1 {word}")),
                many => Some(format!("{many} {word}s")),
            }
        };
        let parts = [
            count("text", |node| matches!(node, ViewNode::Text { .. })),
            count("table", |node| matches!(node, ViewNode::Table { .. })),
            count("plot", |node| matches!(node, ViewNode::Plot { .. })),
            count("form", |node| matches!(node, ViewNode::Form { .. })),
            count("slider", |node| matches!(node, ViewNode::Slider { .. })),
            count("button", |node| matches!(node, ViewNode::Button { .. })),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let mut said =
            format!("It has {}.", if parts.is_empty() { "nothing to show".to_owned() } else { parts.join(", ") });
        let mut sets: Vec<&str> = Vec::new();
        for node in self.all_nodes() {
            match node {
                ViewNode::Slider { property, .. } => sets.push(property),
                ViewNode::Form { fields, .. } => sets.extend(fields.iter().map(|field| field.property.as_str())),
                _ => {}
            }
        }
        sets.sort_unstable();
        sets.dedup();
        if !sets.is_empty() {
            said.push_str(&format!(" It sets the properties {}.", sets.join(", ")));
        }
        for (label, action) in self.buttons() {
            said.push_str(&format!(" \u{201c}{label}\u{201d} asks for {}.", action.describe()));
        }
        said
    }

    /// Converts the view to Markdown: its text, and the values of its controls.
    pub fn to_markdown(&self, values: &ViewValues) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            out.push_str(&format!("**{}**\n\n", data::escape_markdown(&self.title)));
        }
        for node in self.all_nodes() {
            let said = match node {
                ViewNode::Column(_) | ViewNode::Row(_) | ViewNode::Button { .. } => continue,
                ViewNode::Text { pieces, look } => {
                    let text = data::escape_markdown(&values.fill_text(pieces));
                    if *look == TextLook::Heading { format!("**{text}**") } else { text }
                }
                ViewNode::Table { rows, columns } => match values.source_value(rows) {
                    Some(value) => to_grid(value, columns).to_markdown(),
                    None => rows.placeholder(),
                },
                ViewNode::Plot { y, x, title, .. } => {
                    let said = match values.source_value(y) {
                        Some(y) => to_curves(x.as_ref().and_then(|x| values.source_value(x)), y).to_markdown(),
                        None => y.placeholder(),
                    };
                    if title.is_empty() { said } else { format!("*{}*\n\n{said}", data::escape_markdown(title)) }
                }
                ViewNode::Form { fields, title } => {
                    let line = |field: &FormField| {
                        format!("- {}: {}", data::escape_markdown(&field.label), values.property_text(&field.property))
                    };
                    let lines: Vec<String> = fields.iter().map(line).collect();
                    let lead = if title.is_empty() {
                        String::new()
                    } else {
                        format!("*{}*\n\n", data::escape_markdown(title))
                    };
                    format!("{lead}{}", lines.join("\n"))
                }
                ViewNode::Slider { property, label, .. } => {
                    format!("{}: {}", data::escape_markdown(label), values.property_text(property))
                }
            };
            out.push_str(said.trim_end());
            out.push_str("\n\n");
        }
        out
    }
}

impl ButtonAction {
    /// Describes the action for the user.
    pub fn describe(&self) -> String {
        match self {
            ButtonAction::Command(command) => format!("the command \u{201c}{}\u{201d}", command.title),
            ButtonAction::Tool { name, arguments } => match crate::policy::main_argument(arguments) {
                "" => format!("the tool {name}"),
                subject => format!("the tool {name}: {}", subject.lines().next().unwrap_or_default()),
            },
        }
    }
}

impl ValueSource {
    /// Returns the name of the property or variable; `None` if the values are in the view itself.
    pub fn bound_name(&self) -> Option<&ValueName> {
        match self {
            ValueSource::Bound(name) => Some(name),
            ValueSource::Values(_) => None,
        }
    }

    fn placeholder(&self) -> String {
        match self {
            ValueSource::Bound(ValueName::Property(name)) => {
                format!("*The note has no property {}.*", data::escape_markdown(name))
            }
            ValueSource::Bound(ValueName::Variable(name)) => {
                format!("*Variable {}*", data::escape_markdown(name))
            }
            ValueSource::Values(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
