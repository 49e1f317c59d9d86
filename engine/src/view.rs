//! Generated views: what an agent proposes for a note as a tree of a few controls, in a fenced block whose language
//! is `view`. It holds no code: it names properties of the note and variables of its cells, and what a button asks for.
//! It is read here strictly, and drawn only once the user has said so.

mod data;
mod read;

pub use data::{Curves, Grid, Values, curves, grid, property, words};

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use store::BlobHash;
use text::markdown;

/// The language of the block.
pub const LANGUAGE: &str = "view";
/// A longer block is refused, in bytes.
pub const LARGEST: usize = 16 << 10;
/// More nodes, or nodes inside more others, are refused.
pub const NODES: usize = 200;
/// See [`NODES`].
pub const DEPTH: usize = 8;
/// What a button may ask of the window's own commands: those that concern the cells of the note.
pub const COMMANDS: [&str; 4] = ["note.run_all", "note.run_stale", "note.run_clean", "kernel.restart"];

/// A view.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its title; may be empty.
    pub title: String,
    /// The tree.
    pub root: Node,
}

/// A control.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Nodes below each other.
    Column(Vec<Node>),
    /// Nodes beside each other.
    Row(Vec<Node>),
    /// Words, in which values stand.
    Text {
        /// The pieces in their order.
        pieces: Vec<Piece>,
        /// How they look.
        look: Look,
    },
    /// A table.
    Table {
        /// Its rows.
        rows: Source,
        /// Which columns, in which order; all where none is named.
        columns: Vec<String>,
    },
    /// A plot.
    Plot {
        /// How its numbers are drawn.
        kind: PlotKind,
        /// Along x; counted from 1 where nothing is said.
        x: Option<Source>,
        /// Along y.
        y: Source,
        /// Above it.
        title: String,
    },
    /// Fields that are set together.
    Form {
        /// Above it.
        title: String,
        /// They.
        fields: Vec<Field>,
    },
    /// A number of a property, moved.
    Slider {
        /// The property.
        property: String,
        /// What stands beside it.
        label: String,
        /// The least.
        from: f64,
        /// The most.
        to: f64,
        /// From one value to the next.
        step: f64,
    },
    /// Something to press.
    Button {
        /// What it says.
        label: String,
        /// What it asks for.
        action: Action,
    },
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Words(String),
    /// A value.
    Bound(Name),
}

/// A value by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A property of the note.
    Property(String),
    /// A variable of its cells.
    Variable(String),
}

/// Where values come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// By a name.
    Bound(Name),
    /// As they stand in the view.
    Values(Value),
}

/// How a text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Large.
    Heading,
    /// As the note's text.
    #[default]
    Body,
    /// Small and muted.
    Caption,
}

/// How numbers are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlotKind {
    /// As a line.
    #[default]
    Line,
    /// As bars.
    Bar,
    /// As points.
    Points,
}

/// A field of a form: a property that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The property.
    pub property: String,
    /// What stands beside it.
    pub label: String,
    /// How it is set.
    pub input: Input,
}

/// How a field is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Words.
    Text,
    /// A number.
    Number,
    /// Yes or no.
    Check,
    /// One of these.
    Choice(Vec<String>),
}

/// What a button asks for. The policy decides of it as of what an agent asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A tool.
    Tool {
        /// Its name.
        name: String,
        /// What it is given.
        arguments: Map<String, Value>,
    },
    /// One of [`COMMANDS`].
    Command(String),
}

/// The view that a piece of Markdown holds, if it is a block of that language: its source.
pub fn block(piece: &str) -> Option<&str> {
    let piece = piece.trim_end();
    if !piece.trim_start_matches(' ').starts_with(['`', '~']) {
        return None;
    }
    let (info, code) = markdown::fenced(piece)?;
    info.eq_ignore_ascii_case(LANGUAGE).then(|| &piece[code])
}

/// What the user's word holds for: this very source. Another one asks again.
pub fn name(source: &str) -> BlobHash {
    BlobHash::of(source.trim().as_bytes())
}

/// The source of the view of this name in a note.
pub fn find(text: &str, wanted: BlobHash) -> Option<&str> {
    let mut sources = markdown::pieces(text).into_iter().filter_map(|(range, _)| block(&text[range]));
    sources.find(|source| name(source) == wanted)
}

/// A note's text with each view as what it says: words, tables, and what its controls are set to.
pub fn written(text: &str) -> String {
    if !text.contains(LANGUAGE) {
        return text.to_owned();
    }
    let values = Values { properties: data::properties(text), ..Values::default() };
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, _) in markdown::pieces(text) {
        let Some(source) = block(&text[range.clone()]) else { continue };
        out.push_str(&text[at..range.start]);
        let said = match View::read(source) {
            Ok(view) => view.markdown(&values),
            Err(why) => format!("*This view is not shown: {why}.*"),
        };
        out.push_str(said.trim_end());
        at = range.start + text[range].trim_end().len();
    }
    out.push_str(&text[at..]);
    out
}

impl View {
    /// Reads a view from the block's source.
    ///
    /// # Errors
    /// A sentence: where it does not hold, and why.
    pub fn read(source: &str) -> Result<View, String> {
        read::view(source)
    }

    /// All nodes, those that hold others before what they hold.
    pub fn nodes(&self) -> Vec<&Node> {
        let mut all = Vec::new();
        let mut waiting = vec![&self.root];
        while let Some(node) = waiting.pop() {
            all.push(node);
            if let Node::Column(children) | Node::Row(children) = node {
                waiting.extend(children.iter().rev());
            }
        }
        all
    }

    /// Its buttons in their order.
    pub fn buttons<'a>(&'a self) -> Vec<(&'a str, &'a Action)> {
        let button = |node: &'a Node| match node {
            Node::Button { label, action } => Some((label.as_str(), action)),
            _ => None,
        };
        self.nodes().into_iter().filter_map(button).collect()
    }

    /// The values that it shows, each once.
    pub fn bound(&self) -> BTreeSet<&Name> {
        let mut found = BTreeSet::new();
        for node in self.nodes() {
            match node {
                Node::Text { pieces, .. } => {
                    found.extend(pieces.iter().filter_map(|piece| match piece {
                        Piece::Bound(name) => Some(name),
                        Piece::Words(_) => None,
                    }));
                }
                Node::Table { rows, .. } => found.extend(rows.bound()),
                Node::Plot { x, y, .. } => {
                    found.extend(y.bound().into_iter().chain(x.iter().filter_map(Source::bound)))
                }
                Node::Column(_) | Node::Row(_) | Node::Form { .. } | Node::Slider { .. } | Node::Button { .. } => {}
            }
        }
        found
    }

    /// The variables that it shows.
    pub fn variables(&self) -> Vec<String> {
        let variable = |name: &&Name| match name {
            Name::Variable(name) => Some(name.clone()),
            Name::Property(_) => None,
        };
        self.bound().iter().filter_map(variable).collect()
    }

    /// What it shows and does, in a sentence for the user who decides whether it is drawn.
    pub fn summary(&self) -> String {
        let count = |word: &str, of: fn(&Node) -> bool| {
            let count = self.nodes().into_iter().filter(|node| of(node)).count();
            match count {
                0 => None,
                1 => Some(format!("1 {word}")),
                many => Some(format!("{many} {word}s")),
            }
        };
        let parts = [
            count("text", |node| matches!(node, Node::Text { .. })),
            count("table", |node| matches!(node, Node::Table { .. })),
            count("plot", |node| matches!(node, Node::Plot { .. })),
            count("form", |node| matches!(node, Node::Form { .. })),
            count("slider", |node| matches!(node, Node::Slider { .. })),
            count("button", |node| matches!(node, Node::Button { .. })),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let mut said =
            format!("It has {}.", if parts.is_empty() { "nothing to show".to_owned() } else { parts.join(", ") });
        let mut sets: Vec<&str> = Vec::new();
        for node in self.nodes() {
            match node {
                Node::Slider { property, .. } => sets.push(property),
                Node::Form { fields, .. } => sets.extend(fields.iter().map(|field| field.property.as_str())),
                _ => {}
            }
        }
        sets.sort_unstable();
        sets.dedup();
        if !sets.is_empty() {
            said.push_str(&format!(" It sets the properties {}.", sets.join(", ")));
        }
        for (label, action) in self.buttons() {
            said.push_str(&format!(" \u{201c}{label}\u{201d} asks for {}.", action.words()));
        }
        said
    }

    /// The same as Markdown: what it says, and what its controls are set to.
    pub fn markdown(&self, values: &Values) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            out.push_str(&format!("**{}**\n\n", data::plain(&self.title)));
        }
        for node in self.nodes() {
            let said = match node {
                Node::Column(_) | Node::Row(_) | Node::Button { .. } => continue,
                Node::Text { pieces, look } => {
                    let text = data::plain(&values.text(pieces));
                    if *look == Look::Heading { format!("**{text}**") } else { text }
                }
                Node::Table { rows, columns } => match values.of(rows) {
                    Some(value) => grid(value, columns).markdown(),
                    None => rows.missing(),
                },
                Node::Plot { y, x, title, .. } => {
                    let said = match values.of(y) {
                        Some(y) => curves(x.as_ref().and_then(|x| values.of(x)), y).markdown(),
                        None => y.missing(),
                    };
                    if title.is_empty() { said } else { format!("*{}*\n\n{said}", data::plain(title)) }
                }
                Node::Form { fields, title } => {
                    let line =
                        |field: &Field| format!("- {}: {}", data::plain(&field.label), values.set(&field.property));
                    let lines: Vec<String> = fields.iter().map(line).collect();
                    let lead = if title.is_empty() { String::new() } else { format!("*{}*\n\n", data::plain(title)) };
                    format!("{lead}{}", lines.join("\n"))
                }
                Node::Slider { property, label, .. } => format!("{}: {}", data::plain(label), values.set(property)),
            };
            out.push_str(said.trim_end());
            out.push_str("\n\n");
        }
        out
    }
}

impl Action {
    /// What is asked for, in words.
    pub fn words(&self) -> String {
        match self {
            Action::Command(id) => {
                let title = crate::commands::command(id).map_or(id.as_str(), |command| command.title);
                format!("the command \u{201c}{title}\u{201d}")
            }
            Action::Tool { name, arguments } => match agent::policy::main_argument(arguments) {
                "" => format!("the tool {name}"),
                subject => format!("the tool {name}: {}", subject.lines().next().unwrap_or_default()),
            },
        }
    }
}

impl Source {
    /// Its name, if it has one.
    pub fn bound(&self) -> Option<&Name> {
        match self {
            Source::Bound(name) => Some(name),
            Source::Values(_) => None,
        }
    }

    fn missing(&self) -> String {
        match self {
            Source::Bound(Name::Property(name)) => format!("*The note has no property {}.*", data::plain(name)),
            Source::Bound(Name::Variable(name)) => format!("*Here stands the variable {}.*", data::plain(name)),
            Source::Values(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
