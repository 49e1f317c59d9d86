//! Sessions: trees of messages. A branch can start at any message, branches can be compared and merged, and messages
//! are never changed.

use crate::effect::Effect;
use crate::event::DocumentLoadError;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_session::AgentSession;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::prompt_quote;
use agent::run_records::{RUN_KEY_PREFIX, SESSION_KEY_PREFIX};
use std::collections::BTreeMap;
use store::disk::RowWrite;
use store::{DocId, ListedDocumentKind, MessageId, MessageRole, MessageTree, SessionAbout, SessionDoc, SessionMessage};

/// Maximum length of a title in characters.
const MAX_SESSION_TITLE_CHARS: usize = 80;

/// Returns a title from the beginning of a message.
fn session_title(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    let mut title: String = line.chars().take(MAX_SESSION_TITLE_CHARS).collect();
    if line.chars().count() > MAX_SESSION_TITLE_CHARS {
        title.push('\u{2026}');
    }
    title
}

impl RunsState {
    pub(in crate::session) fn open_session(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
    ) -> Result<(), CommandError> {
        if !self.session_summaries.contains_key(&id) {
            return Err(CommandError(format!("there is no session {id}")));
        }
        self.remote_runs.keep_loaded(id);
        if !self.sessions.contains_key(&id) && self.loading.insert(id) {
            turn.effects.push(Effect::LoadSession { session: id });
        }
        Ok(())
    }

    pub(in crate::session) fn session_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        doc: Result<Box<SessionDoc>, DocumentLoadError>,
    ) {
        self.loading.remove(&id);
        self.revision += 1;
        match doc {
            Ok(doc) => {
                let read = |agents: &mut crate::session::state::runs::RunsState| {
                    agents.sessions.entry(id).or_insert_with(|| AgentSession::new(id, doc, false));
                };
                read(&mut *self);
            }
            Err(why) => {
                self.read_errors.insert(id, why.0);
            }
        }
        self.merge_early_session(turn, sync, id);
        self.continue_read_runs(turn, files, sync, workspace);
        self.begin_requested_runs(turn, files, sync, workspace);
        self.resume_stalled_runs(turn, files, sync, workspace);
    }

    /// Returns the session with this id, and creates it if it doesn't exist.
    pub(super) fn make_session(
        &mut self,
        workspace: &WorkspaceState,
        id: DocId,
        volume: DocId,
        note: Option<DocId>,
        text: &str,
    ) -> Result<(), CommandError> {
        if self.sessions.contains_key(&id) {
            return Ok(());
        }
        let loaded =
            SessionDoc::load(id, &[], workspace.actor.clone()).map_err(|error| CommandError(error.to_string()))?;
        let mut made = AgentSession::new(id, Box::new(loaded.doc), true);
        made.about = SessionAbout {
            title: session_title(text),
            volume: Some(volume),
            note,
            head: None,
            ..SessionAbout::default()
        };
        self.sessions.insert(id, made);
        Ok(())
    }

    /// Adds messages to a session. If they continue the current branch, the head moves to them.
    pub(super) fn append_messages(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        messages: Vec<SessionMessage>,
        from: MessageId,
        to: MessageId,
    ) -> Vec<RowWrite> {
        let Some(session) = self.sessions.get_mut(&id) else {
            turn.journal.problems.push(format!("the session {id} is not open, so what was said is not in it"));
            return Vec::new();
        };
        let head = session.head();
        let answers =
            |message: &SessionMessage| message.role == MessageRole::User || message.parents.first().copied() == head;
        if head.is_none() || head == Some(from) || messages.first().is_some_and(answers) {
            session.about.head = Some(to);
        }
        for message in &messages {
            session.tree.add(message.clone());
        }
        self.save_session(turn, sync, id, &messages)
    }

    fn save_session(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        messages: &[SessionMessage],
    ) -> Vec<RowWrite> {
        let Some(session) = self.sessions.get_mut(&id) else { return Vec::new() };
        session.revision += 1;
        self.revision += 1;
        let said: Vec<&SessionMessage> = messages.iter().collect();
        let bytes = match session.doc.commit(&said, &session.about, turn.now.as_seconds()) {
            Ok(bytes) => bytes,
            Err(error) => {
                turn.journal.problems.push(error.to_string());
                return Vec::new();
            }
        };
        let fresh = std::mem::take(&mut session.fresh);
        let bytes = if fresh { session.doc.save() } else { bytes };
        let line = session.summary();
        let value = serde_json::to_vec(&line).ok();
        if let Some(volume) = line.volume.filter(|_| fresh) {
            self.queue_volume_listing(sync, volume, ListedDocumentKind::Session, id, None);
        }
        self.session_summaries.insert(id, line);
        vec![RowWrite::Chunk { doc: id, bytes }, RowWrite::Meta { key: format!("{SESSION_KEY_PREFIX}{id}"), value }]
    }

    fn loaded_session(&mut self, id: DocId) -> Result<&mut AgentSession, CommandError> {
        let why = || CommandError("the session is not open yet; try again in a moment".to_owned());
        self.sessions.get_mut(&id).ok_or_else(why)
    }

    /// Switches to another branch.
    pub(in crate::session) fn switch_branch(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        to: MessageId,
    ) -> Result<(), CommandError> {
        let session = self.loaded_session(id)?;
        if session.tree.get(to).is_none() {
            return Err(CommandError(format!("there is no message {to} in the session")));
        }
        session.about.head = Some(to);
        let writes = self.save_session(turn, sync, id, &[]);
        turn.append_writes(writes, None);
        Ok(())
    }

    /// Renames, archives or unarchives a session.
    pub(in crate::session) fn update_session(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        title: Option<String>,
        closed: Option<bool>,
    ) -> Result<(), CommandError> {
        let session = self.loaded_session(id)?;
        if let Some(title) = title {
            let title: String = title.trim().chars().take(MAX_SESSION_TITLE_CHARS * 2).collect();
            if title.is_empty() {
                return Err(CommandError("a session needs a title".to_owned()));
            }
            session.about.title = title;
        }
        session.about.closed = closed.unwrap_or(session.about.closed);
        let writes = self.save_session(turn, sync, id, &[]);
        turn.append_writes(writes, None);
        Ok(())
    }

    /// Creates a session with a copy of all messages up to a given one.
    pub(in crate::session) fn fork_session(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        at: MessageId,
        new: DocId,
    ) -> Result<(), CommandError> {
        if self.session_summaries.contains_key(&new) {
            return Err(CommandError("a session with that id already exists".to_owned()));
        }
        let session = self.loaded_session(id)?;
        let said: Vec<SessionMessage> = session.tree.branch_to(at).into_iter().cloned().collect();
        if said.is_empty() {
            return Err(CommandError(format!("there is no message {at} in the session")));
        }
        let title = format!("{} (fork)", session.about.title);
        let about = SessionAbout { head: Some(at), title, imported: None, ..session.about.clone() };
        let loaded =
            SessionDoc::load(new, &[], workspace.actor.clone()).map_err(|error| CommandError(error.to_string()))?;
        let mut made = AgentSession::new(new, Box::new(loaded.doc), true);
        made.about = about;
        made.tree = MessageTree::new(said.clone());
        self.sessions.insert(new, made);
        let writes = self.save_session(turn, sync, new, &said);
        turn.append_writes(writes, None);
        Ok(())
    }

    /// Imports a session from an exported file.
    pub(in crate::session) fn import_session(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (volume, name): (DocId, &str),
        (messages, imported): (Vec<SessionMessage>, Option<String>),
    ) -> Result<(), CommandError> {
        if self.session_summaries.contains_key(&id) {
            return Err(CommandError("a session with that id already exists".to_owned()));
        }
        let Some(last) = messages.last().map(|message| message.id) else {
            return Err(CommandError("there is no message in it".to_owned()));
        };
        self.make_session(workspace, id, volume, None, name)?;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.tree = MessageTree::new(messages.clone());
            session.about.head = Some(last);
            session.about.imported = imported;
        }
        let writes = self.save_session(turn, sync, id, &messages);
        turn.append_writes(writes, None);
        Ok(())
    }

    /// Merges the result of one branch into another.
    pub(in crate::session) fn merge_branch(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        from: MessageId,
        into: MessageId,
    ) -> Result<(), CommandError> {
        let session = self.loaded_session(id)?;
        let (Some(_), Some(_)) = (session.tree.get(from), session.tree.get(into)) else {
            return Err(CommandError("the session has no such message".to_owned()));
        };
        let fork = session.tree.last_shared_message(from, into);
        let own =
            session.tree.branch_to(from).into_iter().skip_while(|message| fork.is_some_and(|fork| message.id != fork));
        let own: Vec<&SessionMessage> = own.skip(usize::from(fork.is_some())).collect();
        let answer =
            own.iter().rev().find(|message| message.role == MessageRole::Assistant && !message.content.is_empty());
        let Some(answer) = answer else {
            return Err(CommandError("that branch has no answer that could be brought over".to_owned()));
        };
        let asked =
            own.iter().find(|message| message.role == MessageRole::User).map_or("", |message| message.content.as_str());
        let words = format!(
            "From another branch of this session. {}\n\n{}\n\n{}",
            prompt_quote::QUOTED_MATERIAL_PREAMBLE,
            prompt_quote::quote_block("what was asked there", asked),
            prompt_quote::quote_block("the answer there", &answer.content)
        );
        let message = SessionMessage {
            parents: vec![into, from],
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::System, words, turn.now.0)
        };
        session.about.head = Some(message.id);
        session.tree.add(message.clone());
        let writes = self.save_session(turn, sync, id, &[message]);
        turn.append_writes(writes, None);
        Ok(())
    }

    /// Permanently deletes a session and its runs. `told`: whether other devices should do the same.
    pub(in crate::session) fn delete_session(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        told: bool,
    ) -> Result<(), CommandError> {
        if !self.session_summaries.contains_key(&id) {
            return Err(CommandError(format!("there is no session {id}")));
        }
        let of = |line: &agent::run_records::RunSummary| line.session == id;
        let runs: BTreeMap<DocId, bool> = self
            .run_summaries
            .iter()
            .filter(|(_, line)| of(line))
            .map(|(run, _)| (*run, self.runs.get(run).is_some_and(crate::session::state::agent_run::AgentRun::is_busy)))
            .collect();
        if runs.values().any(|busy| *busy) {
            return Err(CommandError("the session is active; stop it first".to_owned()));
        }
        if let Some(line) = self.session_summaries.get(&id).cloned()
            && let Some(volume) = line.volume.filter(|_| told)
        {
            self.queue_volume_listing(sync, volume, ListedDocumentKind::Session, id, Some(line.heads));
            runs.keys().for_each(|run| {
                self.queue_volume_listing(sync, volume, ListedDocumentKind::Run, *run, Some(String::new()))
            });
        }
        let mut writes = vec![
            RowWrite::DeleteDocument { doc: id },
            RowWrite::Meta { key: format!("{SESSION_KEY_PREFIX}{id}"), value: None },
        ];
        for run in runs.keys() {
            writes.push(RowWrite::DeleteDocument { doc: *run });
            writes.push(RowWrite::Meta { key: format!("{RUN_KEY_PREFIX}{run}"), value: None });
            self.run_summaries.remove(run);
            self.runs.remove(run);
        }
        self.session_summaries.remove(&id);
        self.sessions.remove(&id);
        self.revision += 1;
        turn.append_writes(writes, None);
        Ok(())
    }
}
