//! Pure text functions: Markdown, links, outlines, properties, YAML, tasks, edits, differences, Python scopes and
//! dates. This crate knows no sessions, open notes or files.

pub mod ansi;
pub mod attachment_link;
pub mod block_edits;
pub mod cell_form;
pub mod clean_run;
pub mod commit_mark;
pub mod composed_letters;
pub mod dataflow;
pub mod date_format;
pub mod diff;
pub mod find_query;
pub mod history;
pub mod html_size;
pub mod kernel_properties;
mod link_names;
pub mod links;
pub mod markdown;
pub mod note_merge;
pub mod outline;
pub mod properties;
pub mod python_scope;
mod recurrence;
pub mod repeated_commits;
pub mod script_packages;
pub mod sql_cell;
pub mod task;
pub mod text_edit;
pub mod theme_file;
pub mod time;
pub mod time_zone;
pub mod undo;
pub mod unified_diff;
pub mod untrusted_text;
pub mod version_merge;
pub mod widget;
pub mod yaml_edit;
