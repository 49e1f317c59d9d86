//! What every part of the window is made of: theme, icons, controls, pickers and toasts. Nothing here knows a note.

pub mod controls;
pub mod fuzzy;
pub mod hits;
pub mod icons;
pub mod layout;
pub mod states;
pub mod text;
pub mod toasts;
pub mod tokens;
