//! Copies of volumes' files and links, so that other threads can evaluate collections over them.

use crate::handle::{Handle, OwnerGone};
use crate::mailbox::Mailbox;
use anyhow::Context;
use collection::VolumeMirror;
use engine::Session;
use std::time::Duration;
use store::DocId;

/// How long to wait until all notes are indexed.
const NOTES_INDEXED_TIMEOUT: Duration = Duration::from_secs(600);

impl Handle {
    /// Copies a volume's files and links once its notes are indexed.
    ///
    /// # Errors
    /// Returns an error if indexing takes more than ten minutes, or the program is closing.
    pub fn mirror_volume(&self, volume: DocId) -> anyhow::Result<VolumeMirror> {
        mirror_volume(&self.inbox, volume, |_| true)
    }
}

/// Copies the files and links of a volume, as far as `keeps` returns true for their paths. Yields to the window after
/// each slice.
pub(crate) fn mirror_volume(
    inbox: &Mailbox,
    volume: DocId,
    keeps: impl Fn(&str) -> bool,
) -> anyhow::Result<VolumeMirror> {
    let look = move |session: &Session| session.is_volume_indexed(volume).then_some(());
    let indexed = inbox.wait(Some(NOTES_INDEXED_TIMEOUT), look).map_err(|_| OwnerGone)?;
    indexed.context("the notes could not be read in ten minutes")?;
    let read = |after: Option<String>| {
        let slice = move |session: &Session| {
            let volume = session.volume(volume);
            volume.map(|volume| VolumeMirror::read_slice(volume.into(), after.as_deref())).unwrap_or_default()
        };
        inbox.read(slice).ok_or(OwnerGone)
    };
    Ok(VolumeMirror::from_slices(read, keeps)?)
}
