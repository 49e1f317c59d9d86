//! Obsidian vault settings: offered when the vault's folder is opened, and applied when the user agrees.

use crate::shell::background_jobs::{BackgroundJobs, VaultSettings};
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use eframe::egui;
use engine::commands::CommandId;
use engine::{Command, Settings};
use settings_pages::obsidian::read_obsidian_settings;
use std::path::PathBuf;

/// Maximum number of bookmarks and hotkeys that a message names.
const MAX_NAMED_LEFT_OUT: usize = 8;
/// Maximum length of such a name in characters.
const MAX_LEFT_OUT_CHARS: usize = 80;

impl BackgroundJobs {
    /// Reads the vault's settings in a folder on a thread. `takes_over`: they are then applied rather than offered.
    pub(crate) fn read_obsidian(&self, ctx: &egui::Context, root: PathBuf, takes_over: bool) {
        let (tell, wake) = (self.obsidian.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let read = read_obsidian_settings(&root);
            let _ = tell.send(VaultSettings { root, read, takes_over }); // the window may be closed
            wake.request_repaint();
        });
    }

    /// Applies the settings of the vault that contains the open note.
    pub(crate) fn use_obsidian(
        &self,
        host: &HostLink,
        panes: &PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) {
        let session = host.session();
        let volume = panes.active.note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
        match volume.and_then(|volume| session.volume(volume)?.root.clone()) {
            Some(root) => self.read_obsidian(ctx, root, true),
            None => notices.toasts.show_message("Open a note of the Obsidian vault first."),
        }
    }

    /// Offers or applies the settings that were read.
    pub(crate) fn take_obsidian_settings(&self, host: &mut HostLink, prefs: &WindowState, notices: &mut NoticeState) {
        while let Ok(VaultSettings { root, read, takes_over }) = self.obsidian.1.try_recv() {
            let session = host.session();
            let volume = session.volumes().find(|volume| volume.root.as_ref() == Some(&root));
            let note_at = |path: &str| volume?.files.get(path).filter(|row| row.kind.is_text()).map(|row| row.id);
            let before = session.settings().clone();
            let mut settings = before.clone();
            let left_out = left_out_text(&read.apply_to(&mut settings, note_at));
            match (settings != before, takes_over) {
                (true, false) => notices.toasts.show_with_action(
                    "This folder has Obsidian settings for daily notes, templates, attachments, bookmarks or keys.",
                    "Use them",
                    CommandId::FolderObsidian,
                ),
                (true, true) => {
                    let changes = changes_text(&before, &settings);
                    prefs.store_settings(&mut settings);
                    if host.send(Command::Set { settings: Box::new(settings) }, notices) {
                        notices.toasts.show_message(changes + &left_out);
                    }
                }
                (false, true) => notices
                    .toasts
                    .show_message(format!("This folder has no Obsidian settings that differ from yours.{left_out}")),
                (false, false) => {}
            }
        }
    }
}

/// Says what was taken over from a vault.
fn changes_text(before: &Settings, now: &Settings) -> String {
    let place = |folder: &str| if folder.is_empty() { "the volume's own folder".to_owned() } else { folder.to_owned() };
    let (daily, templates) = (place(&now.daily_folder), place(&now.templates));
    let mut text = format!(
        "As in Obsidian, daily notes go to {daily}, and templates are in {templates}. See Settings, Notes and files."
    );
    let keys = now.keys.iter().filter(|(command, keys)| before.keys.get(*command) != Some(*keys)).count();
    for (count, thing, done) in [
        (now.starred.len().saturating_sub(before.starred.len()), "note", "starred"),
        (now.searches.len().saturating_sub(before.searches.len()), "search", "saved"),
        (keys, "command", "given Obsidian's keys"),
    ] {
        match count {
            0 => {}
            1 => text.push_str(&format!(" 1 {thing} was {done}.")),
            _ if thing == "search" => text.push_str(&format!(" {count} searches were {done}.")),
            _ => text.push_str(&format!(" {count} {thing}s were {done}.")),
        }
    }
    text
}

/// Says what a vault has that Tracebook doesn't, by name; empty if there's nothing.
fn left_out_text(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = names.iter().take(MAX_NAMED_LEFT_OUT).map(|name| short_name(name)).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!(" Not taken over: {}{more}.", shown.join("; "))
}

fn short_name(name: &str) -> String {
    match name.char_indices().nth(MAX_LEFT_OUT_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
