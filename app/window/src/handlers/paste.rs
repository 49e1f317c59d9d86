//! Pastes: rich text becomes Markdown, code stays as it is.

use crate::shell::clipboard::PendingPaste;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::Event as Raw;
use export::render_jobs;
use std::sync::mpsc::{TryRecvError, channel};

/// After this many seconds, plain text is pasted instead.
const PLAIN_PASTE_TIMEOUT_SECONDS: f64 = 1.0;

impl InputState {
    /// Requests the clipboard and pastes it as plain text.
    pub(crate) fn paste_plain(&mut self, ctx: &egui::Context) {
        self.pasting.plain = Some(ctx.input(|input| input.time));
        ctx.send_viewport_cmd(egui::ViewportCommand::RequestPaste);
    }

    /// Pastes text, or the Markdown of the clipboard's HTML.
    pub(crate) fn start_paste(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        text: &str,
    ) -> bool {
        let now = ctx.input(|input| input.time);
        let plain = self.pasting.plain.take().is_some_and(|asked| now - asked < PLAIN_PASTE_TIMEOUT_SECONDS);
        let Some(read) = self.pasting.read.filter(|_| !plain && !panes.caret_in_code(host, ctx)) else {
            return panes.write(host, notices, ctx, |editor, world| editor.write(text, world), false);
        };
        let (send, answer) = channel();
        let (wake, plain) = (ctx.clone(), text.to_owned());
        std::thread::spawn(move || {
            // What another program copied meanwhile was not meant.
            let own = read().filter(|clip| clip.text.replace("\r\n", "\n") == plain.replace("\r\n", "\n"));
            let made = own.and_then(|clip| render_jobs::html_to_markdown(&clip.html));
            // The receiver may be gone, and then nobody needs this.
            let _ = send.send(made);
            wake.request_repaint();
        });
        self.pasting.under_way = Some(PendingPaste { answer, plain: text.to_owned(), held: Vec::new() });
        true
    }

    /// Inserts pasted text when it's ready, and holds events back until then. Returns whether events may be processed.
    pub(crate) fn filter_paste_events(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        events: Vec<Raw>,
    ) -> Vec<Raw> {
        let Some(mut under_way) = self.pasting.under_way.take() else { return events };
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
                self.pasting.under_way = Some(under_way);
                return rest;
            }
            Err(TryRecvError::Disconnected) => None,
            Ok(made) => made,
        };
        let text = made.unwrap_or(under_way.plain);
        panes.write(host, notices, ctx, |editor, world| editor.write(&text, world), false);
        under_way.held.extend(events);
        under_way.held
    }
}

impl PaneState {
    fn caret_in_code(&mut self, host: &HostLink, ctx: &egui::Context) -> bool {
        let dark = ctx.global_style().visuals.dark_mode;
        let code = self.with_note(host, ctx, dark, |world, editor, _| {
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
