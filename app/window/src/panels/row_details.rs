//! What the file tree says of a row beside its name: how a file has changed in Git, a volume's kind, remote and branch,
//! and a file's size and time; and the displayed names of files.

use engine::{Session, Volume};
use host::source_control::{FileChangeKind, RepositoryStatus, SourceControl};
use settings_pages::volumes::describe_volume;
use std::sync::Arc;
use store::DocId;
use ui::text::{amount, shown_name};

/// The marks of changed files, from the volumes' Git repositories.
pub(super) struct FileBadges(Vec<(DocId, Arc<RepositoryStatus>)>);

impl FileBadges {
    pub(super) fn of(session: &Session, source: &SourceControl) -> FileBadges {
        FileBadges(session.volumes().filter_map(|volume| Some((volume.id, source.status(volume.id)?))).collect())
    }

    fn status(&self, volume: DocId) -> Option<&RepositoryStatus> {
        self.0.iter().find(|(known, _)| *known == volume).map(|(_, status)| &**status)
    }

    /// Returns how a file, or what is below a folder, has changed.
    pub(super) fn kind_of(&self, volume: DocId, path: &str) -> Option<FileChangeKind> {
        self.status(volume)?.badges.get(path).copied()
    }

    /// Describes a volume in a few lines; empty if there's nothing to say.
    pub(super) fn describe_volume(&self, session: &Session, volume: DocId) -> String {
        let branch = self.status(volume).and_then(|status| status.branch.branch.as_deref());
        let about = describe_volume(session.volume_config(volume), branch);
        let parts = [about, session.read_only_reason(volume).unwrap_or_default()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// Describes a file by its size and the time of its last change.
pub(super) fn describe_file(session: &Session, file: DocId) -> String {
    let row = session.locate_file(file).and_then(|(volume, path)| session.volume(volume)?.files.get(path));
    row.map_or_else(String::new, |row| {
        format!("{}\nChanged: {}", amount(row.size), ui::time::when(row.mtime.div_euclid(1_000_000_000)))
    })
}

/// Returns a file's displayed name: its title if it's a page of the guide, otherwise its file name.
pub(crate) fn file_title<'a>(session: &Session, volume: &Volume, path: &'a str) -> &'a str {
    let title = if session.is_guide(volume) { guide_title(path) } else { None };
    title.unwrap_or_else(|| shown_name(path.rsplit('/').next().unwrap_or(path)))
}

/// Returns the title of a page of the guide, by its path.
pub(super) fn guide_title(path: &str) -> Option<&'static str> {
    let (_, page) = system::GUIDE_FILES.iter().find(|(name, _)| *name == path)?;
    str::from_utf8(page).ok()?.lines().next()?.strip_prefix("# ")
}
