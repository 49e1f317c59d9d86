//! Asks before deleting files in the trash permanently.

use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use store::DocId;
use ui::text::shown_name;

impl WindowOverlay {
    /// Asks whether to empty the trash.
    pub(crate) fn ask_empty(&mut self, host: &HostLink, notices: &mut NoticeState) {
        let files: Vec<DocId> = host.session().trash().map(|(file, _)| file).collect();
        if files.is_empty() {
            notices.toasts.show_message("The trash is empty.");
        } else {
            self.ask_discard(host, files);
        }
    }

    /// Asks whether to delete files permanently.
    pub(crate) fn ask_discard(&mut self, host: &HostLink, files: Vec<DocId>) {
        let named = |file: &DocId| {
            let trashed = host.session().trash().find(|(one, _)| one == file)?.1;
            let name = trashed.row.path.rsplit('/').next().unwrap_or(&trashed.row.path);
            Some(shown_name(name).to_owned())
        };
        let what = match files.as_slice() {
            [one] => named(one).map_or_else(|| "this file".to_owned(), |name| format!("“{name}”")),
            many => format!("{} files", many.len()),
        };
        *self = WindowOverlay::Dialog(Dialog::Discard { files, what });
    }
}
