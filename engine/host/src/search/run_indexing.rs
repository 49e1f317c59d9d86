//! Converts runs and sessions for the search index. Each step of a run is a passage, and so is each message of a
//! session that isn't part of a run.

use super::{IndexedPassage, NoteText, PassageKind, SearchSource};
use agent::policy;
use engine::{RUN_KEY_PREFIX, RunSummary, SESSION_KEY_PREFIX, SessionSummary};
use serde_json::Value;
use std::collections::HashMap;
use store::disk::{DiskError, DiskReader};
use store::{ActorId, BlobHash, DocId, ExecutionStep, RunDoc, SessionDoc, StepKind, WorkspaceDoc};

/// Maximum length of a step's indexed text in bytes.
const MAX_STEP_TEXT_BYTES: usize = 8_000;
/// Maximum number of passages of a run or session.
const MAX_RUN_PASSAGES: usize = 20_000;
/// An active run is indexed again after this many steps, and at its end.
const STEPS_PER_REREAD: usize = 50;
/// Format of the passages, which is part of every key: a new one causes all runs to be indexed again.
const RUN_PASSAGES_FORMAT: u8 = 2;

/// Reads runs and sessions from disk.
pub(crate) struct RunDocumentReader {
    reader: Box<dyn DiskReader>,
}

impl RunDocumentReader {
    pub(crate) fn new(reader: Box<dyn DiskReader>) -> RunDocumentReader {
        RunDocumentReader { reader }
    }

    fn read_summary<T: serde::de::DeserializeOwned>(&self, beginning: &str, doc: DocId) -> Option<T> {
        let value = self.reader.meta(&format!("{beginning}{doc}")).ok()??;
        serde_json::from_slice(&value).ok()
    }

    fn read_chunks(&self, doc: DocId) -> Option<Vec<Vec<u8>>> {
        let chunks = self.reader.chunks(doc).ok()?;
        Some(chunks.into_iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes).collect())
    }

    /// Returns the name of a volume; empty if unknown.
    fn volume_name(&self, volume: Option<DocId>) -> String {
        let name = || -> Option<String> {
            let workspace: DocId = String::from_utf8(self.reader.meta("workspace").ok()??).ok()?.parse().ok()?;
            let loaded =
                WorkspaceDoc::load(workspace, &self.read_chunks(workspace)?, ActorId::from([0_u8; 16])).ok()?;
            Some(loaded.doc.volumes().get(&volume?)?.name.clone())
        };
        name().unwrap_or_default()
    }

    fn run_text(&self, doc: DocId, line: &RunSummary, key: u64) -> Option<NoteText> {
        let run = RunDoc::load(doc, &self.read_chunks(doc)?, ActorId::from([0_u8; 16])).ok()?.doc;
        let steps = run.steps();
        // Results say little on their own: they're indexed below their tool call.
        let tools: HashMap<&str, &str> = steps
            .iter()
            .filter_map(|step| match &step.kind {
                StepKind::ToolCall { tool_call_id, tool_name, .. } => Some((tool_call_id.as_str(), tool_name.as_str())),
                _ => None,
            })
            .collect();
        let mut passages = vec![IndexedPassage {
            heading: "Asked".to_owned(),
            text: truncate_text(&line.prompt),
            ..IndexedPassage::new(PassageKind::Run)
        }];
        passages.extend(steps.iter().filter_map(|step| step_passage(step, &tools)).take(MAX_RUN_PASSAGES));
        if let Some(first) = steps.first() {
            passages[0].place = first.id.to_string();
        }
        let ended = steps.last().map_or(line.start_time, |step| step.timestamp);
        Some(NoteText {
            note: doc,
            volume: self.volume_name(Some(line.volume)),
            path: engine::run_address(doc),
            title: title_or(&line.prompt, "Run"),
            tags: Vec::new(),
            modified: line.ended.unwrap_or(ended),
            key,
            passages,
        })
    }

    fn session_text(&self, doc: DocId, line: &SessionSummary, key: u64) -> Option<NoteText> {
        let session = SessionDoc::load(doc, &self.read_chunks(doc)?, ActorId::from([0_u8; 16])).ok()?.doc;
        let messages = session.messages();
        // The messages of a run are indexed as its steps.
        let own = messages.iter().filter(|message| message.run.is_none() && !message.content.trim().is_empty());
        let passages: Vec<IndexedPassage> = own
            .take(MAX_RUN_PASSAGES)
            .map(|message| IndexedPassage {
                place: message.id.to_string(),
                heading: message.role.as_str().to_owned(),
                text: truncate_text(&message.content),
                speaker: message.role.as_str().to_owned(),
                session: "messages".to_owned(),
                said: (message.timestamp > 0).then_some(message.timestamp),
                ..IndexedPassage::new(PassageKind::Run)
            })
            .collect();
        (!passages.is_empty()).then(|| NoteText {
            note: doc,
            volume: self.volume_name(line.volume),
            path: engine::session_address(doc),
            title: title_or(&line.title, "Session"),
            tags: Vec::new(),
            modified: line.updated,
            key,
            passages,
        })
    }
}

fn title_or(text: &str, otherwise: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or(otherwise).trim();
    line.chars().take(100).collect()
}

fn truncate_text(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_STEP_TEXT_BYTES)].to_owned()
}

/// Returns a step as a passage; `None` if it has no text.
fn step_passage(step: &ExecutionStep, tools: &HashMap<&str, &str>) -> Option<IndexedPassage> {
    let (heading, text) = match &step.kind {
        StepKind::Thinking { content, .. } => ("Thought".to_owned(), content.clone()),
        StepKind::FinalAnswer { content } => ("Answer".to_owned(), content.clone()),
        StepKind::Error { message, .. } => ("Error".to_owned(), message.clone()),
        StepKind::ToolCall { tool_name, params, .. } => {
            let rest = serde_json::to_string(params).unwrap_or_default();
            (format!("Call of {tool_name}"), format!("{tool_name} {}\n{rest}", policy::main_argument(params)))
        }
        StepKind::ToolResult { tool_call_id, result, error, .. } => {
            let text = match (result, error) {
                (Some(Value::String(text)), _) => text.clone(),
                (Some(other), _) => other.to_string(),
                (None, error) => error.clone().unwrap_or_default(),
            };
            (format!("Result of {}", tools.get(tool_call_id.as_str()).unwrap_or(&"a tool")), text)
        }
        StepKind::Todo { todos } => {
            let words: Vec<&str> = todos.iter().map(|todo| todo.content.as_str()).collect();
            ("Todos".to_owned(), words.join("\n"))
        }
    };
    let text = truncate_text(text.trim());
    (!text.is_empty()).then(|| IndexedPassage {
        place: step.id.to_string(),
        heading,
        text,
        ..IndexedPassage::new(PassageKind::Run)
    })
}

/// Returns the key of a document's summary.
fn hash_parts(parts: &[&[u8]]) -> u64 {
    let mut bytes = vec![RUN_PASSAGES_FORMAT];
    for part in parts {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(*part);
    }
    u64::from_le_bytes(BlobHash::of(&bytes).0[..8].try_into().unwrap_or_default())
}

impl SearchSource for RunDocumentReader {
    fn list_documents(&mut self) -> Result<Vec<DocId>, DiskError> {
        let mut found = Vec::new();
        for beginning in [RUN_KEY_PREFIX, SESSION_KEY_PREFIX] {
            let lines = self.reader.metas_with_prefix(beginning)?;
            found.extend(lines.iter().filter_map(|(key, _)| key.strip_prefix(beginning)?.parse::<DocId>().ok()));
        }
        Ok(found)
    }

    fn document_key(&mut self, doc: DocId) -> Option<u64> {
        if let Some(line) = self.read_summary::<RunSummary>(RUN_KEY_PREFIX, doc) {
            let ended = line.ended.unwrap_or(0).to_le_bytes();
            let steps = if line.ending.is_some() { line.steps } else { line.steps / STEPS_PER_REREAD };
            return Some(hash_parts(&[b"run", line.prompt.as_bytes(), &ended, &(steps as u64).to_le_bytes()]));
        }
        let line = self.read_summary::<SessionSummary>(SESSION_KEY_PREFIX, doc)?;
        let (updated, messages) = (line.updated.to_le_bytes(), (line.messages as u64).to_le_bytes());
        Some(hash_parts(&[b"session", line.title.as_bytes(), &updated, &messages]))
    }

    fn read_document(&mut self, doc: DocId) -> Option<NoteText> {
        let key = self.document_key(doc)?;
        match self.read_summary::<RunSummary>(RUN_KEY_PREFIX, doc) {
            Some(line) => self.run_text(doc, &line, key),
            None => self.session_text(doc, &self.read_summary::<SessionSummary>(SESSION_KEY_PREFIX, doc)?, key),
        }
    }
}
