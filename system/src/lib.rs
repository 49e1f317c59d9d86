//! The read-only system volume, embedded in the program: what every workspace has without having to hold it.
//!
//! So far that is the sample with its guides, and the default configuration; agents, prompts and tools join it. This
//! crate imports nothing, does no IO, and does not change at run time.

/// A file of the system volume: its path, `/` between the parts, and its bytes.
pub type EmbeddedFile = (&'static str, &'static [u8]);

macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../assets/sample/", $path)).as_slice())),*]
    };
}

/// The sample volume that a first start brings along.
pub const SAMPLE_FILES: &[EmbeddedFile] = sample![
    "Welcome.md",
    "Guide/Command line.md",
    "Guide/Keys and commands.md",
    "Guide/Writing.md",
    "Guide/Your files.md",
    "Python/First cells.md",
    "Python/Rainfall.md",
    "Python/When something goes wrong.md",
    "Python/data/rainfall.csv",
];

/// The default configuration: every key with what it means (read by `agent::config`).
pub const DEFAULT_CONFIG: &str = include_str!("config.yaml");

macro_rules! agents {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../agents/", $name)).as_slice())),*]
    };
}

/// The agents that come with the program, as Markdown with front matter; the first is the one that answers.
pub const BUILT_IN_AGENTS: &[EmbeddedFile] = agents![
    "assistant.md",
    "memory-analysis.md",
    "memory-consolidation.md",
    "frontend.md",
    "backend.md",
    "devops.md",
    "security.md",
    "qa.md",
    "docs.md",
    "data.md",
    "system.md",
    "lead.md",
    "planner.md",
];

/// What a model that summarises a conversation is told.
pub const SUMMARY_PROMPT: &str = include_str!("../agents/summary.md");
