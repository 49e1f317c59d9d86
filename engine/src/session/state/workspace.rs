//! State of the workspace as a whole: id, folder, document, actor and settings.

use crate::note::Note;
use crate::records::kernels::{KernelGrant, KernelKind};
use crate::session::apply_context::{ApplyContext, CommandError};
use std::path::PathBuf;
use store::disk::RowWrite;
use store::{ActorId, DocId, RunDevice, WorkspaceDoc};
use user_settings::settings::Settings;

/// State of the workspace.
#[derive(Debug)]
pub(in crate::session) struct WorkspaceState {
    pub(in crate::session) id: DocId,
    pub(in crate::session) folder: PathBuf,
    /// Document of the workspace; `None` until it's open.
    pub(in crate::session) doc: Option<Box<WorkspaceDoc>>,
    pub(in crate::session) is_new: bool,
    pub(in crate::session) actor: ActorId,
    /// This device, as the owner of runs.
    pub(in crate::session) device: RunDevice,
    pub(in crate::session) settings: Settings,
}

impl WorkspaceState {
    pub(in crate::session) fn set_settings(&mut self, turn: &mut ApplyContext<'_>, settings: Settings) {
        let settings = settings.clamped();
        if settings != self.settings {
            let value = serde_json::to_vec(&settings).unwrap_or_default();
            self.settings = settings;
            turn.append_writes(vec![RowWrite::Meta { key: "settings".to_owned(), value: Some(value) }], None);
        }
    }

    /// Returns whether the workspace is open.
    pub(in crate::session) fn is_open(&self) -> bool {
        self.doc.is_some()
    }

    /// Returns this device's settings.
    pub(in crate::session) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what the cells of a note may access beyond its folder.
    pub(in crate::session) fn kernel_grant(&self, note: DocId) -> KernelGrant {
        let kept = self.settings.grants.iter().find(|(of, _)| *of == note);
        kept.map(|(_, grant)| grant.clone()).unwrap_or_default()
    }

    /// Returns whether the user has allowed the kernel that this note names to run its cells.
    pub(in crate::session) fn allows_kernel(&self, note: &Note) -> bool {
        let Some(name) = note.kernel_name().filter(|name| !KernelKind::of(Some(name)).is_confined()) else {
            return true;
        };
        let kept = &self.settings.kernels;
        note.kernel_once.is_some() || kept.iter().any(|(id, allowed)| *id == note.id && allowed == name)
    }

    /// Returns the fingerprint of the kernel that the user has allowed to run a note's cells. `None` if it was allowed
    /// by name only, as before fingerprints existed; that doesn't apply to kernels that others can change.
    pub(in crate::session) fn allowed_kernel(&self, note: &Note) -> Option<String> {
        if note.kernel_once.is_some() {
            return note.kernel_print.clone();
        }
        self.settings.kernel_prints.iter().find(|(id, _)| *id == note.id).map(|(_, print)| print.clone())
    }

    /// Returns whether the device is this one.
    pub(in crate::session) fn is_own_device(&self, device: Option<&RunDevice>) -> bool {
        device.is_none_or(|device| device.id == self.device.id)
    }

    /// Returns the document id of this workspace's tool registry.
    pub(in crate::session) fn registry_id(&self) -> DocId {
        self.id.registry_id()
    }

    /// Returns the writes that add a volume to the workspace's document, or remove it if `name` is `None`.
    pub(in crate::session) fn workspace_writes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volume: DocId,
        name: Option<&str>,
    ) -> Result<Vec<RowWrite>, CommandError> {
        let Some(doc) = &mut self.doc else { return Ok(Vec::new()) };
        let bytes =
            doc.set_volume(volume, name, turn.now.as_seconds()).map_err(|error| CommandError(error.to_string()))?;
        // The first chunk of a document must include its first change.
        let bytes = if std::mem::take(&mut self.is_new) { doc.save() } else { bytes };
        Ok(vec![RowWrite::Chunk { doc: self.id, bytes }])
    }
}

impl Default for WorkspaceState {
    fn default() -> Self {
        WorkspaceState {
            id: DocId([0; 16]),
            folder: PathBuf::new(),
            doc: None,
            is_new: false,
            actor: ActorId::from([0_u8; 16]),
            device: RunDevice { id: DocId([0; 16]), name: String::new() },
            settings: Settings::default(),
        }
    }
}
