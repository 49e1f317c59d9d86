//! Handles pasting: rich text becomes Markdown, code stays unchanged.

use crate::shell::clipboard::PendingPaste;
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::row_splitter::RowKind;
use eframe::egui;
use egui::{Event as Raw, Key};
use export::render_jobs;
use std::sync::mpsc::{TryRecvError, channel};

/// How long a request to paste plain text stays valid, in seconds.
const PLAIN_PASTE_TIMEOUT_SECONDS: f64 = 1.0;
/// Number of frames within which requested clipboard content arrives.
const MAX_PASTE_FRAMES: u64 = 2;

impl InputState {
    /// Requests the clipboard, to paste it as plain text.
    pub(crate) fn paste_plain(&mut self, ctx: &egui::Context) {
        self.pasting.plain = Some(ctx.input(|input| input.time));
        self.request_paste(ctx);
    }

    /// Requests the clipboard, to paste it.
    pub(crate) fn request_paste(&mut self, ctx: &egui::Context) {
        self.pasting.requested = Some(ctx.cumulative_frame_nr());
        ctx.send_viewport_cmd(egui::ViewportCommand::RequestPaste);
        ctx.request_repaint();
    }

    /// Pastes HTML that has no plain text beside it. `writes`: the note has the keyboard focus.
    ///
    /// The windowing layer delivers only plain text and pictures. If there's neither, the paste key is released without
    /// a paste event.
    pub(crate) fn paste_lone_html(&mut self, ctx: &egui::Context, events: &[Raw], writes: bool) {
        let mut missed = false;
        for event in events {
            match event {
                Raw::Paste(_) | Raw::PasteImage(_) => (self.pasting.key_brought, self.pasting.requested) = (true, None),
                Raw::Key { key: Key::V, pressed: true, .. } => self.pasting.key_brought = true,
                Raw::Key { key: Key::V, pressed: false, .. } => {
                    missed |= !std::mem::take(&mut self.pasting.key_brought);
                }
                _ => {}
            }
        }
        let frame = ctx.cumulative_frame_nr();
        if let Some(since) = self.pasting.requested {
            ctx.request_repaint();
            if frame >= since + MAX_PASTE_FRAMES {
                self.pasting.requested = None;
                missed = true;
            }
        }
        let Some(read) = self.pasting.read.filter(|_| missed && writes && self.pasting.under_way.is_none()) else {
            return;
        };
        self.pasting.plain = None;
        let (send, answer) = channel();
        let wake = ctx.clone();
        std::thread::spawn(move || {
            let made = read().and_then(|clip| match clip.text.is_empty() {
                true => render_jobs::lone_html_to_markdown(&clip.html),
                // Plain text would have arrived as an event, so the key meant something else.
                false => Some(String::new()),
            });
            // If the receiver is gone, the result is no longer needed.
            let _ = send.send(made);
            wake.request_repaint();
        });
        self.pasting.under_way = Some(PendingPaste { answer, plain: String::new(), held: Vec::new() });
    }

    /// Starts pasting text, or the Markdown for the clipboard's HTML.
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
            // Content that another program copied in the meantime must not be pasted.
            let own = read().filter(|clip| clip.text.replace("\r\n", "\n") == plain.replace("\r\n", "\n"));
            let rich = own.filter(|clip| !clip.html.is_empty());
            let made = rich.and_then(|clip| render_jobs::html_to_markdown(&clip.html));
            // If the receiver is gone, the result is no longer needed.
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
        match made.or_else(|| (!under_way.plain.is_empty()).then_some(under_way.plain)) {
            Some(text) if text.is_empty() => {}
            Some(text) => _ = panes.write(host, notices, ctx, |editor, world| editor.write(&text, world), false),
            None => notices.toasts.show_message("Nothing on the clipboard can be pasted here."),
        }
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
