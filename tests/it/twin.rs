//! A stand-in for the host in tests: performs effects on an in-memory disk and folder, and reports the results. Each
//! piece of work is a separate step, so a test chooses the order of answers. No threads, no clock, no sleep.

use agent::model_call::{ModelCallId, ModelRequest};
use agent::project_instructions::INSTRUCTION_FILE_NAMES;
use agent::sampling::SamplingAnswer;
use agent::server_form::FormAnswer;
use agent::server_request::ServerReply;
use agent::tool_job::{ToolJob, ToolOutcome};
use engine::event::{
    DocumentLoadError, FileChangeError, FileReadError, FileStamp, FileText, OutlineSurvey, ScannedFile,
};
use engine::{
    AgentSetup, Command, CommandError, DocumentsByVolume, Effect, Event, Note, Session, SessionInput, UnixMillis,
    VolumeAttachments,
};
use host::loader;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use store::disk::{Disk, DiskReader, FileRow, MemoryDisk, RowWrite};
use store::{ActorId, BlobHash, BlockId, DocId, ExecutionId, FileKind};
use text::markdown;

/// The volume's folder.
pub(crate) const ROOT: &str = "/u/v";

/// A folder of plain files: bytes and modification time by path.
pub(crate) type Files = BTreeMap<PathBuf, (Vec<u8>, i64)>;

/// The state that outlives a process.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) disk: MemoryDisk,
    pub(crate) files: Files,
    /// The latest modification time given to a file; each time is used once.
    pub(crate) stamps: i64,
}

impl World {
    /// An empty disk, and these files in the volume's folder.
    pub(crate) fn new(files: &[(&str, &str)]) -> World {
        let file = |(path, text): &(&str, &str)| (Path::new(ROOT).join(path), (text.as_bytes().to_vec(), 1));
        World { disk: MemoryDisk::new(), files: files.iter().map(file).collect(), stamps: 1 }
    }
}

/// A step that the world can take next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The session receives the next event.
    Take,
    /// A worker reports what it has done.
    Tell(usize),
    /// The watcher reports what it has seen.
    Notice,
    /// The writer commits one batch, or all waiting ones as a group.
    Commit { group: bool },
    /// A worker performs a job. It reports later.
    Work,
}

enum Writing {
    Append { batch: u64, writes: Vec<RowWrite> },
    Then(Box<Effect>),
}

/// A request to a kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    Eval { execution: ExecutionId, code: String, label: String, forget: Vec<String> },
    Answer(String),
    Interrupt,
    Kill,
    Move(engine::KernelStateMove),
}

pub(crate) struct Twin {
    pub(crate) session: Session,
    pub(crate) world: World,
    pub(crate) now: UnixMillis,
    /// The requests to kernels, in order.
    pub(crate) asked: Vec<Asked>,
    /// The folder for which a kernel is in reserve.
    pub(crate) reserve: Option<PathBuf>,
    /// The kernel of the last cell that was run.
    pub(crate) kernel: Option<String>,
    /// The branch of saved states in which the last cell was run, and the executions in whose state.
    pub(crate) branch: Option<String>,
    pub(crate) after: Option<Vec<ExecutionId>>,
    /// Chunks of documents in the order in which they became durable: what would be sent to other replicas.
    pub(crate) sent: Vec<(DocId, Vec<u8>)>,
    /// The documents synced over any hub.
    pub(crate) wanted: BTreeSet<DocId>,
    /// The attachments of shared volumes, which aren't documents.
    pub(crate) beside: BTreeMap<DocId, VolumeAttachments>,
    /// Jobs on states that notes share, in order.
    pub(crate) state_jobs: Vec<engine::SharedStateJob>,
    /// The synced documents by volume, for the first hub.
    pub(crate) shared: DocumentsByVolume,
    /// The reasons for refused changes of others; `refusals` has the tickets that answer them.
    pub(crate) refused: Vec<String>,
    pub(crate) refusals: Vec<u64>,
    /// The number of file writes.
    pub(crate) written: usize,
    /// While set, no document is loaded, as with a slow worker.
    pub(crate) slow: bool,
    /// While set, nothing is committed, as with a disk that doesn't respond.
    pub(crate) stuck: bool,
    /// While set, the worker that finished first doesn't report.
    pub(crate) mute: bool,
    /// The agents' configuration.
    pub(crate) setup: AgentSetup,
    /// Passages that are gathered for a message: address and text.
    pub(crate) found: Vec<(String, String)>,
    /// Texts of prompts and resources of servers, by their source; all others are refused.
    pub(crate) server_texts: BTreeMap<String, String>,
    /// Model calls that wait for their answers.
    pub(crate) models: Vec<(ModelCallId, ModelRequest)>,
    /// Tool jobs that wait for their outcome.
    pub(crate) tools: Vec<(DocId, String, ToolJob)>,
    /// Answers to requests of servers for a model, by request.
    pub(crate) sampled: Vec<(String, SamplingAnswer)>,
    /// Answers to forms of servers, by request.
    pub(crate) filled_forms: Vec<(String, FormAnswer)>,
    /// Descriptions of what was canceled.
    pub(crate) cancelled: Vec<String>,
    rng: StdRng,
    actor: ActorId,
    writer: VecDeque<Writing>,
    jobs: VecDeque<Effect>,
    done: Vec<Vec<Event>>,
    seen: VecDeque<Event>,
    told: VecDeque<Event>,
    wake: Option<UnixMillis>,
}

impl Twin {
    /// Starts a process on this world.
    pub(crate) fn start(world: World, seed: u64) -> Twin {
        Twin::start_at(world, seed, UnixMillis(1_700_000_000_000))
    }

    /// Starts a process on this world at this time.
    pub(crate) fn start_at(world: World, seed: u64, now: UnixMillis) -> Twin {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut disk = world.disk.clone();
        let started =
            loader::load_workspace_start(&mut disk, Path::new("/w"), &mut rng).expect("the workspace can be read");
        let mut twin = Twin {
            session: Session::new(),
            world,
            now,
            asked: Vec::new(),
            reserve: None,
            kernel: None,
            branch: None,
            after: None,
            sent: Vec::new(),
            wanted: BTreeSet::new(),
            beside: BTreeMap::new(),
            state_jobs: Vec::new(),
            shared: DocumentsByVolume::new(),
            refused: Vec::new(),
            refusals: Vec::new(),
            written: 0,
            slow: false,
            stuck: false,
            mute: false,
            setup: AgentSetup::default(),
            found: Vec::new(),
            server_texts: BTreeMap::new(),
            models: Vec::new(),
            tools: Vec::new(),
            sampled: Vec::new(),
            filled_forms: Vec::new(),
            cancelled: Vec::new(),
            rng,
            actor: ActorId::from(started.actor),
            writer: VecDeque::new(),
            jobs: VecDeque::new(),
            done: Vec::new(),
            seen: VecDeque::new(),
            told: VecDeque::new(),
            wake: None,
        };
        twin.event(Event::Started(Box::new(started)));
        twin
    }

    /// A new workspace with one volume of these files, all indexed.
    pub(crate) fn with(files: &[(&str, &str)]) -> Twin {
        let mut twin = Twin::start(World::new(files), 1);
        twin.command(Command::OpenFolder { folder: ROOT.into(), name: None }).expect("opened");
        twin.settle();
        twin
    }

    /// A workspace with one open note `a.md` of this text.
    pub(crate) fn on(text: &str) -> (Twin, DocId) {
        let mut twin = Twin::with(&[("a.md", text)]);
        let note = twin.open("a.md");
        (twin, note)
    }

    /// The world that a process would find if this one were killed now.
    pub(crate) fn crash(&self) -> World {
        World { disk: self.world.disk.reopen_after_crash(), ..self.world.clone() }
    }

    pub(crate) fn id(&self, path: &str) -> DocId {
        let volume = self.session.volumes().next().expect("a volume");
        volume.files.get(path).unwrap_or_else(|| panic!("no {path}")).id
    }

    /// Opens a note and waits until everything has settled.
    pub(crate) fn open(&mut self, path: &str) -> DocId {
        let note = self.id(path);
        self.command(Command::OpenNote { note }).expect("opened");
        self.settle();
        note
    }

    pub(crate) fn note(&self, note: DocId) -> &Note {
        self.session.note(note).expect("the note is open")
    }

    pub(crate) fn text(&self, note: DocId) -> String {
        self.note(note).text()
    }

    /// Reads the memory in these folders below `root`.
    fn remembered(&self, root: &Path, folders: &[String]) -> agent::memory::ProjectMemory {
        let files = self.world.files.iter().filter_map(|(file, (bytes, _))| {
            let path = file.strip_prefix(root).ok()?.to_string_lossy().into_owned();
            let there = folders.iter().any(|folder| path.starts_with(&format!("{folder}/")));
            there.then(|| (path, String::from_utf8_lossy(bytes).into_owned()))
        });
        let mut memory = agent::memory::ProjectMemory::from_files(files);
        let written = memory.written_paths();
        memory.written = written.into_iter().filter_map(|path| Some((path.clone(), self.file(&path)?))).collect();
        memory
    }

    pub(crate) fn file(&self, path: &str) -> Option<String> {
        let (bytes, _) = self.world.files.get(&Path::new(ROOT).join(path))?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Another program writes a file, or removes it (`None`).
    pub(crate) fn outside(&mut self, path: &str, text: Option<&str>) {
        let file = Path::new(ROOT).join(path);
        match text {
            Some(text) => {
                let stamp = self.stamp();
                self.world.files.insert(file, (text.as_bytes().to_vec(), stamp));
            }
            None => {
                self.world.files.remove(&file);
            }
        }
        self.touched(path);
    }

    /// A modification time that no file has had yet.
    fn stamp(&mut self) -> i64 {
        self.world.stamps += 1;
        self.world.stamps
    }

    /// The watcher reports that something happened to a file.
    pub(crate) fn touched(&mut self, path: &str) {
        if let Some(volume) = self.session.volumes().next().map(|volume| volume.id) {
            let seen = self.world.files.get(&Path::new(ROOT).join(path));
            let seen = seen.map(|(bytes, stamp)| (bytes.len() as u64, *stamp));
            self.seen.push_back(Event::FileTouched { volume, path: Some(path.to_owned()), seen });
        }
    }

    pub(crate) fn command(&mut self, command: Command) -> Result<(), CommandError> {
        let effects = self.session.apply(self.now, &mut self.rng, SessionInput::Command(command))?;
        self.queue(effects);
        Ok(())
    }

    pub(crate) fn event(&mut self, event: Event) {
        let effects =
            self.session.apply(self.now, &mut self.rng, SessionInput::Event(event)).expect("facts are not rejected");
        self.queue(effects);
    }

    pub(crate) fn edit(&mut self, note: DocId, at: usize, delete: usize, insert: &str) {
        let insert = insert.to_owned();
        self.command(Command::Edit { note, at, delete, insert }).expect("the edit fits");
    }

    fn queue(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Append { batch, writes } => self.writer.push_back(Writing::Append { batch, writes }),
                Effect::ReadNote { .. }
                | Effect::LoadNote { .. }
                | Effect::LoadSession { .. }
                | Effect::LoadRun { .. }
                | Effect::LoadRegistry { .. } => self.writer.push_back(Writing::Then(Box::new(effect))),
                Effect::LoadVolume { .. }
                | Effect::Scan { .. }
                | Effect::Index { .. }
                | Effect::MoveFiles { .. }
                | Effect::Discard { .. }
                | Effect::ReadFile { .. }
                | Effect::WriteFile { .. } => {
                    self.jobs.push_back(effect);
                }
                Effect::Watch { .. }
                | Effect::Unwatch { .. }
                | Effect::WriteMarker { .. }
                | Effect::RetrySync
                | Effect::Present { .. }
                | Effect::FindKernels { .. } => {}
                Effect::SyncFiles(beside) => self.beside = *beside,
                Effect::Sync(wanted) => {
                    self.shared = wanted.hubs.first().map(|(_, volumes)| volumes.clone()).unwrap_or_default();
                    self.wanted = wanted
                        .hubs
                        .iter()
                        .flat_map(|(_, volumes)| volumes.values())
                        .flat_map(|docs| docs.iter().copied())
                        .collect();
                }
                Effect::RefuseReceived { why, ticket } => {
                    self.refused.push(why);
                    self.refusals.push(ticket);
                }
                Effect::Reserve { folder } => self.reserve = folder,
                Effect::Eval { execution, code, label, forget, kernel, branch, after, .. } => {
                    (self.kernel, self.branch, self.after) = (kernel, branch, after);
                    self.asked.push(Asked::Eval { execution, code, label, forget });
                }
                Effect::MoveState { to, .. } => self.asked.push(Asked::Move(to)),
                Effect::ShareState { job, .. } => self.state_jobs.push(job),
                Effect::Answer { text, .. } => self.asked.push(Asked::Answer(text)),
                Effect::Interrupt { .. } => self.asked.push(Asked::Interrupt),
                Effect::KillKernel { .. } => self.asked.push(Asked::Kill),
                Effect::ReadSetup => self.told.push_back(Event::AgentSetup(Box::new(self.setup.clone()))),
                Effect::Gather { run, memory, paths, material, .. } => {
                    let memory = Box::new(self.remembered(&memory.0, &memory.1));
                    let files = self.world.files.iter().filter_map(|(file, (bytes, _))| {
                        let path = file.strip_prefix(ROOT).ok()?.to_string_lossy().into_owned();
                        Some((path, String::from_utf8_lossy(bytes).into_owned()))
                    });
                    let crew = Box::new(agent::agent_registry::AgentRegistry::read(files));
                    let instructions = paths.into_iter().filter_map(|file| {
                        let name = file.path.rsplit('/').next()?;
                        INSTRUCTION_FILE_NAMES.contains(&name).then_some(())?;
                        let (bytes, _) = self.world.files.get(&file.root.join(&file.path))?;
                        Some((file.name, String::from_utf8(bytes.clone()).ok()?))
                    });
                    let found = self.found.iter().cloned().chain(instructions).collect();
                    let material = material.into_iter().map(|wanted| {
                        let text = self.server_texts.get(&wanted.source()).cloned();
                        let outcome = match text {
                            Some(text) => ToolOutcome { success: true, text, ..ToolOutcome::default() },
                            None => ToolOutcome { text: "the server refused".to_owned(), ..ToolOutcome::default() },
                        };
                        (wanted, outcome)
                    });
                    let material = material.collect();
                    self.told.push_back(Event::Gathered { run, found, material, memory, crew });
                }
                Effect::ReadMemory { volume, root } => {
                    let all = self.world.files.iter().filter_map(|(file, (bytes, _))| {
                        let path = file.strip_prefix(&root).ok()?.to_string_lossy().into_owned();
                        agent::memory::is_memory(&path).then(|| (path, String::from_utf8_lossy(bytes).into_owned()))
                    });
                    let memory = Box::new(agent::memory::ProjectMemory::from_files(all));
                    self.told.push_back(Event::MemoryRead { volume, memory });
                }
                Effect::CallModel { call, request } => self.models.push((call, *request)),
                Effect::CancelModel { call } => self.cancelled.push(format!("model {}", call.number)),
                Effect::RunTool { run, call, job } => self.tools.push((run, call, *job)),
                Effect::CancelTool { call, .. } => self.cancelled.push(format!("tool {call}")),
                Effect::AnswerServer { request, reply } => match reply {
                    ServerReply::Model(answer) => self.sampled.push((request, answer)),
                    ServerReply::Form(answer) => self.filled_forms.push((request, answer)),
                },
                Effect::CloseBrowser { .. } => self.cancelled.push("browser".to_owned()),
                Effect::RemoveContainers { .. } => self.cancelled.push("containers".to_owned()),
                // Nothing in these tests has a webhook.
                Effect::SendWebhook { .. } => {}
                Effect::Wake { at } => self.wake = Some(self.wake.map_or(at, |known| known.min(at))),
            }
        }
    }

    /// The steps that are possible now, apart from the passing of time.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.told.is_empty() {
            steps.push(Step::Take);
        }
        steps.extend((usize::from(self.mute)..self.done.len()).map(Step::Tell));
        if !self.seen.is_empty() {
            steps.push(Step::Notice);
        }
        if !self.writer.is_empty() && !self.stuck {
            steps.extend([Step::Commit { group: false }, Step::Commit { group: true }]);
        }
        // There are two workers: a third job waits until one of them has reported.
        if self.done.len() < 2 && self.next_job().is_some() {
            steps.push(Step::Work);
        }
        steps
    }

    fn next_job(&self) -> Option<usize> {
        self.jobs.iter().position(|job| !(self.slow && matches!(job, Effect::LoadNote { .. })))
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Take => {
                if let Some(event) = self.told.pop_front() {
                    self.event(event);
                }
            }
            Step::Tell(at) => {
                let events = self.done.remove(at);
                self.told.extend(events);
            }
            Step::Notice => self.told.extend(self.seen.pop_front()),
            Step::Commit { group } => self.commit(group),
            Step::Work => {
                let job = self.next_job().and_then(|at| self.jobs.remove(at));
                if let Some(job) = job {
                    let events = self.work(job);
                    self.done.push(events);
                }
            }
        }
    }

    /// Takes all steps that are possible without time passing, one after another. Returns the world that a crash would
    /// leave before the first and after each.
    pub(crate) fn crashes(&mut self) -> Vec<World> {
        let mut worlds = vec![self.crash()];
        while let Some(step) = self.steps().first().copied() {
            self.step(step);
            worlds.push(self.crash());
        }
        worlds
    }

    /// Takes all steps that are possible without time passing.
    pub(crate) fn rest(&mut self) {
        for _ in 0..100_000 {
            let Some(step) = self.steps().first().copied() else { return };
            self.step(step);
        }
        panic!("the session does not come to rest");
    }

    /// Lets this much time pass, in milliseconds.
    pub(crate) fn pass(&mut self, milliseconds: i64) {
        let until = self.now.plus_ms(milliseconds);
        self.rest();
        while let Some(wake) = self.wake.filter(|wake| *wake <= until) {
            self.tick(wake);
            self.rest();
        }
        self.now = until;
    }

    fn tick(&mut self, at: UnixMillis) {
        self.wake = None;
        self.now = UnixMillis(self.now.0.max(at.0));
        self.event(Event::Tick);
    }

    /// Lets everything finish, including timers.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1_000 {
            self.rest();
            let Some(wake) = self.wake else { return };
            self.tick(wake);
        }
        panic!("the session wakes for ever");
    }

    /// Takes a random possible step; time may pass.
    pub(crate) fn wander(&mut self, chance: &mut StdRng) {
        let steps = self.steps();
        if steps.is_empty() || chance.random_ratio(1, 8) {
            self.now = self.now.plus_ms(chance.random_range(1..400));
            if self.wake.is_some_and(|wake| wake <= self.now) {
                self.tick(self.now);
            }
            return;
        }
        let step = steps[chance.random_range(0..steps.len())];
        self.step(step);
    }

    fn commit(&mut self, group: bool) {
        let mut all: Vec<RowWrite> = Vec::new();
        let mut last = None;
        let mut count = 0;
        for work in &self.writer {
            let Writing::Append { batch, writes } = work else { break };
            all.extend(writes.iter().cloned());
            last = Some(*batch);
            count += 1;
            if !group {
                break;
            }
        }
        let Some(batch) = last else {
            if let Some(Writing::Then(job)) = self.writer.pop_front() {
                self.jobs.push_back(*job);
            }
            return;
        };
        match self.world.disk.commit(&all) {
            Ok(_) => {
                self.writer.drain(..count);
                for write in all {
                    if let RowWrite::Chunk { doc, bytes } = write {
                        self.sent.push((doc, bytes));
                    }
                }
                self.told.push_back(Event::Durable { batch });
            }
            Err(error) => self.told.push_back(Event::DiskTrouble { why: error.to_string() }),
        }
    }

    fn read(&self, file: &Path) -> Result<Option<FileText>, String> {
        let Some((bytes, mtime)) = self.world.files.get(file) else { return Ok(None) };
        let stamp = FileStamp { size: bytes.len() as u64, mtime: *mtime, hash: BlobHash::of(bytes) };
        match String::from_utf8(bytes.clone()) {
            Ok(text) => Ok(Some(FileText { text, stamp, commits: Vec::new() })),
            Err(_) => Err("it is not UTF-8 text".to_owned()),
        }
    }

    fn work(&mut self, job: Effect) -> Vec<Event> {
        let disk = &self.world.disk;
        match job {
            Effect::LoadVolume { volume } => {
                let mut events = Vec::new();
                loader::load_volume_files(disk, volume, |event| events.push(event));
                events.push(loader::load_volume_doc(disk, volume, &self.actor));
                events
            }
            Effect::ReadNote { note, volume, path, file } => {
                let content = loader::load_note_content(disk, note, volume, &path, || self.read(&file));
                let content = content.map(Box::new).map_err(|why| DocumentLoadError(why.to_string()));
                vec![Event::NoteRead { note, content }]
            }
            Effect::LoadNote { note } => {
                let docs = loader::load_note_docs(disk, note, &self.actor).map(Box::new);
                let docs = docs.map_err(|why| DocumentLoadError(why.to_string()));
                vec![Event::NoteLoaded { note, docs }]
            }
            Effect::LoadSession { session } => vec![loader::load_session_doc(disk, session, &self.actor)],
            Effect::LoadRun { run } => vec![loader::load_run_doc(disk, run, &self.actor)],
            Effect::LoadRegistry { registry } => vec![loader::load_registry_doc(disk, registry, &self.actor)],
            Effect::ReadFile { note, file, .. } => {
                vec![Event::FileRead { note, file: self.read(&file).map_err(FileReadError) }]
            }
            Effect::WriteFile { note, file, expected, text } => {
                let there = self.read(&file).expect("text");
                match there {
                    Some(theirs) if theirs.text == *text => vec![Event::FileWritten { note, stamp: theirs.stamp }],
                    Some(theirs) if Some(theirs.stamp.hash) != expected => vec![Event::FileRaced { note, theirs }],
                    None if expected.is_some() => vec![Event::FileGone { note }],
                    Some(_) | None => {
                        let mtime = self.stamp();
                        self.world.files.insert(file.clone(), (text.as_bytes().to_vec(), mtime));
                        self.written += 1;
                        if let Ok(path) = file.strip_prefix(ROOT) {
                            self.touched(&path.to_string_lossy());
                        }
                        let (size, hash) = (text.len() as u64, BlobHash::of(text.as_bytes()));
                        vec![Event::FileWritten { note, stamp: FileStamp { size, mtime, hash } }]
                    }
                }
            }
            Effect::Scan { volume, root, unindexed } => self.scan(volume, &root, &unindexed),
            Effect::Index { volume, note, text } => {
                let survey = OutlineSurvey::of(BlobHash::of(text.as_bytes()), &text);
                vec![Event::Indexed { volume, notes: vec![(note, survey)] }]
            }
            Effect::Discard { file, path } => {
                self.world.files.remove(&path);
                vec![Event::Discarded { file, result: Ok(()) }]
            }
            Effect::MoveFiles { moves, .. } => {
                vec![Event::FilesMoved { result: self.move_files(&moves).map_err(FileChangeError) }]
            }
            other => panic!("not a worker's job: {other:?}"),
        }
    }

    fn move_files(&mut self, moves: &[(PathBuf, PathBuf)]) -> Result<(), String> {
        let files = &mut self.world.files;
        for (from, to) in moves {
            match (files.contains_key(from), files.contains_key(to)) {
                (true, false) | (false, true) => {}
                (true, true) => return Err(format!("something has that name already: {}", to.display())),
                (false, false) => return Err(format!("it is gone: {}", from.display())),
            }
        }
        for (from, to) in moves {
            let Some(file) = self.world.files.remove(from) else { continue };
            self.world.files.insert(to.clone(), file);
            self.written += 1;
            for path in [from, to].into_iter().filter_map(|path| path.strip_prefix(ROOT).ok()) {
                self.touched(&path.to_string_lossy());
            }
        }
        Ok(())
    }

    fn scan(&self, volume: DocId, root: &Path, unindexed: &BTreeSet<DocId>) -> Vec<Event> {
        let rows = self.world.disk.file_rows(volume).expect("read");
        let known: BTreeMap<String, FileRow> = rows.into_iter().map(|row| (row.path.clone(), row)).collect();
        let inside = |file: &Path| file.strip_prefix(root).expect("inside").to_string_lossy().into_owned();
        // Like the host: a file that was never written is pending, not deleted.
        let is_gone =
            |row: &&FileRow| (row.size > 0 || row.mtime != 0) && !self.world.files.contains_key(&root.join(&row.path));
        let mut gone: Vec<&FileRow> = known.values().filter(is_gone).collect();
        let (mut files, mut indexed) = (Vec::new(), Vec::new());
        for (file, (bytes, mtime)) in self.world.files.iter().filter(|(file, _)| file.starts_with(root)) {
            let path = inside(file);
            let row = known.get(&path);
            if let Some(row) = row.filter(|row| row.size == bytes.len() as u64 && row.mtime == *mtime) {
                if unindexed.contains(&row.id) {
                    indexed.push((row.id, OutlineSurvey::of(row.hash, std::str::from_utf8(bytes).expect("a note"))));
                }
                continue;
            }
            let stamp = FileStamp { size: bytes.len() as u64, mtime: *mtime, hash: BlobHash::of(bytes) };
            let (kind, counts, why) = match std::str::from_utf8(bytes) {
                Ok(text) => (FileKind::from_path(&path), markdown::count_blocks_and_cells(text), None),
                Err(_) => {
                    (FileKind::Attachment, markdown::NoteSurvey::default(), Some("it is not UTF-8 text".to_owned()))
                }
            };
            let survey = std::str::from_utf8(bytes).ok().map(|text| OutlineSurvey::of(stamp.hash, text));
            let was = gone.iter().position(|gone| row.is_none() && gone.hash == stamp.hash && gone.size == stamp.size);
            let was = was.map(|at| gone.remove(at).path.clone());
            files.push(ScannedFile { path, kind, stamp, blocks: counts.blocks, cells: counts.cells, survey, was, why });
        }
        let seen = self.world.files.len() as u64;
        let gone = gone.into_iter().map(|row| row.path.clone()).collect();
        vec![
            Event::Scanned { volume, files, seen },
            Event::Indexed { volume, notes: indexed },
            Event::ScanDone { volume, gone, skipped: Vec::new(), failed: None },
        ]
    }

    /// Asserts the invariants of an open note that hold at every moment.
    pub(crate) fn check(&self, note: DocId) {
        let note = self.note(note);
        let text = note.text();
        let blocks: Vec<_> = note.blocks().collect();
        let joined: String = blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(joined, text);
        assert_eq!(note.length(), text.len());
        let mut ids: Vec<BlockId> = blocks.iter().map(|block| block.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), blocks.len(), "a block's id stands twice");
        let places: Vec<_> = blocks.iter().map(|block| (&block.pos, block.id)).collect();
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "blocks are out of order: {places:?}");
        for block in &blocks {
            let code = markdown::parse_cell(&block.text).map(|cell| &block.text[cell.code]);
            assert_eq!(note.cell_code(block.id), code, "what is known of block {} is old", block.id);
        }
    }

    /// Asserts that session, document, rows and file agree once everything has settled.
    pub(crate) fn check_settled(&self, note: DocId, path: &str) {
        self.check(note);
        let id = note;
        let note = self.note(note);
        assert!(self.session.is_saved(), "not saved: {:?}", note.file);
        assert_eq!(self.file(path).as_deref(), Some(note.text().as_str()), "file and note differ");
        let Some(doc) = note.document() else { return };
        let blocks: Vec<_> = note.blocks().cloned().collect();
        assert_eq!(doc.blocks(), blocks, "document and note differ");
        let (rows, bad) = self.world.disk.blocks(id).expect("read");
        assert_eq!((rows, bad), (blocks, Vec::new()), "rows and note differ");
        assert_eq!(self.world.disk.journal_records(id).expect("read"), [], "the journal is not empty");
    }
}
