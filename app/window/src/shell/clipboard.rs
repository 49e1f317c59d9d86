//! Pasting: HTML on the clipboard becomes Markdown.
//!
//! The clipboard is read and converted on a separate thread. Keys pressed meanwhile are held back, so that nothing is
//! typed before the pasted text.

use egui::Event as Raw;
use std::sync::mpsc::Receiver;

/// The clipboard's content.
pub struct ClipboardContent {
    /// The plain text; empty if there is none.
    pub text: String,
    /// The HTML; empty if there is none.
    pub html: String,
}

/// State of pasting.
#[derive(Default)]
pub(crate) struct PasteState {
    pub(crate) read: Option<fn() -> Option<ClipboardContent>>,
    /// Time at which a plain paste was requested.
    pub(crate) plain: Option<f64>,
    /// Frame in which the clipboard was requested, until content arrives.
    pub(crate) requested: Option<u64>,
    /// Whether the held paste key has already delivered content.
    pub(crate) key_brought: bool,
    pub(crate) under_way: Option<PendingPaste>,
}

pub(crate) struct PendingPaste {
    pub(crate) answer: Receiver<Option<String>>,
    pub(crate) plain: String,
    /// Keys received while the paste is pending.
    pub(crate) held: Vec<Raw>,
}

/// Reads the system clipboard. Returns `None` if it holds neither text nor HTML.
pub(crate) fn system_clipboard() -> Option<ClipboardContent> {
    let mut clipboard = arboard::Clipboard::new().ok()?;
    let html = clipboard.get().html().unwrap_or_default();
    let text = clipboard.get_text().unwrap_or_default();
    (!html.is_empty() || !text.is_empty()).then_some(ClipboardContent { text, html })
}
