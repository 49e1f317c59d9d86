//! Building blocks of the window: theme, icons, controls, pickers and toasts. This crate knows nothing about notes.

pub mod command_menu;
pub mod dialog_parts;
pub mod empty_state;
pub mod fallback_fonts;
pub mod focus_in_sight;
pub mod force_layout;
pub mod fuzzy;
pub mod icons;
pub mod key_names;
pub mod layout;
pub mod menus;
pub mod page_parts;
pub mod picker;
pub mod picture_choices;
pub mod setting_rows;
pub mod text;
pub mod theme;
pub mod time;
pub mod toasts;
pub mod widgets;
