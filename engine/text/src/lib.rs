//! Pure text: Markdown, links, outlines, properties, YAML, tasks, edits, differences, Python scopes and dates. Nothing here knows a
//! session, a note that is open, or a file.

pub mod compare;
pub mod flow;
pub mod history;
pub mod links;
pub mod markdown;
pub mod names;
pub mod outline;
pub mod printed;
pub mod properties;
pub mod splice;
pub mod task;
pub mod time;
pub mod visible;
pub mod yaml;
pub mod zone;
