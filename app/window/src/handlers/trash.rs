//! Asks before files of the trash are deleted for good.

use crate::app_window::AppWindow;
use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use store::DocId;
use ui::text::shown_name;

impl AppWindow {
    /// Asks whether to empty the trash.
    pub(crate) fn ask_empty(&mut self) {
        let files: Vec<DocId> = self.host.session().trash().map(|(file, _)| file).collect();
        if files.is_empty() {
            self.notices.toasts.show_message("The trash is empty.");
        } else {
            self.ask_discard(files);
        }
    }

    /// Asks whether files shall be deleted for good.
    pub(crate) fn ask_discard(&mut self, files: Vec<DocId>) {
        let named = |file: &DocId| {
            let trashed = self.host.session().trash().find(|(one, _)| one == file)?.1;
            let name = trashed.row.path.rsplit('/').next().unwrap_or(&trashed.row.path);
            Some(shown_name(name).to_owned())
        };
        let what = match files.as_slice() {
            [one] => named(one).map_or_else(|| "this file".to_owned(), |name| format!("“{name}”")),
            many => format!("{} files", many.len()),
        };
        self.overlay = WindowOverlay::Dialog(Dialog::Discard { files, what });
    }
}
