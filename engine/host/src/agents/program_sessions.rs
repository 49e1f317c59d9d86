//! Which sessions programs keep of conversations, so that a program goes on where it was, also after it was killed.

use crate::fs::user_file::{read_user_file, replace_user_file};
use acp::ResumedSession;
use agent::model_call::ProgramCall;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use store::{DocId, MessageId, MessageRole, SessionMessage};

/// File of the workspace that keeps the list.
const FILE_NAME: &str = "program-sessions.json";
/// Maximum length of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of sessions that are kept; the oldest are forgotten.
const MAX_SESSIONS: usize = 500;
/// Maximum length of a program's own id in bytes.
const MAX_ID_BYTES: usize = 500;

/// A session that a program keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProgramSession {
    /// The conversation.
    session: DocId,
    /// The agent's name.
    agent: String,
    /// The folder in which it works.
    folder: PathBuf,
    /// The program's own id.
    id: String,
    /// The last message of the user that it was given.
    seen: MessageId,
}

impl ProgramSession {
    fn is_of(&self, call: &ProgramCall) -> bool {
        self.session == call.session && self.agent == call.name && self.folder == call.folder
    }
}

/// The sessions that programs keep of a workspace's conversations.
pub(crate) struct ProgramSessions {
    file: PathBuf,
    turn: Mutex<()>,
}

impl ProgramSessions {
    pub(crate) fn new(workspace: &Path) -> ProgramSessions {
        ProgramSessions { file: workspace.join(FILE_NAME), turn: Mutex::default() }
    }

    /// Returns the list and the bytes of its file. One that can't be read only costs a program its memory.
    fn read(&self) -> (Vec<ProgramSession>, Option<Vec<u8>>) {
        let bytes = read_user_file(&self.file, MAX_FILE_BYTES).unwrap_or_default();
        let list = bytes.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
        (list, bytes)
    }

    /// Returns the session in which the program can go on, with the prompt that `prompt_of` makes of what it hasn't been
    /// given; `None` if it has none, or the conversation has branched off before.
    pub(crate) fn find(
        &self,
        call: &ProgramCall,
        messages: &[SessionMessage],
        prompt_of: impl Fn(&[SessionMessage]) -> String,
    ) -> Option<ResumedSession> {
        let (list, _) = self.read();
        let known = list.into_iter().rev().find(|known| known.is_of(call))?;
        let seen = messages.iter().position(|message| message.id == known.seen)?;
        // Up to the user's next message, all is of its own turn. Without one, that turn was interrupted.
        let is_new = |(at, message): &(usize, &SessionMessage)| *at > seen && message.role == MessageRole::User;
        let next = messages.iter().enumerate().find(is_new).map_or(seen, |(at, _)| at);
        Some(ResumedSession { id: known.id, prompt: prompt_of(messages.get(next..).unwrap_or_default()) })
    }

    /// Notes the session in which a program answers the last message of the user.
    pub(crate) fn remember(&self, call: &ProgramCall, seen: MessageId, id: String) {
        if id.len() > MAX_ID_BYTES {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut list, old) = self.read();
        list.retain(|known| !known.is_of(call));
        let ProgramCall { session, name, folder, .. } = call.clone();
        list.push(ProgramSession { session, agent: name, folder, id, seen });
        let surplus = list.len().saturating_sub(MAX_SESSIONS);
        list.drain(..surplus);
        let written = serde_json::to_vec(&list).map_err(anyhow::Error::from);
        if let Err(error) = written.and_then(|new| replace_user_file(&self.file, old.as_deref(), &new)) {
            tracing::warn!(%error, "the session of a program can't be noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::external_program::ExternalProgram;

    fn call(session: u8) -> ProgramCall {
        ProgramCall {
            name: "mine".to_owned(),
            program: ExternalProgram::default(),
            folder: "/notes".into(),
            session: DocId([session; 16]),
        }
    }

    fn message(id: u64, role: MessageRole) -> SessionMessage {
        SessionMessage::new(MessageId(id), role, format!("message {id}"), 0)
    }

    fn ids(messages: &[SessionMessage]) -> String {
        messages.iter().map(|message| format!("{} ", message.id.0)).collect()
    }

    #[test]
    fn a_program_gets_what_it_has_not_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = ProgramSessions::new(folder.path());
        use MessageRole::{Assistant, User};
        let all = [message(1, User), message(2, Assistant), message(3, User), message(4, Assistant), message(5, User)];
        assert!(sessions.find(&call(7), &all, ids).is_none(), "nothing is known");
        sessions.remember(&call(7), MessageId(1), "s1".to_owned());
        sessions.remember(&call(8), MessageId(1), "s2".to_owned());
        let found = |session: u8, until: usize| sessions.find(&call(session), &all[..until], ids);
        let resumed = |id: &str, prompt: &str| Some(ResumedSession { id: id.to_owned(), prompt: prompt.to_owned() });
        assert_eq!(found(7, 5), resumed("s1", "3 4 5 "));
        assert_eq!(found(7, 2), resumed("s1", "1 2 "), "its turn was interrupted");
        sessions.remember(&call(7), MessageId(5), "s3".to_owned());
        assert_eq!((found(7, 5), found(7, 3)), (resumed("s3", "5 "), None), "the conversation branched off before");
        assert_eq!(found(8, 3), resumed("s2", "3 "));
        std::fs::write(folder.path().join(FILE_NAME), b"{").expect("written");
        assert_eq!(found(8, 3), None);
        sessions.remember(&call(8), MessageId(3), "s4".to_owned());
        assert_eq!(found(8, 5), resumed("s4", "5 "), "a broken list is replaced");
    }
}
