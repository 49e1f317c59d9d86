//! Pasting: HTML on the clipboard becomes Markdown. The clipboard is read and converted on a separate thread; keys
//! pressed meanwhile wait, so that nothing is typed before the pasted text.

use egui::Event as Raw;
use std::sync::mpsc::Receiver;

/// What the clipboard holds.
pub struct ClipboardContent {
    /// As plain text.
    pub text: String,
    /// As HTML.
    pub html: String,
}

/// State of pasting.
#[derive(Default)]
pub(crate) struct PasteState {
    pub(crate) read: Option<fn() -> Option<ClipboardContent>>,
    /// When plain text was requested.
    pub(crate) plain: Option<f64>,
    pub(crate) under_way: Option<PendingPaste>,
}

pub(crate) struct PendingPaste {
    pub(crate) answer: Receiver<Option<String>>,
    pub(crate) plain: String,
    /// Keys received while the paste is pending.
    pub(crate) held: Vec<Raw>,
}

/// The clipboard of the system.
pub(crate) fn system_clipboard() -> Option<ClipboardContent> {
    let mut clipboard = arboard::Clipboard::new().ok()?;
    let html = clipboard.get().html().ok()?;
    Some(ClipboardContent { text: clipboard.get_text().ok()?, html })
}
