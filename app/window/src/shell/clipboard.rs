//! Pasting: HTML on the clipboard becomes Markdown. The clipboard is read and converted on a separate thread; keys
//! pressed meanwhile wait, so that nothing is typed before the pasted text.

use egui::Event as Raw;
use std::sync::mpsc::Receiver;

/// What the clipboard holds.
pub struct ClipboardContent {
    /// As plain text; empty if there is none.
    pub text: String,
    /// As HTML; empty if there is none.
    pub html: String,
}

/// State of pasting.
#[derive(Default)]
pub(crate) struct PasteState {
    pub(crate) read: Option<fn() -> Option<ClipboardContent>>,
    /// When plain text was requested.
    pub(crate) plain: Option<f64>,
    /// In which frame the clipboard was requested, as long as nothing of it has come.
    pub(crate) requested: Option<u64>,
    /// Whether the paste key that is held down has brought something.
    pub(crate) key_brought: bool,
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
    let html = clipboard.get().html().unwrap_or_default();
    let text = clipboard.get_text().unwrap_or_default();
    (!html.is_empty() || !text.is_empty()).then_some(ClipboardContent { text, html })
}
