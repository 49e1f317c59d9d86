//! Building blocks of the window: theme, icons, controls, pickers and toasts. Nothing here knows notes.

#![allow(
    missing_docs,
    reason = "what is public here is so for sibling crates of this program; fields say what they are"
)]

pub mod empty_state;
pub mod force_layout;
pub mod fuzzy;
pub mod icons;
pub mod layout;
pub mod picker;
pub mod setting_rows;
pub mod text;
pub mod theme;
pub mod time;
pub mod toasts;
pub mod widgets;
