//! Overlays above the rest of the window: palette, search, settings, dialogs, menus and cards.

pub(crate) mod code_completion;
pub(crate) mod command_aliases;
pub(crate) mod command_palette;
pub(crate) mod dialogs;
pub(crate) mod export_form;
pub(crate) mod file_path_field;
pub(crate) mod find_bar;
pub(crate) mod hover;
pub(crate) mod interpreter_form;
pub(crate) mod kernel_permissions_form;
pub(crate) mod link_completion;
pub(crate) mod note_packages_form;
pub(crate) mod open_folder_form;
pub(crate) mod open_repository_form;
pub(crate) mod python_setup_form;
pub(crate) mod science_pack_form;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod slash_menu;
pub(crate) mod window_overlay;
