//! Pages of the settings with one control for each setting: appearance, window, editor, notes, spelling.

use crate::SettingsChange;
use eframe::egui;
use egui::{Id, Sense, Ui, pos2, vec2};
use engine::{ColorTheme, ENVIRONMENT_KERNEL, EnterInsertion, ReducedMotion, SCIENCE_KERNEL, Settings};
use jiff::Zoned;
use ui::icons;
use ui::setting_rows::{SettingsRows, points, segmented_control, stepper, text, toggle_switch};
use ui::theme::{self, ThemeColors, space};
use ui::time::write_date;
use ui::widgets::{chip_button, icon_button, paint_clipped_text, text_button};

/// Draws the page of appearance.
pub fn show_appearance(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row("Theme", "Follow the system, or always use light or dark.", |ui| {
        let all = [ColorTheme::System, ColorTheme::Light, ColorTheme::Dark];
        let chosen = all.iter().position(|theme| *theme == settings.theme);
        if let Some(place) = segmented_control(ui, &["System", "Light", "Dark"], chosen) {
            changes.push(SettingsChange::Theme(all[place]));
        }
    });
    lines.show_matching_row("High contrast", "Text and lines stand out more from the background.", |ui| {
        if toggle_switch(ui, "High contrast", settings.contrast) {
            changes.push(SettingsChange::Contrast(!settings.contrast));
        }
    });
    lines.show_matching_row("Reduce motion", "Panels and overlays appear without animation.", |ui| {
        ui.spacing_mut().item_spacing.x = space::XS;
        let all = [(ReducedMotion::Off, "Off"), (ReducedMotion::On, "On"), (ReducedMotion::System, "System")];
        for (choice, text) in all {
            let is_chosen = choice == settings.reduce_motion;
            if chip_button(ui, text, &format!("Reduce motion: {text}"), is_chosen, &theme::caption()) {
                changes.push(SettingsChange::ReduceMotion(choice));
            }
        }
    });
    lines.show_matching_row("Zoom", "The whole window, 50 to 300 %.", |ui| {
        if let Some(scale) = stepper(ui, "zoom", settings.scale, 0.5..=3.0) {
            changes.push(SettingsChange::Scale(scale));
        }
    });
    lines.show_matching_row("Text size in notes", "70 to 200 %, in addition to the zoom.", |ui| {
        if let Some(text) = stepper(ui, "text size", settings.text_scale, 0.7..=2.0) {
            changes.push(SettingsChange::Text(text));
        }
    });
}

/// Draws the page of the window and the tree.
pub fn show_window(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row("Left panel", "The tree of volumes, folders and notes.", |ui| {
        if toggle_switch(ui, "Left panel", settings.left_open) {
            changes.push(SettingsChange::Left(!settings.left_open));
        }
    });
    lines.show_matching_row("Left panel width", "180 to 400 points. You can also drag its edge.", |ui| {
        if let Some(width) = points(ui, "left panel width", settings.left_panel_width, 180.0..=400.0) {
            changes.push(SettingsChange::LeftWidth(width));
        }
    });
    lines.show_matching_row("Right panel", "Outline, links, variables and the agent.", |ui| {
        if toggle_switch(ui, "Right panel", settings.right_open) {
            changes.push(SettingsChange::Right(!settings.right_open));
        }
    });
    lines.show_matching_row("Right panel width", "280 to 560 points.", |ui| {
        if let Some(width) = points(ui, "right panel width", settings.right_panel_width, 280.0..=560.0) {
            changes.push(SettingsChange::RightWidth(width));
        }
    });
    let (wide, high) = settings.window;
    lines.show_matching_row("Window size", &format!("{wide:.0} by {high:.0} points, kept after a restart."), |ui| {
        if text_button(ui, "Reset to 1280 by 800", false).clicked() {
            changes.push(SettingsChange::WindowSize);
        }
    });
    lines.show_matching_row("Recent notes", "Lists the last opened notes above the volumes.", |ui| {
        if toggle_switch(ui, "Recent notes", settings.recent_open) {
            changes.push(SettingsChange::RecentOpen(!settings.recent_open));
        }
    });
    let folders = count(settings.unfolded.len(), "folder");
    lines.show_matching_row("Expanded folders", &format!("{folders}, kept after a restart."), |ui| {
        if text_button(ui, "Collapse all", false).clicked() {
            changes.push(SettingsChange::FoldTree);
        }
    });
    let tabs = if settings.panes.is_some() { "Kept after a restart." } else { "A single note, kept after a restart." };
    lines.show_matching_row("Tabs and splits", tabs, |ui| {
        if text_button(ui, "Close other tabs", false).clicked() {
            changes.push(SettingsChange::CloseTabs);
        }
    });
    let recent = count(settings.recent.len(), "note");
    lines.show_matching_row(
        "History of opened notes",
        &format!("{recent}, used by the switcher and at the next start."),
        |ui| {
            let kept = (settings.recent.clone(), settings.last_note);
            if let Some((notes, last)) = clear_button(ui, ("Clear history", "Restore history"), &kept) {
                changes.push(SettingsChange::Recent(notes, last));
            }
        },
    );
    lines.show_matching_row(
        "Starred notes",
        &format!("{}, listed above the tree.", count(settings.starred.len(), "note")),
        |ui| {
            if let Some(notes) = clear_button(ui, ("Remove all stars", "Restore stars"), &settings.starred) {
                changes.push(SettingsChange::Starred(notes));
            }
        },
    );
    let about = "From the desktop, while you use another window: a long cell or run ended, or needs approval.";
    lines.show_matching_row("Notifications", about, |ui| {
        if toggle_switch(ui, "Notifications", settings.notifications) {
            changes.push(SettingsChange::Notifications(!settings.notifications));
        }
    });
}

/// Draws the page of the editor.
pub fn show_editor(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row(
        "Enter inserts",
        "In running text. With “New line”, press it twice for a paragraph.",
        |ui| {
            let all = [EnterInsertion::Line, EnterInsertion::Paragraph];
            let chosen = all.iter().position(|insertion| *insertion == settings.enter);
            if let Some(place) = segmented_control(ui, &["New line", "New paragraph"], chosen) {
                changes.push(SettingsChange::Enter(all[place]));
            }
        },
    );
    lines.show_matching_row("Line numbers", "Beside the code of cells and scripts.", |ui| {
        if toggle_switch(ui, "Line numbers", settings.line_numbers) {
            changes.push(SettingsChange::LineNumbers(!settings.line_numbers));
        }
    });
}

/// Draws the page of notes and files.
pub fn show_notes(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row(
        "Default kernel",
        "For notes that name none. Science is a download of 98 MB; an environment is a .venv beside the note.",
        |ui| {
            let all = [None, Some(SCIENCE_KERNEL), Some(ENVIRONMENT_KERNEL)];
            let chosen = all.iter().position(|kernel| *kernel == settings.default_kernel.as_deref());
            if let Some(place) = segmented_control(ui, &["Instant", "Science", "Environment"], chosen) {
                changes.push(SettingsChange::DefaultKernel(all[place].map(ToOwned::to_owned)));
            }
        },
    );
    lines.show_matching_row("Daily notes folder", "A folder in the volume. Leave empty for its top level.", |ui| {
        if let Some(folder) = text(ui, "Daily notes folder", &settings.daily_folder, "none") {
            changes.push(SettingsChange::DailyFolder(folder.trim().trim_matches('/').to_owned()));
        }
    });
    let today = match write_date(&settings.daily_format, &Zoned::now()) {
        Ok(today) => format!("Today: {today}. %Y year, %m month, %d day, %A weekday."),
        Err(why) => format!("{why}."),
    };
    lines.show_matching_row("Daily note names", &today, |ui| {
        if let Some(format) = text(ui, "Daily note names", &settings.daily_format, "%Y-%m-%d") {
            changes.push(SettingsChange::DailyFormat(format.trim().to_owned()));
        }
    });
    lines.show_matching_row(
        "Daily note template",
        "A note in the volume. Without one, a daily note starts with its name.",
        |ui| {
            if let Some(path) = text(ui, "Daily note template", &settings.daily_template, "none") {
                changes.push(SettingsChange::DailyTemplate(path.trim().to_owned()));
            }
        },
    );
    lines.show_matching_row("Templates folder", "Insert template offers its notes.", |ui| {
        if let Some(folder) = text(ui, "Templates folder", &settings.templates, "Templates") {
            changes.push(SettingsChange::Templates(folder.trim().trim_matches('/').to_owned()));
        }
    });
    lines.show_matching_row(
        "Attachment folder",
        "For pasted pictures and dropped files. Empty: beside the note; /name: in the volume.",
        |ui| {
            if let Some(folder) = text(ui, "Attachment folder", &settings.attachment_folder, "beside the note") {
                let (top, name) = (folder.trim().starts_with('/'), folder.trim().trim_matches('/'));
                changes.push(SettingsChange::AttachmentFolder(format!("{}{name}", if top { "/" } else { "" })));
            }
        },
    );
}

/// Draws the page of spelling.
pub fn show_spelling(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row("Check spelling", "Uses the dictionaries that the system has installed.", |ui| {
        if toggle_switch(ui, "Check spelling", settings.spelling) {
            changes.push(SettingsChange::Spelling(!settings.spelling));
        }
    });
    lines.show_matching_row("Your dictionary", "Words that count as correct. Press Enter to add one.", |ui| {
        if let Some(word) = text(ui, "Add a word", "", "Add a word") {
            let word = word.trim().to_owned();
            if !word.is_empty() && !settings.spelling_dictionary.contains(&word) {
                changes.push(SettingsChange::Words([settings.spelling_dictionary.clone(), vec![word]].concat()));
            }
        }
    });
    let words = &settings.spelling_dictionary;
    if let Some(words) = show_removed_entry(lines, DICTIONARY_LIST, words) {
        changes.push(SettingsChange::Words(words));
    }
    if !lines.wanted.is_empty() {
        return;
    }
    let ui = &mut *lines.ui;
    for (index, word) in words.iter().enumerate() {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 32.0), Sense::hover());
        let at = pos2(rect.left(), rect.center().y - 10.0);
        paint_clipped_text(ui, at, rect.width() - 60.0, word, &theme::small(), ThemeColors::of(ui).ink);
        let corner = egui::Rect::from_min_max(pos2(rect.right() - theme::size::MIN_CLICK_HEIGHT, rect.top()), rect.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(corner).id_salt(("word", word)));
        if icon_button(&mut child, icons::X, &format!("Remove {word} from the dictionary"), None).clicked() {
            changes.push(SettingsChange::Words(remove_entry(ui, DICTIONARY_LIST, (index, word), words)));
        }
    }
}

/// Name of the user's dictionary among the lists that entries can be removed from.
const DICTIONARY_LIST: &str = "dictionary";

/// What was removed last from a list of the settings: its name, and the list before and after.
type RemovedFromList<T> = (String, Vec<T>, Vec<T>);

fn removed_id(list: &str) -> Id {
    Id::unique("removed from").with(list)
}

/// Returns a list without an entry, which [`show_removed_entry`] can bring back. `name`: of the entry.
pub(crate) fn remove_entry<T>(ui: &Ui, list: &str, (at, name): (usize, &str), entries: &[T]) -> Vec<T>
where
    T: Clone + Send + Sync + 'static,
{
    let left = [&entries[..at], &entries[at + 1..]].concat();
    let removed: RemovedFromList<T> = (name.to_owned(), entries.to_vec(), left.clone());
    ui.data_mut(|data| data.insert_temp(removed_id(list), removed));
    left
}

/// Draws a row that brings back what was removed last from a list, until the list changes. Returns the list as it was
/// before, if the user wants it back.
pub(crate) fn show_removed_entry<T>(lines: &mut SettingsRows<'_>, list: &str, entries: &[T]) -> Option<Vec<T>>
where
    T: Clone + PartialEq + Send + Sync + 'static,
{
    let removed = lines.ui.data(|data| data.get_temp::<RemovedFromList<T>>(removed_id(list)));
    let (name, before, _) = removed.filter(|(.., left)| left.as_slice() == entries)?;
    let mut is_undone = false;
    lines.show_matching_row("Removed", &name, |ui| is_undone = text_button(ui, "Undo removal", false).clicked());
    is_undone.then_some(before)
}

/// Draws a button that clears something, and once it's cleared, one that restores it. Returns what it is afterwards if
/// the button was clicked.
pub fn clear_button<T>(ui: &mut Ui, (clear, restore): (&str, &str), kept: &T) -> Option<T>
where
    T: Clone + Default + PartialEq + Send + Sync + 'static,
{
    let id = Id::unique("cleared").with(clear);
    let is_empty = *kept == T::default();
    let cleared: Option<T> = ui.data(|data| data.get_temp::<T>(id)).filter(|_| is_empty);
    if is_empty && cleared.is_none() {
        return None;
    }
    if !text_button(ui, if is_empty { restore } else { clear }, false).clicked() {
        return None;
    }
    if !is_empty {
        ui.data_mut(|data| data.insert_temp(id, kept.clone()));
    }
    Some(cleared.unwrap_or_default())
}

fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
