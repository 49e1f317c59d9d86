//! The main loop of a session: passes events and commands to it, and its effects to the threads that perform them.

use crate::agents::AgentEffects;
use crate::clock::unix_now;
use crate::fs::confined_dir::{self, ConfinedPath};
use crate::fs::scan;
use crate::fs::watch::FolderWatcher;
use crate::handle::Handle;
use crate::kernel::{AllowedKernel, QueuedCell, RunningKernels};
use crate::lock::WorkspaceLock;
use crate::mailbox::{DiskJob, Mailbox, MailboxMessage, SessionQuery, StoreWriter, WriterTask};
use crate::search::{RunDocumentReader, SearchService};
use crate::sync::SyncService;
use crate::sync::shared_states::start_shared_state_job;
use crate::webhooks::WebhookSender;
use crate::workers::DiskWorkers;
use anyhow::anyhow;
use engine::event::FileChangeError;
use engine::{Command, CommandError, Effect, Event, Session, UnixMillis};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::disk::{Disk, DiskError};

/// Time that closing waits for messages to the webhook.
const WEBHOOK_CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Time that closing waits for the announcement of shared variables.
const STATE_ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(2);

/// Owns the session and its workers. It lives on the drawing thread, or on a separate thread if there's no window.
pub struct Driver {
    session: Session,
    rng: StdRng,
    inbox: Mailbox,
    messages: Receiver<MailboxMessage>,
    writer: StoreWriter,
    writer_thread: Option<JoinHandle<anyhow::Result<()>>>,
    workers: DiskWorkers,
    kernels: RunningKernels,
    agents: AgentEffects,
    watcher: FolderWatcher,
    search: SearchService,
    sync: SyncService,
    webhooks: WebhookSender,
    folder: PathBuf,
    program: PathBuf,
    waiters: Vec<SessionQuery>,
    wake_at: Option<UnixMillis>,
    /// The latest reading of the clock, to detect that it was set back.
    last_now: UnixMillis,
    closing: bool,
    /// Receivers that report finished writes of the volumes' markers.
    markers: Vec<Receiver<()>>,
    lock: Option<WorkspaceLock>,
    /// Why this session is read-only; `None` if it writes to the workspace and to files.
    read_only_reason: Option<String>,
    /// Whether a command was refused because the session is read-only.
    has_refused_writes: Arc<AtomicBool>,
}

impl Driver {
    pub(crate) fn start(
        disk: Box<dyn Disk>,
        folder: PathBuf,
        program: PathBuf,
        started: engine::event::WorkspaceStart,
        owned: Option<WorkspaceLock>,
    ) -> Result<Driver, DiskError> {
        Driver::start_threads(disk, folder, program, started, (owned, None))
    }

    /// Starts a read-only session on a copy of the workspace. It writes nothing anywhere.
    pub(crate) fn start_read_only(
        disk: Box<dyn Disk>,
        folder: PathBuf,
        program: PathBuf,
        started: engine::event::WorkspaceStart,
        why: String,
    ) -> Result<Driver, DiskError> {
        Driver::start_threads(disk, folder, program, started, (None, Some(why)))
    }

    fn start_threads(
        disk: Box<dyn Disk>,
        folder: PathBuf,
        program: PathBuf,
        started: engine::event::WorkspaceStart,
        (owned, reads_only): (Option<WorkspaceLock>, Option<String>),
    ) -> Result<Driver, DiskError> {
        crate::allocator::set_arena_count();
        let (inbox, messages) = Mailbox::channel();
        let actor = started.actor;
        let readers = (0..2).map(|_| disk.open_reader()).collect::<Result<Vec<_>, _>>()?;
        let workers = DiskWorkers::start(readers, inbox.clone(), actor);
        let volumes = started.doc.volumes().into_iter();
        let mounted = volumes.filter_map(|(id, entry)| Some((id, entry.name, started.mounts.get(&id)?.clone())));
        let reader = disk.open_reader()?;
        let (settings, elsewhere) = (&started.settings, reads_only.is_some());
        let volumes = (mounted.collect(), started.forked_names());
        let search = SearchService::start((folder.clone(), elsewhere), reader, volumes, settings, inbox.clone());
        search.add_source(Box::new(RunDocumentReader::new(disk.open_reader()?)));
        let further = || disk.open_reader();
        let sync = SyncService::start(further()?, further()?, folder.clone(), inbox.clone());
        let followers = (Some(search.clone()), Some(sync.clone()));
        let (writer, writer_thread) =
            StoreWriter::start(disk, inbox.clone(), workers.clone(), followers.0, followers.1);
        sync.set_writer(writer.clone());
        let agents = AgentEffects::new(program.clone(), folder.clone(), search.clone(), inbox.clone());
        let kernels = RunningKernels::new(program.clone(), &folder, inbox.clone(), writer.clone());
        let watcher = FolderWatcher::new(inbox.clone());
        let webhooks = WebhookSender::new(inbox.clone());
        let mut driver = Driver {
            session: Session::new(),
            rng: StdRng::from_os_rng(),
            inbox,
            messages,
            writer,
            writer_thread: Some(writer_thread),
            workers,
            kernels,
            agents,
            watcher,
            search,
            sync,
            webhooks,
            folder,
            program,
            waiters: Vec::new(),
            wake_at: None,
            last_now: unix_now(),
            closing: false,
            markers: Vec::new(),
            lock: owned,
            read_only_reason: reads_only,
            has_refused_writes: Arc::default(),
        };
        driver.apply_event(Event::Started(Box::new(started)));
        Ok(driver)
    }

    /// Returns the session for reading.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns a handle for other threads.
    pub fn handle(&self) -> Handle {
        Handle {
            inbox: self.inbox.clone(),
            folder: self.folder.clone(),
            search: self.search.clone(),
            writer: self.writer.clone(),
            has_refused_writes: Arc::clone(&self.has_refused_writes),
            stuck_notes: Arc::default(),
        }
    }

    /// Returns the search service.
    pub fn search(&self) -> &SearchService {
        &self.search
    }

    pub(crate) fn workspace_lock(&self) -> Option<&WorkspaceLock> {
        self.lock.as_ref()
    }

    /// Returns why the session is read-only and works on a copy of the workspace; `None` if it isn't.
    pub fn read_only_reason(&self) -> Option<&str> {
        self.read_only_reason.as_deref()
    }

    /// Returns the workspace's folder.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Returns the path of the program that's started as `PROGRAM kernel`.
    pub fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Sets a callback that other threads call whenever [`Driver::pump`] has work to do.
    pub fn on_wake(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.inbox.set_wake_callback(wake);
    }

    /// Performs a user's command.
    ///
    /// # Errors
    /// Returns the session's rejection, or an error if the command writes in a read-only session.
    pub fn run_command(&mut self, command: Command) -> Result<(), CommandError> {
        if let Some(why) = self.read_only_reason.as_ref().filter(|_| !command.is_read_only()) {
            self.has_refused_writes.store(true, Ordering::Release);
            return Err(CommandError(format!("nothing was changed: {why}")));
        }
        let settings = matches!(command, Command::Set { .. });
        let effects = self.session.apply(unix_now(), &mut self.rng, engine::SessionInput::Command(command))?;
        self.perform_effects(effects);
        if settings {
            self.search.apply_settings(self.session.settings());
        }
        self.run_waiters();
        Ok(())
    }

    /// Handles pending messages for about `budget` without blocking. Returns whether there were any.
    pub fn pump(&mut self, budget: Duration) -> bool {
        let begun = Instant::now();
        let mut any = false;
        let clock = unix_now();
        if std::mem::replace(&mut self.last_now, clock).0 > clock.0 + 1_000 {
            self.apply_event(Event::Tick); // the clock was set back: what waits for a time looks anew
            any = true;
        }
        loop {
            if self.wake_at.is_some_and(|at| at <= unix_now()) {
                self.wake_at = None;
                self.apply_event(Event::Tick);
                any = true;
            }
            match self.messages.try_recv() {
                Ok(message) => self.handle_message(message),
                Err(_) => return any,
            }
            any = true;
            if begun.elapsed() > budget {
                // The next frame handles the rest.
                self.inbox.wake();
                return true;
            }
        }
    }

    /// Waits up to `limit` for a message and handles it. For use without a window.
    pub fn wait(&mut self, limit: Duration) {
        let limit = self.next_wake().map_or(limit, |wake| wake.min(limit));
        match self.messages.recv_timeout(limit) {
            Ok(message) => self.handle_message(message),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        self.pump(Duration::from_millis(50));
    }

    /// Runs until [`Handle::close`] is called, then saves and closes. For use without a window.
    ///
    /// # Errors
    /// Returns an error if something couldn't be saved.
    pub fn run(mut self) -> anyhow::Result<()> {
        while !self.closing {
            self.wait(Duration::from_secs(3_600));
        }
        self.close()
    }

    /// Returns whether a [`Handle`] requested closing.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns the time until the session's next wake-up; `None` if it has none.
    ///
    /// It's at most a minute, so that a changed clock or a suspended machine is noticed.
    pub fn next_wake(&self) -> Option<Duration> {
        let at = self.wake_at?;
        Some(Duration::from_millis(u64::try_from(at.0 - unix_now().0).unwrap_or(0)).min(Duration::from_secs(60)))
    }

    /// Searches for unlinked mentions of a note's name. Results arrive as they're found.
    pub fn find_unlinked_mentions(&self, note: store::DocId) -> Receiver<Vec<crate::UnlinkedMention>> {
        crate::search::unlinked_mentions::start_mention_search(&self.session, note, self.inbox.clone())
    }

    /// Searches all notes for exact text or a pattern. Results arrive as they're found.
    pub fn find_exact(&self, query: text::find_query::FindQuery) -> crate::search::ExactSearch {
        crate::search::exact_search::start_exact_search(&self.session, query, self.inbox.clone())
    }

    /// Asks a note's kernel a question that changes nothing; `None` if the note has no kernel.
    ///
    /// The answer arrives later, or never.
    pub fn ask_kernel(
        &mut self,
        note: store::DocId,
        inquiry: crate::KernelInquiry,
    ) -> Option<Receiver<crate::InquiryAnswer>> {
        self.kernels.send_inquiry(note, inquiry)
    }

    /// Asks a built-in kernel that has run nothing, in the note's folder. Starts one if there is none.
    ///
    /// The answer arrives later, or never.
    pub fn ask_warm_kernel(
        &mut self,
        note: store::DocId,
        inquiry: crate::KernelInquiry,
    ) -> Option<Receiver<crate::InquiryAnswer>> {
        let (volume, path) = self.session.locate_file(note)?;
        let file = self.session.volume(volume)?.root.as_ref()?.join(path);
        let folder = self.confined_path(file.parent()?);
        self.kernels.ask_warm_kernel(folder, inquiry)
    }

    /// Starts reading the history of an open note.
    pub fn open_history(&self, note: store::DocId) -> crate::history::HistoryThread {
        crate::history::HistoryThread::start(self.handle(), note)
    }

    /// Reads a blob on another thread. The result arrives later.
    pub fn fetch_blob(&self, hash: store::BlobHash) -> Receiver<Result<Vec<u8>, store::disk::DiskError>> {
        let (answer, wait) = channel();
        self.workers.send(DiskJob::Blob { hash, answer });
        wait
    }

    /// Reads a blob. Blocks, so don't call it while drawing.
    ///
    /// # Errors
    /// Returns an error if the blob is missing or damaged, or the program is closing.
    pub fn read_blob(&self, hash: store::BlobHash) -> anyhow::Result<Vec<u8>> {
        Ok(self.fetch_blob(hash).recv().map_err(|_| anyhow!("the program is closing"))??)
    }

    /// Saves everything, and ends kernels and threads.
    ///
    /// # Errors
    /// Returns an error if something couldn't be saved after several seconds of retries.
    pub fn close(mut self) -> anyhow::Result<()> {
        if self.read_only_reason.is_some() {
            return Ok(()); // there is nothing to save; the threads end with it
        }
        self.closing = true;
        let busy = |note: &&engine::Note| matches!(note.kernel, engine::KernelPhase::Busy(_));
        let running: Vec<store::DocId> = self.session.notes().filter(busy).map(|note| note.id).collect();
        for note in running {
            if self.run_command(Command::RestartKernel { note }).is_err() {
                tracing::debug!(%note, "a kernel was gone before it was asked to end");
            }
        }
        let until = Instant::now() + Duration::from_secs(1);
        while self.session.notes().any(|note| busy(&note)) && Instant::now() < until {
            self.wait(Duration::from_millis(20));
        }
        self.kernels.close();
        self.pump(Duration::from_millis(50)); // reports of saved variables
        let until = Instant::now() + STATE_ANNOUNCE_TIMEOUT;
        while self.session.notes().any(engine::Note::is_announcing_state) && Instant::now() < until {
            self.wait(Duration::from_millis(20));
        }
        self.agents.close();
        let until = Instant::now() + Duration::from_secs(1);
        while self.search.stop_paid_calls() && Instant::now() < until {
            self.wait(Duration::from_millis(20)); // what was paid for is to be written down
        }
        if self.run_command(Command::Save).is_err() {
            tracing::warn!("the last save was refused");
        }
        let until = Instant::now() + Duration::from_secs(8);
        while !self.session.is_saved() && Instant::now() < until {
            // Don't wait for a file that can't be written: its text is in the database, and the file is written next
            // time.
            let stuck = self.session.saving().trouble.is_some()
                || self
                    .session
                    .notes()
                    .all(|note| !note.is_ahead_of_file() || note.file.trouble.is_some() || note.read_only().is_some());
            if stuck && Instant::now() + Duration::from_secs(6) > until {
                break;
            }
            self.wait(Duration::from_millis(20));
        }
        // Saves what arrived meanwhile: the sync log and the report of merges. A refusal is already logged above.
        let _ = self.run_command(Command::Save);
        let until = Instant::now() + WEBHOOK_CLOSE_TIMEOUT;
        while self.session.agents().has_pending_webhooks() && Instant::now() < until {
            self.wait(Duration::from_millis(20));
        }
        for marker in std::mem::take(&mut self.markers) {
            if marker.recv_timeout(Duration::from_secs(2)).is_err() {
                tracing::warn!("the list of volumes was not written in time; `fsck` has less to go by");
            }
        }
        self.writer.send(WriterTask::Close { patience: Duration::from_secs(2) });
        let ended = self.writer_thread.take().map(JoinHandle::join);
        self.sync.close();
        self.search.close();
        drop(self.lock.take());
        match ended {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(anyhow!("the writer failed")),
            None => Ok(()),
        }
    }

    fn handle_message(&mut self, message: MailboxMessage) {
        match message {
            MailboxMessage::Event(event) => self.apply_event(event),
            MailboxMessage::Command { command, answer } => {
                let result = self.run_command(command).map(|()| self.session.saving().last);
                if let Some(answer) = answer {
                    // If the receiver is gone, nobody needs the result.
                    let _ = answer.send(result);
                }
            }
            MailboxMessage::Read(read) => read(&self.session),
            MailboxMessage::Wait(mut look) => {
                if !look(&self.session) {
                    self.waiters.push(look);
                }
            }
            MailboxMessage::Job(job) => self.workers.send(*job),
            MailboxMessage::AskKernel { note, inquiry, answer } => {
                // As above.
                let _ = answer.send(self.kernels.send_inquiry(note, inquiry));
            }
            MailboxMessage::KernelEnded { note, number, why } => {
                // The note is read on this thread, which also sets it, because a kernel may end before it has a note. A
                // spare kernel that ends needs no event.
                if let Some(note) = note.get().copied()
                    && self.kernels.remove_ended_kernel(note, number)
                {
                    self.apply_event(Event::KernelDied { note, why });
                }
            }
            MailboxMessage::Close => self.closing = true,
        }
    }

    fn apply_event(&mut self, event: Event) {
        let effects =
            self.session.apply(unix_now(), &mut self.rng, engine::SessionInput::Event(event)).unwrap_or_default();
        self.perform_effects(effects);
        self.run_waiters();
    }

    fn run_waiters(&mut self) {
        let session = &self.session;
        self.waiters.retain_mut(|look| !look(session));
    }

    /// Returns the volume's folder and the path inside it of a file that the session names. For a file in the trash,
    /// the folder is the workspace's. Workers reach the file only through that folder.
    fn confined_path(&self, file: &Path) -> ConfinedPath {
        let roots = self.session.volumes().filter_map(|volume| volume.root.as_deref());
        let hidden = self.session.memory_volumes().chain(self.session.fork_volumes());
        let roots = roots.chain(hidden.filter_map(|volume| volume.root.as_deref())).chain([self.folder.as_path()]);
        let inside = |root: &Path| scan::volume_path(root, file).map(|path| ConfinedPath::new(root, &path));
        let most = roots.filter_map(inside).max_by_key(|found| found.root.as_os_str().len());
        // A path without a folder is refused.
        most.unwrap_or_else(|| ConfinedPath::new(Path::new(""), &file.to_string_lossy()))
    }

    /// Returns the folders that cells and agents can write to: volumes, grants of any note, and the workspace.
    fn writable_folders(&self) -> Vec<PathBuf> {
        let volumes = self.session.volumes().filter_map(|volume| volume.root.clone());
        let granted = self.session.settings().grants.iter().flat_map(|(_, grant)| grant.write.clone());
        volumes.chain(granted).chain([self.folder.clone()]).collect()
    }

    fn perform_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let _span = crate::logging::EffectSpan::enter(&effect);
            match effect {
                Effect::Append { batch, writes } => self.writer.send(WriterTask::Append { batch, writes }),
                Effect::LoadVolume { volume } => self.workers.send(DiskJob::Volume { volume }),
                Effect::Scan { volume, root, unindexed } => {
                    scan::start(
                        volume,
                        root,
                        unindexed,
                        self.watcher.watching_started(),
                        &self.workers,
                        self.inbox.clone(),
                    );
                }
                Effect::Index { volume, note, text } => self.workers.send(DiskJob::Index { volume, note, text }),
                Effect::MoveFiles { moves, emptied } => match self.read_only_reason.clone() {
                    Some(why) => self.inbox.send_event(Event::FilesMoved { result: Err(FileChangeError(why)) }),
                    None => {
                        let moves =
                            moves.iter().map(|(from, to)| (self.confined_path(from), self.confined_path(to))).collect();
                        let emptied = emptied.iter().map(|folder| self.confined_path(folder)).collect();
                        self.workers.send(DiskJob::MoveFiles { moves, emptied });
                    }
                },
                Effect::Discard { file, path } => match self.read_only_reason.clone() {
                    Some(why) => self.inbox.send_event(Event::Discarded { file, result: Err(FileChangeError(why)) }),
                    None => self.workers.send(DiskJob::Discard { file, path: self.confined_path(&path) }),
                },
                Effect::Watch { volume, root, make } => {
                    confined_dir::forget_root(&root);
                    self.watcher.watch(volume, root, make);
                }
                Effect::Unwatch { volume } => self.watcher.unwatch(volume),
                Effect::ReadNote { note, volume, path, file } => {
                    // This runs after the tasks sent before, so a note that was closed and reopened gets its latest
                    // text.
                    let file = self.confined_path(&file);
                    self.writer.send(WriterTask::RunAfter(Box::new(DiskJob::ReadNote { note, volume, path, file })));
                }
                Effect::LoadNote { note } => {
                    self.writer.send(WriterTask::RunAfter(Box::new(DiskJob::LoadNote { note })))
                }
                Effect::ReadFile { note, file, known } => {
                    self.workers.send(DiskJob::ReadFile { note, file: self.confined_path(&file), known });
                }
                Effect::WriteFile { note, file, expected, text } => match self.read_only_reason.clone() {
                    Some(why) => self.inbox.send_event(Event::FileFailed { note, why }),
                    None => {
                        self.workers.send(DiskJob::WriteFile { note, file: self.confined_path(&file), expected, text })
                    }
                },
                // Other devices would count changes as durable that aren't.
                Effect::Sync(_) if self.read_only_reason.is_some() => {}
                Effect::Sync(wanted) => self.sync.set_targets(*wanted),
                Effect::SyncFiles(volumes) => self.sync.set_attachments(*volumes),
                Effect::RetrySync => self.sync.retry_now(),
                Effect::Present { doc, state, volume } => {
                    self.sync.set_presence(doc, state.map(|state| *state), volume)
                }
                Effect::RefuseReceived { ticket, why } => self.sync.report_disk_refusal(ticket, why),
                Effect::WriteMarker { volumes, forks } => {
                    let (done, wait) = channel();
                    self.markers.push(wait);
                    let marked = volumes.iter().filter(|(_, name, _)| !forks.contains_key(name)).cloned().collect();
                    self.search.set_volumes(volumes, forks);
                    if self.read_only_reason.is_none() {
                        self.workers.send(DiskJob::Marker { folder: self.folder.clone(), volumes: marked, done });
                    }
                }
                Effect::FindKernels { folder } => {
                    let (inbox, shared) = (self.inbox.clone(), self.writable_folders());
                    std::thread::spawn(move || {
                        let found = crate::kernel::kernelspec::find_kernels(&folder, &shared);
                        inbox.send_event(Event::KernelsFound {
                            kernels: found.into_iter().map(|one| one.spec).collect(),
                        });
                    });
                }
                Effect::Eval {
                    note,
                    folder,
                    file,
                    kernel,
                    allowed,
                    packages,
                    grant,
                    execution,
                    code,
                    query,
                    label,
                    forget,
                    pure,
                    after,
                    branch,
                    saves_states,
                } => {
                    let script = file.extension().is_some_and(|ending| ending == "py").then(|| folder.join(&file));
                    let folder = self.confined_path(&folder);
                    let packages = packages.map(|packages| (file, *packages));
                    let kernel =
                        kernel.map(|name| AllowedKernel { name, allowed, shared: self.writable_folders(), packages });
                    self.kernels.execute_cell(
                        note,
                        &folder,
                        execution,
                        QueuedCell {
                            kernel,
                            grant,
                            code,
                            query,
                            label,
                            script,
                            forgotten_names: forget,
                            pure,
                            after,
                            branch,
                            saves_states,
                        },
                    );
                }
                // A kernel that ends because the program closes keeps its saved variables.
                Effect::MoveState { .. } if self.closing => {}
                Effect::MoveState { note, folder, grant, to } => {
                    let folder = self.confined_path(&folder);
                    self.kernels.move_state(note, &folder, &grant, &to);
                }
                Effect::ShareState { note, volume, job } => {
                    start_shared_state_job(&self.folder, &self.sync, &self.inbox, (note, volume), job);
                }
                Effect::Reserve { folder } => {
                    let folder = folder.map(|folder| self.confined_path(&folder));
                    self.kernels.keep_warm_kernel(folder);
                }
                Effect::Answer { note, text } => self.kernels.answer_input_request(note, &text),
                Effect::Interrupt { note } => self.kernels.interrupt(note),
                Effect::KillKernel { note } => {
                    let busy = |note: &engine::Note| matches!(note.kernel, engine::KernelPhase::Busy(_));
                    self.kernels.kill(note, self.session.note(note).is_some_and(busy));
                }
                Effect::LoadSession { session } => {
                    self.writer.send(WriterTask::RunAfter(Box::new(DiskJob::LoadSession { session })));
                }
                Effect::LoadRun { run } => self.writer.send(WriterTask::RunAfter(Box::new(DiskJob::LoadRun { run }))),
                Effect::LoadRegistry { registry } => {
                    self.writer.send(WriterTask::RunAfter(Box::new(DiskJob::LoadRegistry { registry })));
                }
                Effect::ReadSetup => self.agents.reload_setup(),
                Effect::Gather { run, root, paths, text, limit, memory, fork, material, elsewhere } => {
                    self.agents.gather_context((run, root, fork), paths, text, limit, memory, (material, elsewhere));
                }
                Effect::ReadMemory { volume, root } => self.agents.load_memory(volume, root),
                Effect::CallModel { call, request } => self.agents.start_model_call(call, *request),
                Effect::CancelModel { call } => self.agents.cancel_model_call(call),
                Effect::RunTool { run, call, job } => self.agents.start_tool_job(run, call, *job),
                Effect::CancelTool { run, call } => self.agents.cancel_tool_job(run, &call),
                Effect::AnswerServer { request, reply } => self.agents.answer_server(&request, reply),
                Effect::CloseBrowser { run } => self.agents.close_browser(run),
                Effect::RemoveContainers { run } => self.agents.remove_containers(run),
                Effect::SendWebhook { url, body } => self.webhooks.send(url, body),
                Effect::Wake { at } => {
                    self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
                }
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.kernels.close();
        // `close` may have done this already. If the driver is dropped without it, queued writes are still committed.
        if let Some(thread) = self.writer_thread.take() {
            self.writer.send(WriterTask::Close { patience: Duration::from_secs(1) });
            if !matches!(thread.join(), Ok(Ok(()))) {
                tracing::error!("the writer failed while the workspace was closed");
            }
            self.sync.close();
            self.search.close();
        }
    }
}
