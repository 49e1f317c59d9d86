//! Pastes: rich text becomes Markdown, code stays as it is.

use crate::app_window::AppWindow;
use crate::shell::clipboard::{ClipboardContent, PendingPaste};
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::Event as Raw;
use export::render_jobs;
use std::sync::mpsc::{TryRecvError, channel};

/// After this many seconds, plain text is pasted instead.
const PLAIN_PASTE_TIMEOUT_SECONDS: f64 = 1.0;

impl AppWindow {
    /// From now on HTML is pasted as Markdown, as far as this clipboard has some.
    pub fn read_clipboard(&mut self, read: fn() -> Option<ClipboardContent>) {
        self.input.pasting.read = Some(read);
    }

    /// Requests the clipboard and pastes it as plain text.
    pub(crate) fn paste_plain(&mut self, ctx: &egui::Context) {
        self.input.pasting.plain = Some(ctx.input(|input| input.time));
        ctx.send_viewport_cmd(egui::ViewportCommand::RequestPaste);
    }

    /// Pastes text, or the Markdown of the clipboard's HTML.
    pub(crate) fn start_paste(&mut self, ctx: &egui::Context, text: &str) -> bool {
        let now = ctx.input(|input| input.time);
        let plain = self.input.pasting.plain.take().is_some_and(|asked| now - asked < PLAIN_PASTE_TIMEOUT_SECONDS);
        let Some(read) = self.input.pasting.read.filter(|_| !plain && !self.caret_in_code(ctx)) else {
            return self.write(ctx, |editor, world| editor.write(text, world), false);
        };
        let (send, answer) = channel();
        let (wake, plain) = (ctx.clone(), text.to_owned());
        std::thread::spawn(move || {
            // What another program copied meanwhile was not meant.
            let own = read().filter(|clip| clip.text.replace("\r\n", "\n") == plain.replace("\r\n", "\n"));
            let made = own.and_then(|clip| render_jobs::html_to_markdown(&clip.html));
            let _ = send.send(made);
            wake.request_repaint();
        });
        self.input.pasting.under_way = Some(PendingPaste { answer, plain: text.to_owned(), held: Vec::new() });
        true
    }

    /// Inserts pasted text when it's ready, and holds events back until then. Returns whether events may be processed.
    pub(crate) fn filter_paste_events(&mut self, ctx: &egui::Context, events: Vec<Raw>) -> Vec<Raw> {
        let Some(mut under_way) = self.input.pasting.under_way.take() else { return events };
        let made = match under_way.answer.try_recv() {
            Err(TryRecvError::Empty) => {
                let is_key = |event: &Raw| {
                    matches!(
                        event,
                        Raw::Key { .. } | Raw::Text(_) | Raw::Paste(_) | Raw::PasteImage(_) | Raw::Cut | Raw::Copy
                    ) || matches!(event, Raw::Ime(_) | Raw::PointerButton { .. })
                };
                let (keys, rest) = events.into_iter().partition(is_key);
                under_way.held.extend::<Vec<Raw>>(keys);
                self.input.pasting.under_way = Some(under_way);
                return rest;
            }
            Err(TryRecvError::Disconnected) => None,
            Ok(made) => made,
        };
        let text = made.unwrap_or(under_way.plain);
        self.write(ctx, |editor, world| editor.write(&text, world), false);
        under_way.held.extend(events);
        under_way.held
    }

    fn caret_in_code(&mut self, ctx: &egui::Context) -> bool {
        let dark = ctx.global_style().visuals.dark_mode;
        let code = self.with_note(ctx, dark, |world, editor, _| {
            editor.edit_target(world).is_some_and(|target| {
                matches!(
                    target.kind,
                    RowKind::Cell | RowKind::Fence { .. } | RowKind::Indented | RowKind::Meta | RowKind::Html
                )
            })
        });
        code.unwrap_or(false)
    }
}
