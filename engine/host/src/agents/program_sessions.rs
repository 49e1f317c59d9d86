//! Programs go on in the sessions that they keep of conversations, also after they were killed.

use acp::{KeptSession, KeptSessions, ResumedSession, SessionKey};
use agent::model_call::ProgramCall;
use std::path::Path;
use store::{MessageId, MessageRole, SessionMessage};

/// File of the workspace that lists the sessions.
const FILE_NAME: &str = "program-sessions.json";

/// The sessions that programs keep of a workspace's conversations.
pub(crate) struct ProgramSessions(KeptSessions);

fn key_of(call: &ProgramCall) -> SessionKey {
    SessionKey { conversation: call.session.to_string(), agent: call.name.clone(), folder: call.folder.clone() }
}

impl ProgramSessions {
    pub(crate) fn new(workspace: &Path) -> ProgramSessions {
        ProgramSessions(KeptSessions::new(workspace.join(FILE_NAME)))
    }

    /// Returns the session in which the program can go on, with the prompt that `prompt_of` makes of what it hasn't
    /// been given; `None` if it has none, or the conversation has branched off before.
    pub(crate) fn find(
        &self,
        call: &ProgramCall,
        messages: &[SessionMessage],
        prompt_of: impl Fn(&[SessionMessage]) -> String,
    ) -> Option<ResumedSession> {
        let known = self.0.find(&key_of(call))?;
        let seen = messages.iter().position(|message| message.id.0 == known.seen)?;
        // Up to the user's next message, all is of its own turn. Without one, that turn was interrupted.
        let mut later = messages.iter().enumerate().skip(seen + 1);
        let next = later.find(|(_, message)| message.role == MessageRole::User).map_or(seen, |(at, _)| at);
        Some(ResumedSession { id: known.id, prompt: prompt_of(messages.get(next..).unwrap_or_default()) })
    }

    /// Notes the session in which a program answers the last message of the user.
    pub(crate) fn remember(&self, call: &ProgramCall, seen: MessageId, id: String) {
        if let Err(error) = self.0.remember(KeptSession { key: key_of(call), id, seen: seen.0 }) {
            tracing::warn!(%error, "the session of a program can't be noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::external_program::ExternalProgram;
    use store::DocId;

    #[test]
    fn a_program_gets_what_it_has_not_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let sessions = ProgramSessions::new(folder.path());
        let call = |session: u8| ProgramCall {
            name: "mine".to_owned(),
            program: ExternalProgram::default(),
            folder: "/notes".into(),
            session: DocId([session; 16]),
            is_trusted: false,
        };
        let message = |id: u64| {
            let role = if id % 2 == 1 { MessageRole::User } else { MessageRole::Assistant };
            SessionMessage::new(MessageId(id), role, format!("message {id}"), 0)
        };
        let all: Vec<SessionMessage> = (1..=5).map(message).collect();
        let ids = |messages: &[SessionMessage]| messages.iter().map(|message| format!("{} ", message.id.0)).collect();
        let found = |session: u8, until: usize| sessions.find(&call(session), &all[..until], ids);
        let resumed = |id: &str, prompt: &str| Some(ResumedSession { id: id.to_owned(), prompt: prompt.to_owned() });
        assert_eq!(found(7, 5), None);
        sessions.remember(&call(7), MessageId(1), "s1".to_owned());
        sessions.remember(&call(8), MessageId(1), "s2".to_owned());
        assert_eq!(found(7, 5), resumed("s1", "3 4 5 "));
        assert_eq!(found(7, 2), resumed("s1", "1 2 "), "its turn was interrupted");
        sessions.remember(&call(7), MessageId(5), "s3".to_owned());
        assert_eq!((found(7, 5), found(7, 3)), (resumed("s3", "5 "), None), "the conversation branched off before");
        assert_eq!(found(8, 3), resumed("s2", "3 "));
    }
}
