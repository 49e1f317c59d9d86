//! The volume that a tool call is about: the run's own, another one, or the read-only volume inside the program.

use crate::effect::MentionedFile;
use crate::session::state::FilesState;
use crate::session::state::volumes::VolumesState;
use agent::path_resolver::{self, KnownVolume, PathPlace, PathUse, ResolvedPath};
use agent::system_volume::{self, SYSTEM_READ_ONLY};
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::ToolOutcome;
use agent::tool_outcomes::{failed_outcome, string_argument};
use serde_json::{Map, Value};
use store::disk::FileRow;
use store::{DocId, ToolCall, ToolFileInfo};
use text::time::UnixMillis;

/// The volume that a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallVolume {
    /// A volume of the workspace.
    Known(DocId),
    /// The volume inside the program.
    System,
}

impl CallVolume {
    /// Returns whether it's this volume.
    fn is(self, volume: DocId) -> bool {
        self == CallVolume::Known(volume)
    }
}

impl VolumesState {
    /// Returns the volumes that calls of a run can name, beginning with its own. In a fork, the name and the folder of
    /// the project mean the fork.
    fn callable_volumes(&self, own: DocId) -> (Vec<DocId>, Vec<KnownVolume<'_, FileRow>>) {
        let project = self.project_of(own);
        let fork = self.by_id.get(&own).filter(|_| project != own);
        let others = self.volumes().filter(|volume| volume.id != own);
        let all = self.by_id.get(&own).into_iter().chain(others);
        all.map(|volume| {
            let held = fork.filter(|_| volume.id == project).unwrap_or(volume);
            let (name, root, kind) = (&volume.name, volume.root.as_deref(), self.settings.kind(&volume.name));
            (held.id, KnownVolume { name, root, kind, files: &held.files })
        })
        .unzip()
    }

    /// Rewrites a call's paths to their canonical form. Calls that name an unknown volume stay as they are.
    pub(super) fn normalize_call(&self, own: DocId, tool: &str, arguments: &mut Map<String, Value>) {
        let Some(tool) = BuiltInTool::from_name(tool) else { return };
        // An unknown volume is reported when the call is checked.
        let _ = path_resolver::normalize_arguments(&self.callable_volumes(own).1, tool, arguments);
        if arguments.contains_key("volume") && self.call_volume(own, arguments).is_ok_and(|volume| volume.is(own)) {
            arguments.remove("volume");
        }
    }

    /// Returns where the files are that a message mentions, and the text of those inside the program.
    pub(super) fn mentioned_files(
        &self,
        own: DocId,
        names: Vec<String>,
    ) -> (Vec<MentionedFile>, Vec<(String, String)>) {
        let (ids, volumes) = self.callable_volumes(own);
        let own_root = self.by_id.get(&own).and_then(|volume| volume.root.clone()).unwrap_or_default();
        let (mut found, mut texts) = (Vec::new(), Vec::new());
        for name in names {
            // `plan.md#cell2` names a part of the note: all of it is read.
            let path = name.split('#').next().unwrap_or(&name).to_owned();
            let resolved = match path.contains(['/', '.']) {
                true => path_resolver::resolve(&volumes, None, &path, PathUse::Existing).ok(),
                false => None, // an agent is meant, or a note exactly as it's called
            };
            let (root, path) = match resolved {
                Some(found) if found.place == PathPlace::System => {
                    texts.extend(system_volume::read(&found.path).map(|text| (name.clone(), text.to_owned())));
                    continue;
                }
                Some(ResolvedPath { place: PathPlace::Volume(at), path, .. }) if at > 0 => {
                    let volume = ids.get(at).and_then(|id| self.by_id.get(id));
                    let Some(root) = volume.and_then(|volume| volume.root.clone()) else { continue };
                    (root, path)
                }
                Some(found) => (own_root.clone(), found.path),
                None => (own_root.clone(), path),
            };
            found.push(MentionedFile { name, root, path });
        }
        (found, texts)
    }

    /// Returns the volume that a call is about.
    ///
    /// # Errors
    /// Returns a failed outcome if there's no such volume.
    pub(super) fn call_volume(
        &self,
        own: DocId,
        arguments: &Map<String, Value>,
    ) -> Result<CallVolume, Box<ToolOutcome>> {
        let name = string_argument(arguments, "volume");
        if name.is_empty() {
            return Ok(CallVolume::Known(own));
        }
        let (ids, volumes) = self.callable_volumes(own);
        match path_resolver::find_volume(&volumes, name).map_err(|error| Box::new(failed_outcome(error.to_string())))? {
            PathPlace::Volume(at) => Ok(CallVolume::Known(ids.get(at).copied().unwrap_or(own))),
            PathPlace::System => Ok(CallVolume::System),
        }
    }

    /// Returns why a call can't be made in its volume; `None` if it can.
    pub(super) fn refuse_call(&self, own: DocId, tool: &str, arguments: &Map<String, Value>) -> Option<ToolOutcome> {
        let built_in = BuiltInTool::from_name(tool)?;
        let changes = path_resolver::changes_volume(built_in);
        if !path_resolver::takes_volume(built_in) && !changes {
            return None;
        }
        match self.call_volume(own, arguments) {
            Err(outcome) => Some(*outcome),
            Ok(CallVolume::System) if built_in.is_for_git() => {
                Some(failed_outcome("System has no history in Git: it is part of the program."))
            }
            Ok(CallVolume::System) => {
                let reads = matches!(built_in, BuiltInTool::ReadFile | BuiltInTool::ListFiles);
                (!reads).then(|| failed_outcome(SYSTEM_READ_ONLY))
            }
            // What is adopted later is the fork alone.
            Ok(CallVolume::Known(volume))
                if (changes || built_in == BuiltInTool::RunCell) && volume != own && self.project_of(own) != own =>
            {
                let name = self.by_id.get(&volume).map_or("it", |volume| volume.name.as_str());
                Some(failed_outcome(format!("A run in a fork changes only its fork: {name} stays as it is.")))
            }
            Ok(CallVolume::Known(volume)) if changes => self.read_only_reason(volume).map(failed_outcome),
            Ok(CallVolume::Known(_)) => None,
        }
    }

    /// Returns a sentence that names the paths closest to one that a call didn't find.
    pub(super) fn closest_sentence(&self, own: DocId, arguments: &Map<String, Value>) -> String {
        let Ok(CallVolume::Known(volume)) = self.call_volume(own, arguments) else { return String::new() };
        let files = self.by_id.get(&volume).map(|volume| &volume.files);
        files.map_or_else(String::new, |files| path_resolver::closest_to_call(files, arguments))
    }
}

impl FilesState {
    /// Adds to a result what the session knows of the file that was read or written in a note, and marks the files of a
    /// read-only volume.
    pub(super) fn complete_file_info(&self, own: DocId, call: &ToolCall, now: UnixMillis, outcome: &mut ToolOutcome) {
        let Ok(CallVolume::Known(volume)) = self.volumes.call_volume(own, &call.arguments) else { return };
        let tool = BuiltInTool::from_name(&call.name).filter(|_| outcome.success);
        let path = string_argument(&call.arguments, "path").trim_start_matches("./");
        let row = self.volumes.find_file(volume, path).and_then(|file| {
            let (_, path) = self.volumes.locate_file(file)?;
            self.volumes.by_id.get(&volume)?.files.get(path)
        });
        let writes = tool == Some(BuiltInTool::WriteFile);
        if let Some(row) = row
            && outcome.files.is_empty()
            && (writes || tool == Some(BuiltInTool::ReadFile))
        {
            let length = self.notes.open.get(&row.id).map(|note| note.length() as u64);
            let saved = Some(row.mtime / 1_000_000).filter(|time| *time > 0);
            let modified = if writes { Some(now.0) } else { saved };
            outcome.files.push(ToolFileInfo { modified, ..ToolFileInfo::new(&row.path, length.unwrap_or(row.size)) });
        }
        if self.volumes.read_only_reason(volume).is_some() {
            outcome.files.iter_mut().for_each(|file| file.read_only = true);
            if tool == Some(BuiltInTool::ListFiles) {
                outcome.text.push_str("The volume is read-only.\n");
            }
        }
    }
}
