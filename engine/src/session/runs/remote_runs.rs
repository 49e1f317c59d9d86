//! Sessions and runs of shared volumes: listed in the volume's document, and received from other devices. A run belongs
//! to one device, and only that device continues it. The others see its progress and may stop it, deny its calls and
//! answer its questions.

use crate::effect::Effect;
use crate::event::DocumentLoadError;
use crate::session::apply_context::{ApplyContext, CommandError, RemoteChangeError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, CallPhase};
use crate::session::state::agent_session::AgentSession;
use crate::session::state::runs::{RunRecord, RunsState, VolumeListEntry};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::run_records::{RUN_KEY_PREFIX, RunSummary, SESSION_KEY_PREFIX};
use agent::tool_catalog::BuiltInTool;
use std::collections::{BTreeMap, BTreeSet};
use store::disk::RowWrite;
use store::{AgentState, DocId, ListedDocumentKind, MessageTree, RunAbout, RunDevice, RunDoc, SessionAbout};

impl crate::session::state::runs::RunsState {
    /// Returns the runs of a volume, each with whether it's open.
    pub(in crate::session) fn runs_of(&self, volume: DocId) -> impl Iterator<Item = (DocId, bool)> {
        let runs = self.run_summaries.iter().filter(move |(_, line)| line.volume == volume);
        runs.map(|(id, _)| (*id, self.runs.contains_key(id)))
    }
}

impl RunsState {
    /// Returns whether all received sessions, runs and tools are in place, and all local ones are listed.
    pub(in crate::session) fn is_agent_sync_settled(&self, sync: &SyncState) -> bool {
        let elsewhere = &self.remote_runs;
        let settled =
            elsewhere.unlisted.is_empty() && elsewhere.early_changes.is_empty() && !elsewhere.is_tool_sharing_due;
        settled || sync.shares.hubs.is_empty()
    }

    /// Queues an entry for the document of a shared volume: a session or run was created, or deleted with these heads.
    pub(super) fn queue_volume_listing(
        &mut self,
        sync: &mut SyncState,
        volume: DocId,
        kind: ListedDocumentKind,
        id: DocId,
        gone: Option<String>,
    ) {
        if sync.is_shared(volume) {
            self.remote_runs.unlisted.push((volume, (kind, id, gone)));
            sync.mark_stale();
        }
    }

    /// Compares the list in a shared volume's document after it was loaded: lists missing local documents, and requests
    /// listed documents that are missing here.
    pub(in crate::session) fn on_volume_list_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        volume: DocId,
    ) {
        let Some(doc) = files.volumes.by_id.get(&volume).and_then(|volume| volume.doc.as_ref()) else { return };
        let listed = doc.listed_documents();
        let known: BTreeSet<(ListedDocumentKind, DocId)> = listed.iter().map(|(kind, id, _)| (*kind, *id)).collect();
        let sessions = self.session_summaries.iter().filter(|(_, line)| line.volume == Some(volume));
        let sessions = sessions.map(|(id, _)| (ListedDocumentKind::Session, *id));
        let runs = self.run_summaries.iter().filter(|(_, line)| line.volume == volume);
        let new: Vec<(ListedDocumentKind, DocId)> =
            sessions.chain(runs.map(|(id, _)| (ListedDocumentKind::Run, *id))).collect();
        for (kind, id) in new.into_iter().filter(|one| !known.contains(one)) {
            self.queue_volume_listing(sync, volume, kind, id, None);
        }
        for line in listed {
            self.on_volume_list_entry(turn, files, sync, workspace, volume, line);
        }
        self.remote_runs.is_tool_sharing_due = true;
    }

    /// Handles an entry for a session or run in a volume's document that another device changed.
    pub(in crate::session) fn on_volume_list_entry(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        volume: DocId,
        (kind, id, gone): VolumeListEntry,
    ) {
        let here = match kind {
            ListedDocumentKind::Session => self.session_summaries.contains_key(&id),
            ListedDocumentKind::Run => self.run_summaries.contains_key(&id),
        };
        match gone {
            None if !here && !self.is_id_taken(files, workspace, id) => {
                self.remote_runs.expected.insert(id, (volume, kind));
                sync.mark_stale();
            }
            None => {}
            Some(heads) => {
                if self.remote_runs.expected.remove(&id).is_some() {
                    sync.mark_stale();
                }
                let line = self.session_summaries.get(&id).filter(|line| line.volume == Some(volume));
                let Some(line) = line.filter(|_| kind == ListedDocumentKind::Session).cloned() else { return };
                if line.heads == heads && self.delete_session(turn, sync, id, false).is_ok() {
                    sync.log_line(turn.now, format!("the session “{}” was deleted on another device", line.title));
                } else {
                    let why = "was deleted on another device and went on on this one: it stays";
                    sync.log_line(turn.now, format!("the session “{}” {why}", line.title));
                    self.queue_volume_listing(sync, volume, ListedDocumentKind::Session, id, None);
                }
            }
        }
    }

    /// Returns whether an id already belongs to something else, so that no volume's list can make it a session or run.
    fn is_id_taken(&self, files: &FilesState, workspace: &WorkspaceState, id: DocId) -> bool {
        id == workspace.id
            || id == workspace.id.registry_id()
            || files.volumes.by_id.contains_key(&id)
            || files.volumes.locations.contains_key(&id)
            || files.moves.trash.contains_key(&id)
            || self.is_agent_doc(id)
            || files.volumes.by_id.keys().any(|volume| volume.tools_id() == id)
    }

    /// Writes the queued entries to the documents of their volumes.
    pub(in crate::session) fn write_volume_lists(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &mut VolumesState,
        sync: &mut SyncState,
    ) {
        if self.remote_runs.unlisted.is_empty() {
            return;
        }
        let mut by_volume: BTreeMap<DocId, Vec<VolumeListEntry>> = BTreeMap::new();
        for (volume, line) in std::mem::take(&mut self.remote_runs.unlisted) {
            by_volume.entry(volume).or_default().push(line);
        }
        for (id, lines) in by_volume {
            if !sync.is_shared(id) {
                continue;
            }
            volumes.write_volume_doc(turn, sync, id);
            let awaited = sync.is_awaited(id);
            let Some(volume) = volumes.by_id.get_mut(&id) else { continue };
            let trouble = volume.trouble.is_some();
            let Some(doc) = volume.doc.as_mut().filter(|_| !awaited && !volume.doc_new) else {
                if !trouble {
                    self.remote_runs.unlisted.extend(lines.into_iter().map(|line| (id, line)));
                }
                continue;
            };
            match doc.list_documents(&lines, turn.now.as_seconds()) {
                Ok(bytes) => turn.append_writes(vec![RowWrite::Chunk { doc: id, bytes }], None),
                Err(error) => volume.trouble = Some(error.to_string()),
            }
        }
    }

    /// Merges received changes of a session, a run or a volume's tools; `None` if the document is none of these.
    pub(in crate::session) fn on_agent_doc_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (ticket, bytes): (u64, &[u8]),
    ) -> Option<Result<(), RemoteChangeError>> {
        let agents = &mut *self;
        let expected = agents.remote_runs.expected.get(&id).map(|(_, kind)| *kind);
        let kind = match (agents.session_summaries.contains_key(&id), agents.run_summaries.contains_key(&id)) {
            (true, _) => Some(ListedDocumentKind::Session),
            (_, true) => Some(ListedDocumentKind::Run),
            (false, false) => expected,
        };
        let Some(kind) = kind else { return self.tools_received(turn, &files.volumes, sync, id, ticket, bytes) };
        match kind {
            ListedDocumentKind::Session if agents.sessions.contains_key(&id) => {
                return Some(self.merge_remote_session(turn, id, bytes));
            }
            ListedDocumentKind::Run if agents.runs.contains_key(&id) => {
                return Some(self.merge_remote_run(turn, files, sync, workspace, id, bytes));
            }
            ListedDocumentKind::Session | ListedDocumentKind::Run => {}
        }
        agents.remote_runs.early_changes.entry(id).or_default().push((ticket, bytes.to_vec()));
        if agents.loading.insert(id) {
            agents.remote_runs.temporary_docs.insert(id);
            turn.effects.push(match kind {
                ListedDocumentKind::Session => Effect::LoadSession { session: id },
                ListedDocumentKind::Run => Effect::LoadRun { run: id },
            });
        }
        Some(Ok(()))
    }

    /// Merges changes that arrived while a session's document was being read.
    pub(super) fn merge_early_session(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) {
        for (ticket, bytes) in self.remote_runs.early_changes.remove(&id).unwrap_or_default() {
            if let Err(why) = self.merge_remote_session(turn, id, &bytes) {
                sync.refuse_received(turn, ticket, why.to_string());
            }
        }
        if self.remote_runs.temporary_docs.remove(&id) || !self.session_summaries.contains_key(&id) {
            self.sessions.remove(&id);
        }
    }

    /// Merges changes that arrived while a run's document was being read. Returns the document, unless it was read only
    /// to merge them.
    pub(super) fn merge_early_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        doc: Result<Box<RunDoc>, DocumentLoadError>,
    ) -> Option<Result<Box<RunDoc>, DocumentLoadError>> {
        let early = self.remote_runs.early_changes.remove(&id).unwrap_or_default();
        let passing = self.remote_runs.temporary_docs.remove(&id);
        let mut doc = match doc {
            Ok(doc) => doc,
            Err(why) => {
                for (ticket, _) in early {
                    sync.refuse_received(turn, ticket, why.to_string());
                }
                return (!passing).then_some(Err(why));
            }
        };
        let mut bad = false;
        for (ticket, bytes) in early {
            let taken = doc.merge(id, &bytes).map_err(RemoteChangeError::from);
            let about = taken.and_then(|_| doc.about().ok_or(RemoteChangeError::NoMetadata));
            match about.and_then(|about| self.validate_remote_run(id, &about).map(|()| about)) {
                Ok(about) => {
                    let mut run = AgentRun::new(id, about, doc, false);
                    run.device = self.believed_device(workspace, id, run.device.take());
                    self.save_run_summary(turn, sync, id, run.summary(), bytes);
                    doc = run.doc;
                }
                Err(why) => {
                    bad = true; // what is in memory is not what is on disk
                    sync.refuse_received(turn, ticket, why.to_string());
                }
            }
        }
        (!passing && !bad).then_some(Ok(doc))
    }

    /// Merges received changes of an open session.
    fn merge_remote_session(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        bytes: &[u8],
    ) -> Result<(), RemoteChangeError> {
        let expected = self.remote_runs.expected.get(&id).map(|(volume, _)| *volume);
        let session = self.sessions.get_mut(&id).ok_or(RemoteChangeError::NotOpen)?;
        session.doc.merge(id, bytes)?;
        let (ours, theirs) = (session.head(), session.doc.about());
        if expected.is_some_and(|volume| theirs.volume != Some(volume)) {
            return Err(RemoteChangeError::OtherVolume { what: "session" });
        }
        session.tree = MessageTree::new(session.doc.messages());
        // If the new head continues the current branch, the head moves to it; otherwise it stays.
        let goes_on =
            |session: &AgentSession, head| session.tree.branch_to(head).iter().any(|one| Some(one.id) == ours);
        let follows = theirs.head.is_some_and(|head| ours.is_none() || goes_on(session, head));
        let volume = if expected.is_some() { theirs.volume } else { session.about.volume };
        session.about = SessionAbout { head: if follows { theirs.head } else { ours }, volume, ..theirs };
        session.revision += 1;
        let line = session.summary();
        let value = serde_json::to_vec(&line).ok();
        self.revision += 1;
        self.session_summaries.insert(id, line);
        self.remote_runs.expected.remove(&id);
        let key = format!("{SESSION_KEY_PREFIX}{id}");
        turn.append_writes(
            vec![RowWrite::Chunk { doc: id, bytes: bytes.to_vec() }, RowWrite::Meta { key, value }],
            None,
        );
        Ok(())
    }

    /// Returns the device that a run's document names, unless it's this one and nothing here knows of that: documents
    /// aren't signed, and none makes this device continue a run.
    pub(super) fn believed_device(
        &self,
        workspace: &WorkspaceState,
        id: DocId,
        said: Option<RunDevice>,
    ) -> Option<RunDevice> {
        let known = self.run_summaries.get(&id).map(|line| line.device.clone());
        match known {
            _ if !workspace.is_own_device(said.as_ref()) => said,
            Some(device) if workspace.is_own_device(device.as_ref()) => said,
            Some(device) => device,
            None => Some(RunDevice { id: DocId([0; 16]), name: "another device".to_owned() }),
        }
    }

    /// Checks whether a run's metadata matches what is already known.
    fn validate_remote_run(&self, id: DocId, about: &RunAbout) -> Result<(), RemoteChangeError> {
        let expected = self.remote_runs.expected.get(&id).map(|(volume, _)| *volume);
        let volume = expected.or_else(|| self.run_summaries.get(&id).map(|line| line.volume));
        match volume == Some(about.volume) {
            true => Ok(()),
            false => Err(RemoteChangeError::OtherVolume { what: "run" }),
        }
    }

    fn save_run_summary(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        line: RunSummary,
        bytes: Vec<u8>,
    ) {
        let value = serde_json::to_vec(&line).ok();
        if self.run_summaries.insert(id, line).is_none() {
            sync.mark_attachments_stale(); // it may name files of its own
        }
        self.revision += 1;
        self.remote_runs.expected.remove(&id);
        let line = RowWrite::Meta { key: format!("{RUN_KEY_PREFIX}{id}"), value };
        turn.append_writes(vec![RowWrite::Chunk { doc: id, bytes }, line], None);
    }

    /// Merges received changes of an open run.
    fn merge_remote_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        bytes: &[u8],
    ) -> Result<(), RemoteChangeError> {
        let run = self.runs.get_mut(&id).ok_or(RemoteChangeError::NotOpen)?;
        run.doc.merge(id, bytes)?;
        let about = run.doc.about().ok_or(RemoteChangeError::NoMetadata)?;
        if let Err(why) = self.validate_remote_run(id, &about) {
            self.halt_run(turn, files, sync, id);
            self.runs.remove(&id); // what is in memory is not what is on disk
            return Err(why);
        }
        let (carries_out, is_held) = (self.carries_out(workspace, id), self.holder_policy(id).is_some());
        let said = self.runs.get(&id).and_then(|run| run.doc.device());
        let is_claimed = carries_out && is_held && !workspace.is_own_device(said.as_ref());
        let device = self.believed_device(workspace, id, said);
        let Some(run) = self.runs.get_mut(&id) else { return Ok(()) };
        run.revision += 1;
        (run.steps, run.todos, run.changes) = (run.doc.steps(), run.doc.todos(), run.doc.changes());
        run.pending_batches.push_back((turn.journal.next_batch, run.steps.len()));
        let (mut decided, mut contradicted) = (Vec::new(), Vec::new());
        if carries_out && (is_held || workspace.is_own_device(device.as_ref())) {
            // This device's own run: other devices may stop it, deny calls and answer questions. Only this device can
            // allow calls, because they run here. Who sent a held run answers its questions, and signs that.
            for approval in run.doc.approvals() {
                let Some(known) = run.approvals.iter_mut().find(|known| known.id == approval.id) else { continue };
                // What was decided here counts, since it was carried out; the document has to say the same.
                if known.decision.is_some() && known.decision != approval.decision {
                    contradicted.push(approval.id.clone());
                }
                let Some(decision) = approval.decision.filter(|_| known.decision.is_none()) else { continue };
                if !decision.allowed || (!is_held && BuiltInTool::AskUser.is_named(&known.tool)) {
                    known.decision = Some(store::DecisionRecord { arguments: None, ..decision });
                    decided.push(approval.id);
                }
            }
            if run.about.ending.is_none() && about.ending.is_some() {
                decided.clear();
                let agent_state = AgentState::Idle;
                run.about = RunAbout { ending: about.ending, ended: about.ended, agent_state, ..run.about.clone() };
                self.halt_run(turn, files, sync, id);
            }
        } else {
            run.approvals = run.doc.approvals();
            run.about = RunAbout { session: run.about.session, volume: run.about.volume, ..about };
            run.device = device;
            self.halt_run(turn, files, sync, id); // another device has taken it over
        }
        let Some(run) = self.runs.get(&id) else { return Ok(()) };
        let line = run.summary();
        self.save_run_summary(turn, sync, id, line, bytes.to_vec());
        if is_claimed || !contradicted.is_empty() {
            // The hub decides who carries out a sent run, and not its document.
            self.record_run(turn, sync, id, RunRecord { approvals: contradicted, ..RunRecord::default() });
        }
        for approval in decided {
            self.on_approval_decided(turn, files, sync, workspace, id, &approval);
        }
        Ok(())
    }

    /// Stops all work of a run on this device without recording anything.
    pub(super) fn halt_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        if let Some(live) = run.live.take() {
            turn.effects.push(Effect::CancelModel { call: live.call });
        }
        run.is_awake = false;
        run.drop_server_requests(turn);
        let calls = std::mem::take(&mut run.calls);
        for pending in calls.into_iter().filter(|pending| matches!(pending.phase, CallPhase::Running { .. })) {
            self.stop_tool_call(turn, files, sync, id, &pending.call.id);
        }
        self.drop_tool_note_jobs(turn, files, sync, id);
        self.resume_after.remove(&id);
    }
}

/// Returns the error for resuming a run of another device.
pub(super) fn other_device_error(device: &RunDevice) -> CommandError {
    CommandError(format!("the run is active on {}; stop it there before you continue it here", device.name))
}
