//! The pages of the settings but for the keys: each setting with its control.

use super::SettingsChange;
use eframe::egui;
use egui::{Sense, pos2, vec2};
use engine::{ColorTheme, EnterInsertion, Settings};
use jiff::Zoned;
use ui::icons;
use ui::setting_rows::{SettingsRows, points, segmented_control, stepper, text, toggle_switch};
use ui::theme::{self, ThemeColors};
use ui::time::write_date;
use ui::widgets::{icon_button, paint_clipped_text, text_button};

pub(super) fn show_appearance(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row("Colours", "Follow the system’s theme, or always use light or dark.", |ui| {
        let all = [ColorTheme::System, ColorTheme::Light, ColorTheme::Dark];
        let chosen = all.iter().position(|theme| *theme == settings.theme);
        if let Some(place) = segmented_control(ui, &["System", "Light", "Dark"], chosen) {
            changes.push(SettingsChange::Theme(all[place]));
        }
    });
    lines.show_matching_row("More contrast", "Text and lines contrast more with the background.", |ui| {
        if toggle_switch(ui, "More contrast", settings.contrast) {
            changes.push(SettingsChange::Contrast(!settings.contrast));
        }
    });
    lines.show_matching_row("Less motion", "Panels and overlays come and go at once.", |ui| {
        if toggle_switch(ui, "Less motion", settings.calm) {
            changes.push(SettingsChange::Calm(!settings.calm));
        }
    });
    lines.show_matching_row("Zoom", "From 50 to 300 %.", |ui| {
        if let Some(scale) = stepper(ui, "everything", settings.scale, 0.5..=3.0) {
            changes.push(SettingsChange::Scale(scale));
        }
    });
    lines.show_matching_row("Size of a note's text", "From 70 to 200 %, on top of the zoom.", |ui| {
        if let Some(text) = stepper(ui, "text", settings.text, 0.7..=2.0) {
            changes.push(SettingsChange::Text(text));
        }
    });
}

pub(super) fn show_window(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row("Tree at the left", "Volumes, folders and notes.", |ui| {
        if toggle_switch(ui, "Tree at the left", settings.left_open) {
            changes.push(SettingsChange::Left(!settings.left_open));
        }
    });
    lines.show_matching_row("Width of the tree", "180 to 400 points; its edge can be dragged, too.", |ui| {
        if let Some(width) = points(ui, "the tree", settings.left, 180.0..=400.0) {
            changes.push(SettingsChange::LeftWidth(width));
        }
    });
    lines.show_matching_row("Panel at the right", "Outline and links of the open note.", |ui| {
        if toggle_switch(ui, "Panel at the right", settings.right_open) {
            changes.push(SettingsChange::Right(!settings.right_open));
        }
    });
    lines.show_matching_row("Width of the panel", "280 to 560 points.", |ui| {
        if let Some(width) = points(ui, "the panel", settings.right, 280.0..=560.0) {
            changes.push(SettingsChange::RightWidth(width));
        }
    });
    let (wide, high) = settings.window;
    lines.show_matching_row(
        "Size of the window",
        &format!("{wide:.0} by {high:.0} points; kept over a restart."),
        |ui| {
            if text_button(ui, "1280 by 800 again", false).clicked() {
                changes.push(SettingsChange::WindowSize);
            }
        },
    );
    lines.show_matching_row("Recent notes in the tree", "The last notes, above the volumes.", |ui| {
        if toggle_switch(ui, "Recent notes in the tree", settings.recent_open) {
            changes.push(SettingsChange::RecentOpen(!settings.recent_open));
        }
    });
    let folders = count(settings.unfolded.len(), "folder");
    lines.show_matching_row("What is unfolded in the tree", &format!("{folders}, kept over a restart."), |ui| {
        if text_button(ui, "Fold all", false).clicked() {
            changes.push(SettingsChange::FoldTree);
        }
    });
    let tabs = if settings.panes.is_some() { "Kept over a restart." } else { "One note alone, kept over a restart." };
    lines.show_matching_row("Tabs and splits", tabs, |ui| {
        if text_button(ui, "Close all but this", false).clicked() {
            changes.push(SettingsChange::CloseTabs);
        }
    });
    let recent = count(settings.recent.len(), "note");
    lines.show_matching_row(
        "Notes that were opened",
        &format!("{recent}: for the switcher, and for the next start."),
        |ui| {
            if text_button(ui, "Forget them", false).clicked() {
                changes.push(SettingsChange::ForgetRecent);
            }
        },
    );
    lines.show_matching_row(
        "Starred notes",
        &format!("{} above the tree.", count(settings.starred.len(), "note")),
        |ui| {
            if text_button(ui, "Take all stars away", false).clicked() {
                changes.push(SettingsChange::NoStars);
            }
        },
    );
}

pub(super) fn show_editor(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
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
}

pub(super) fn show_notes(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row("Folder for daily notes", "Inside the volume; empty: at its top.", |ui| {
        if let Some(folder) = text(ui, "Folder for daily notes", &settings.daily_folder, "none") {
            changes.push(SettingsChange::DailyFolder(folder.trim().trim_matches('/').to_owned()));
        }
    });
    let today = match write_date(&settings.daily_format, &Zoned::now()) {
        Ok(today) => format!("Today: {today}. %Y year, %m month, %d day, %A weekday."),
        Err(why) => format!("{why}."),
    };
    lines.show_matching_row("Names of daily notes", &today, |ui| {
        if let Some(format) = text(ui, "Names of daily notes", &settings.daily_format, "%Y-%m-%d") {
            changes.push(SettingsChange::DailyFormat(format.trim().to_owned()));
        }
    });
    lines.show_matching_row(
        "Template of daily notes",
        "A note of the volume; without it, they begin with their name.",
        |ui| {
            if let Some(path) = text(ui, "Template of daily notes", &settings.daily_template, "none") {
                changes.push(SettingsChange::DailyTemplate(path.trim().to_owned()));
            }
        },
    );
    lines.show_matching_row("Folder of templates", "Its notes are offered by “Insert template”.", |ui| {
        if let Some(folder) = text(ui, "Folder of templates", &settings.templates, "Templates") {
            changes.push(SettingsChange::Templates(folder.trim().trim_matches('/').to_owned()));
        }
    });
}

pub(super) fn show_spelling(lines: &mut SettingsRows<'_>, settings: &Settings, changes: &mut Vec<SettingsChange>) {
    lines.show_matching_row("Check spelling", "By the dictionaries of the system, where it has some.", |ui| {
        if toggle_switch(ui, "Check spelling", settings.spelling) {
            changes.push(SettingsChange::Spelling(!settings.spelling));
        }
    });
    lines.show_matching_row("Your dictionary", "Right although no dictionary has them; Enter adds one.", |ui| {
        if let Some(word) = text(ui, "Add a word", "", "Add a word") {
            let word = word.trim().to_owned();
            if !word.is_empty() && !settings.words.contains(&word) {
                changes.push(SettingsChange::Words([settings.words.clone(), vec![word]].concat()));
            }
        }
    });
    if !lines.wanted.is_empty() {
        return;
    }
    let ui = &mut *lines.ui;
    for word in &settings.words {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 32.0), Sense::hover());
        let at = pos2(rect.left(), rect.center().y - 10.0);
        paint_clipped_text(ui, at, rect.width() - 60.0, word, &theme::small(), ThemeColors::of(ui).ink);
        let corner = egui::Rect::from_min_max(pos2(rect.right() - theme::size::MIN_CLICK_HEIGHT, rect.top()), rect.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(corner).id_salt(("word", word)));
        if icon_button(&mut child, icons::X, &format!("Forget the word {word}"), None).clicked() {
            changes
                .push(SettingsChange::Words(settings.words.iter().filter(|other| *other != word).cloned().collect()));
        }
    }
}

fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
