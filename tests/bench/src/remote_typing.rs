//! Benchmark of a character typed on another device into a note of a million characters: its cost on the UI thread.
//!
//! It's compared with the same edit in a single text object.

use super::report::{BenchReport, FigureGoal, percentile};
use super::text_fixtures::{self, FixtureRng};
use super::to_ms;
use agent::model_call::ModelCallId;
use engine::event::{DocumentLoadError, FileStamp, NoteDocs, WorkspaceStart};
use engine::{AgentSetup, Command, Effect, Event, Session, SessionInput, Settings, UnixMillis};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use store::disk::RowWrite;
use store::{ActorId, BlobHash, DocId, NoteDoc, NoteOp, OutputsDoc, RegistryDoc, WorkspaceDoc};
use support::{PlainText, measure};

const NOTE_CHARS: usize = 1_000_000;
const REMOTE_EDITS: usize = 500;
/// A single text object is slow, so fewer edits must do.
const SINGLE_TEXT_EDITS: usize = 20;

const LOCAL_ACTOR: [u8; 16] = [1; 16];
const REMOTE_ACTOR: [u8; 16] = [2; 16];

/// A session without a host: its effects are answered here immediately.
pub(super) struct HostlessSession {
    pub(super) session: Session,
    rng: StdRng,
    now: UnixMillis,
    /// Setup for agents.
    pub(super) setup: AgentSetup,
    /// Model calls that wait for an answer.
    pub(super) calls: Vec<ModelCallId>,
}

impl HostlessSession {
    pub(super) fn open() -> Result<HostlessSession, String> {
        let workspace = DocId([9; 16]);
        let doc =
            WorkspaceDoc::load(workspace, &[], ActorId::from(LOCAL_ACTOR)).map_err(|error| error.to_string())?.doc;
        let started = WorkspaceStart {
            device: "bench".to_owned(),
            workspace,
            doc: Box::new(doc),
            mounts: BTreeMap::new(),
            memory_place: None,
            volume_settings: Default::default(),
            forks: BTreeMap::new(),
            settings: Settings::default(),
            last_seq: 0,
            unfinished: Vec::new(),
            actor: LOCAL_ACTOR,
            folder: placeholder_folder("workspace"),
            problems: Vec::new(),
            trash: BTreeMap::new(),
            moving: None,
            moved: Vec::new(),
            renamed: Vec::new(),
            gone: Vec::new(),
            sessions: BTreeMap::new(),
            runs: BTreeMap::new(),
            known_texts: BTreeMap::new(),
            shares: engine::SyncShares::default(),
            sync_log: Vec::new(),
            sync_kept: Default::default(),
            rules: Vec::new(),
            schedules: BTreeMap::new(),
            outlays: Vec::new(),
            latencies: Default::default(),
        };
        let (session, rng) = (Session::new(), StdRng::seed_from_u64(7));
        let mut bare =
            HostlessSession { session, rng, now: UnixMillis(1_000), setup: AgentSetup::default(), calls: Vec::new() };
        bare.apply_and_settle(SessionInput::Event(Event::Started(Box::new(started))))?;
        Ok(bare)
    }

    fn apply(&mut self, input: SessionInput) -> Result<Vec<Effect>, String> {
        self.session.apply(self.now, &mut self.rng, input).map_err(|reject| reject.0)
    }

    /// Applies an input and everything that follows from it.
    pub(super) fn apply_and_settle(&mut self, input: SessionInput) -> Result<(), String> {
        let effects = self.apply(input)?;
        self.perform_effects(effects)
    }

    fn perform_effects(&mut self, effects: Vec<Effect>) -> Result<(), String> {
        let mut waiting = VecDeque::from(effects);
        while let Some(effect) = waiting.pop_front() {
            let event = match effect {
                Effect::Append { batch, .. } => Event::Durable { batch },
                Effect::LoadNote { note } => {
                    let docs = self.note_documents(note).map(Box::new).map_err(DocumentLoadError);
                    Event::NoteLoaded { note, docs }
                }
                Effect::WriteFile { note, text, .. } => {
                    let hash = BlobHash([3; 32]);
                    Event::FileWritten { note, stamp: FileStamp { size: text.len() as u64, mtime: 1, hash } }
                }
                Effect::ReadSetup => Event::AgentSetup(Box::new(self.setup.clone())),
                Effect::LoadRegistry { registry } => Event::RegistryLoaded {
                    registry,
                    doc: RegistryDoc::load(registry, &[], ActorId::from(LOCAL_ACTOR))
                        .map(|loaded| Box::new(loaded.doc))
                        .map_err(|error| DocumentLoadError(error.to_string())),
                },
                Effect::Gather { run, .. } => {
                    let (memory, crew) = (Box::default(), Box::default());
                    Event::Gathered { run, found: Vec::new(), material: Vec::new(), memory, crew }
                }
                Effect::CallModel { call, .. } => {
                    self.calls.push(call);
                    continue;
                }
                Effect::ReadMemory { volume, .. } => Event::MemoryRead { volume, memory: Box::default() },
                Effect::LoadVolume { .. }
                | Effect::Scan { .. }
                | Effect::Index { .. }
                | Effect::MoveFiles { .. }
                | Effect::Discard { .. }
                | Effect::Watch { .. }
                | Effect::Unwatch { .. }
                | Effect::ReadNote { .. }
                | Effect::ReadFile { .. }
                | Effect::WriteMarker { .. }
                | Effect::Sync(_)
                | Effect::SyncFiles(_)
                | Effect::RetrySync
                | Effect::Present { .. }
                | Effect::RefuseReceived { .. }
                | Effect::Eval { .. }
                | Effect::MoveState { .. }
                | Effect::ShareState { .. }
                | Effect::FindKernels { .. }
                | Effect::Answer { .. }
                | Effect::Reserve { .. }
                | Effect::Interrupt { .. }
                | Effect::KillKernel { .. }
                | Effect::LoadSession { .. }
                | Effect::LoadRun { .. }
                | Effect::CancelModel { .. }
                | Effect::RunTool { .. }
                | Effect::CancelTool { .. }
                | Effect::AnswerServer { .. }
                | Effect::CloseBrowser { .. }
                | Effect::RemoveContainers { .. }
                | Effect::SendWebhook { .. }
                | Effect::Wake { .. } => continue,
            };
            waiting.extend(self.apply(SessionInput::Event(event))?);
        }
        Ok(())
    }

    /// Builds the note's document from its blocks, as a worker builds it from the rows on disk.
    fn note_documents(&self, note: DocId) -> Result<NoteDocs, String> {
        let blocks: Vec<store::Block> =
            self.session.note(note).map(|note| note.blocks().cloned().collect()).unwrap_or_default();
        let say = |error: store::StoreError| error.to_string();
        let doc = NoteDoc::import(note, &blocks, ActorId::from(LOCAL_ACTOR)).map_err(say)?;
        let outputs = OutputsDoc::load(note.outputs_id(), &[], ActorId::from(LOCAL_ACTOR)).map_err(say)?.doc;
        Ok(NoteDocs {
            chunks: vec![doc.save()],
            doc: Box::new(doc),
            snapshot: None,
            outputs_new: true,
            outputs: Ok(Box::new(outputs)),
            problems: Vec::new(),
        })
    }

    /// Opens a volume with one note of this text, and returns the note.
    pub(super) fn open_note_with_text(&mut self, text: String) -> Result<DocId, String> {
        self.apply_and_settle(SessionInput::Command(Command::OpenFolder {
            folder: placeholder_folder("notes"),
            name: None,
        }))?;
        let volume = self.session.volumes().next().ok_or("the volume is not there")?.id;
        self.apply_and_settle(SessionInput::Command(Command::NewNote { volume, path: "long.md".to_owned(), text }))?;
        self.session.notes().next().map(|note| note.id).ok_or_else(|| "the note is not there".to_owned())
    }
}

/// Returns an absolute path that's never accessed.
fn placeholder_folder(name: &str) -> PathBuf {
    PathBuf::from(if cfg!(windows) { "C:\\bench" } else { "/bench" }).join(name)
}

/// Runs all benchmarks of remote edits.
pub(super) fn measure(report: &mut BenchReport) -> Result<(), String> {
    let text = text_fixtures::note_of_length(NOTE_CHARS);
    let mut ours = measure_block_edits(report, text.clone())?;
    let mut plain = measure_single_text_edits(&text)?;
    report.add_percentiles(
        "remote edit into 1M characters in one text object (plain automerge), CPU",
        &mut plain,
        "ms",
        FigureGoal::None,
    );
    let ratio = percentile(&mut plain, 50) / percentile(&mut ours, 50);
    report.add_figure("remote edit, plain automerge to ours, p50", ratio, "times", FigureGoal::None);
    Ok(())
}

/// Measures remote edits of blocks through the session's interface.
fn measure_block_edits(report: &mut BenchReport, text: String) -> Result<Vec<f64>, String> {
    let say = |error: store::StoreError| error.to_string();
    let mut bare = HostlessSession::open()?;
    let id = bare.open_note_with_text(text)?;
    let open = |bare: &HostlessSession| bare.session.note(id).map(engine::Note::text).unwrap_or_default();
    let saved = bare.session.note(id).and_then(engine::Note::document).map(NoteDoc::save);
    let saved = saved.ok_or("the document is not loaded")?;
    let mut replica = NoteDoc::load(id, &[saved], ActorId::from(REMOTE_ACTOR)).map_err(say)?.doc;
    let count = replica.blocks().len();
    let mut chance = FixtureRng::new(5);
    let (mut times, mut after) = (Vec::new(), Vec::new());
    for _ in 0..REMOTE_EDITS {
        // The replica's own work and the transfer between the two aren't measured.
        let blocks =
            bare.session.note(id).map(|note| note.blocks().map(|block| (block.id, block.text.len())).collect());
        let blocks: Vec<(store::BlockId, usize)> = blocks.unwrap_or_default();
        let (block, length) = blocks[chance.below(blocks.len())];
        let op = NoteOp::Splice { block, at: chance.below(length + 1), delete: 0, insert: "x".to_owned() };
        let bytes = replica.commit(&[op], bare.now.as_seconds(), None).map_err(say)?;
        bare.now = bare.now.plus_ms(1_000);
        let begun = measure::thread_cpu();
        let effects = bare.apply(SessionInput::Event(Event::Remote { note: id, bytes }))?;
        let applied = measure::thread_cpu();
        if !effects.iter().any(|effect| matches!(effect, Effect::Append { writes, .. } if writes_block(writes))) {
            report.add_error("a remote edit changed no block");
        }
        let settling = measure::thread_cpu();
        bare.perform_effects(effects)?;
        times.push(to_ms(applied.saturating_sub(begun)));
        after.push(to_ms(measure::thread_cpu().saturating_sub(settling)));
    }
    let theirs: String = replica.blocks().into_iter().map(|block| block.text).collect();
    if open(&bare) != theirs {
        report.add_error("after remote edits the two replicas differ");
    }
    report.add_figure("remote edit, blocks of the note", count as f64, "", FigureGoal::None);
    report.add_percentiles("remote edit into 1M characters, CPU of apply", &mut times, "ms", FigureGoal::Under(1.0));
    report.add_percentiles(
        "remote edit, CPU of what follows until the file is written,",
        &mut after,
        "ms",
        FigureGoal::None,
    );
    Ok(times)
}

fn writes_block(writes: &[RowWrite]) -> bool {
    writes.iter().any(|write| matches!(write, RowWrite::Block { .. }))
}

/// Measures the same edits with the whole note as one text object.
fn measure_single_text_edits(text: &str) -> Result<Vec<f64>, String> {
    let say = |error: store::StoreError| error.to_string();
    let mut ours = PlainText::new(text, ActorId::from(LOCAL_ACTOR)).map_err(say)?;
    let mut theirs = ours.replica(ActorId::from(REMOTE_ACTOR)).map_err(say)?;
    let mut chance = FixtureRng::new(5);
    let mut times = Vec::new();
    for _ in 0..SINGLE_TEXT_EDITS {
        let change = theirs.insert(chance.below(text.len()), "x").map_err(say)?;
        let begun = measure::thread_cpu();
        ours.merge(&change).map_err(say)?;
        times.push(to_ms(measure::thread_cpu().saturating_sub(begun)));
    }
    if ours.text().map_err(say)? != theirs.text().map_err(say)? {
        return Err("the two plain replicas differ".to_owned());
    }
    Ok(times)
}
