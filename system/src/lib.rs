//! The read-only system volume, embedded in the program: content that every workspace has without storing it.
//!
//! It consists of the guide, the sample, the default configuration, and agents with their prompts. This crate imports
//! nothing, does no IO, and doesn't change at run time.

/// A file of the system volume: its path with `/` separators, and its bytes.
pub type EmbeddedFile = (&'static str, &'static [u8]);

macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../assets/sample/", $path)).as_slice())),*]
    };
}

/// The sample volume that the first start creates.
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

macro_rules! guide {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../docs/guide/", $name)).as_slice())),*]
    };
}

/// The guide, which the window opens as a volume.
pub const GUIDE_FILES: &[EmbeddedFile] = guide![
    "agents.md",
    "approvals-and-safety.md",
    "collections.md",
    "command-line.md",
    "components.md",
    "configuration.md",
    "containers.md",
    "daily-notes-and-templates.md",
    "devices-and-sync.md",
    "editors-and-agents.md",
    "faq.md",
    "first-steps.md",
    "forks.md",
    "from-jupyter.md",
    "from-notion.md",
    "from-obsidian.md",
    "git.md",
    "history-and-trash.md",
    "hub.md",
    "import-and-export.md",
    "index.md",
    "kernels.md",
    "keys.md",
    "links-and-graph.md",
    "mcp-prompts-and-resources.md",
    "memory-and-traces.md",
    "models.md",
    "notes-and-folders.md",
    "packages.md",
    "plots-and-tables.md",
    "python-cells.md",
    "schedules-and-events.md",
    "scripts.md",
    "search.md",
    "serving.md",
    "settings-and-keys.md",
    "subcommands.md",
    "tasks-and-agenda.md",
    "tools-and-mcp.md",
    "volumes.md",
    "web-pages.md",
    "troubleshooting.md",
    "widgets-and-sql.md",
    "workers.md",
    "writing.md",
];

/// The default configuration, which documents every key (read by `agent::config`).
pub const DEFAULT_CONFIG: &str = include_str!("config.yaml");

macro_rules! agents {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../agents/", $name)).as_slice())),*]
    };
}

/// The built-in agents, as Markdown with front matter; the first one is the default.
pub const BUILT_IN_AGENTS: &[EmbeddedFile] = agents![
    "assistant.md",
    "memory-analysis.md",
    "memory-consolidation.md",
    "frontend.md",
    "backend.md",
    "mobile.md",
    "devops.md",
    "security.md",
    "qa.md",
    "docs.md",
    "data.md",
    "system.md",
    "lead.md",
    "planner.md",
];

/// Prompt for a model that summarizes a conversation.
pub const SUMMARY_PROMPT: &str = include_str!("../agents/summary.md");
