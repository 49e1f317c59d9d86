//! Follows how the desktop looks: light or dark, with or without motion.

use eframe::egui;
use host::desktop::DesktopLookReader;
use std::thread::JoinHandle;
use ui::theme;

/// Reads how the desktop looks, on a thread.
#[derive(Default)]
pub(crate) struct DesktopLookWatch {
    pub(crate) reader: Option<DesktopLookReader>,
    reading: Option<JoinHandle<()>>,
}

impl DesktopLookWatch {
    /// Starts to read, unless the desktop hasn't answered yet.
    pub(crate) fn refresh(&mut self, ctx: &egui::Context) {
        let is_reading = self.reading.as_ref().is_some_and(|reading| !reading.is_finished());
        let Some(reader) = self.reader.clone().filter(|_| !is_reading) else { return };
        let ctx = ctx.clone();
        self.reading = Some(std::thread::spawn(move || {
            let look = reader();
            theme::set_system_look(&ctx, look.is_dark, look.reduces_motion);
        }));
    }
}
