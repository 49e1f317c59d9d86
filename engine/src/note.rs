//! An open note in the session: its blocks as shown, and how far they have been saved to the document, the disk and the
//! file. Only the session's modules change it; everything else reads it.

use crate::event::{FileMark, FileText};

use crate::records::files::FileStamp;
use crate::records::kernels::{
    CleanRun, CleanRunReport, KernelStateReport, NotePackages, SharedStateProgress, is_faithful, may_save_states,
    named_kernel, names_kernel,
};
use crate::staleness::{HeldName, KeptStaleness, Reactivity};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use store::{Block, BlockId, ChangeParcel, DocId, Execution, ExecutionId, FileKind, NoteDoc, NoteOp, OutputsDoc};
use text::cell_form::CellForm;
use text::markdown::{self, CellParts};
use text::python_scope::CellNames;
use text::text_edit;
use text::time::UnixMillis;
use text::undo::UndoHistory;

/// Loading state of a note's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotePhase {
    /// The text is being read.
    Reading,
    /// The text is loaded.
    Ready,
    /// The text can't be read; contains the reason as a sentence.
    Failed(String),
}

/// Loading state of a note's document. A note can be shown and edited without its document.
#[derive(Debug)]
pub enum DocPhase {
    /// The document isn't needed yet.
    None,
    /// A worker is loading it.
    Loading,
    /// The document is loaded.
    Loaded(Box<NoteDoc>),
    /// The document can't be loaded and must not be overwritten; the note is read-only.
    Failed(String),
}

/// State of a note's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelPhase {
    /// No kernel is running.
    Off,
    /// The kernel is starting or running this execution.
    Busy(ExecutionId),
    /// The kernel is ready.
    Idle,
}

/// State of a note's file: the last text in common with the note, and work in progress.
#[derive(Clone, Debug, Default)]
pub struct FileSide {
    /// Last text that note and file had in common.
    pub(crate) base: Option<Arc<str>>,
    /// Stamp of the file; `None` if it doesn't exist yet.
    pub(crate) stamp: Option<FileStamp>,
    /// Hash of the file's bytes when the note was opened.
    pub(crate) known: Option<store::BlobHash>,
    /// Heads of the document at `base`.
    pub(crate) heads: Vec<[u8; 32]>,
    /// Text being written, and the document's heads at that text.
    pub(crate) writing: Option<(Arc<str>, Vec<[u8; 32]>)>,
    /// Hash of the bytes that were last written here, unless another program's were merged since.
    pub(crate) saved: Option<store::BlobHash>,
    /// When another program's text was last merged.
    pub(crate) merged: Option<UnixMillis>,
    /// Earliest time of the next write; `None` if no write is due.
    pub(crate) due: Option<UnixMillis>,
    /// When the last write started.
    pub(crate) written: Option<UnixMillis>,
    /// The file's text, to be merged once the document can provide the last common text.
    pub(crate) unmerged: Option<FileText>,
    /// Whether `base` is a guess, because the file may be newer than every known version.
    pub(crate) unsure: bool,
    /// Versions of the file that the note contains although its row doesn't say so yet, oldest first.
    pub(crate) marks: Vec<FileMark>,
    /// Whether the file is being read.
    pub(crate) reading: bool,
    /// Whether to read the file again, because the text being read is older than what was written.
    pub(crate) reread: bool,
    /// Whether the fact that the note is ahead of its file is stored on disk.
    pub(crate) ahead_stored: bool,
    /// Whether another program removed the file.
    pub gone: bool,
    /// Why the file can't be written now; `None` if it can.
    pub trouble: Option<String>,
}

impl FileSide {
    /// Returns whether only the note's own text was written since `since`, and these are its bytes.
    pub(crate) fn is_own_save(&self, bytes: Option<store::BlobHash>, since: UnixMillis) -> bool {
        bytes.is_some() && bytes == self.saved && self.merged.is_none_or(|merged| merged < since)
    }

    /// Returns whether the file has never existed and is about to be created.
    pub(crate) fn is_new_file(&self) -> bool {
        self.stamp.is_none() && !self.gone && (self.due.is_some() || self.ahead_stored)
    }
}

/// An edit for adjusting carets: `delete` bytes at `at` were replaced by `insert` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaretShift {
    /// The note's revision after the edit.
    pub revision: u64,
    /// Start of the edit, in bytes.
    pub at: usize,
    /// Number of bytes deleted.
    pub delete: usize,
    /// Number of bytes inserted.
    pub insert: usize,
    /// Whether another program or device made the edit, not the user.
    pub foreign: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct BlockMeta {
    revision: u64,
    cell: Option<CellParts>,
    /// Names used in the cell's code, computed on first use.
    pub(crate) names: OnceLock<Arc<CellNames>>,
    /// Hash of the cell's code, computed on first use.
    pub(crate) code: OnceLock<String>,
}

/// An open note.
#[derive(Debug)]
pub struct Note {
    /// Document id of the note.
    pub id: DocId,
    /// Kind of file: note, collection or script.
    pub kind: FileKind,
    /// The volume that holds the note.
    pub volume: DocId,
    /// Loading state of the note's text.
    pub phase: NotePhase,
    /// State of the note's file.
    pub file: FileSide,
    /// State of the note's kernel.
    pub kernel: KernelPhase,
    /// Problems that were found and repaired, for the user.
    pub problems: Vec<String>,
    /// Whether the window shows the note.
    pub(crate) shown: bool,
    /// Why the note's volume is read-only; `None` if it isn't.
    pub(crate) locked: Option<String>,
    /// Number of holders that keep the note open without showing it.
    pub(crate) holds: u32,
    pub(crate) doc: DocPhase,
    pub(crate) outputs: Option<Box<OutputsDoc>>,
    pub(crate) outputs_new: bool,
    /// The user's choices to show generated views that aren't in the outputs document yet.
    pub(crate) views: BTreeMap<store::BlobHash, bool>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) meta: HashMap<BlockId, BlockMeta>,
    pub(crate) revision: u64,
    pub(crate) length: usize,
    pub(crate) shifts: VecDeque<CaretShift>,
    /// Whether the note's blocks are rows on disk.
    pub(crate) adopted: bool,
    /// Operations since the last change, and the journal number of the last one.
    pub(crate) pending: Vec<NoteOp>,
    pub(crate) pending_upto: u64,
    /// Whether all pending operations come from another program.
    pub(crate) outside: bool,
    /// Whether all pending operations come from an agent.
    pub(crate) by_agent: bool,
    /// The commit of Git that all pending operations come from, as a message, and its time in seconds since 1970.
    pub(crate) by_commit: Option<(String, i64)>,
    pub(crate) burst: Option<UnixMillis>,
    pub(crate) last_edit: UnixMillis,
    pub(crate) undo: UndoHistory,
    /// Changes from other devices that arrived before the document was loaded.
    pub(crate) remote: Vec<ChangeParcel>,
    /// Whether another device has changed the text of this file since it was read.
    pub(crate) others: bool,
    pub(crate) executions: BTreeMap<BlockId, Execution>,
    pub(crate) queue: VecDeque<BlockId>,
    pub(crate) unsaved_outputs: BTreeSet<BlockId>,
    pub(crate) outputs_saved: (UnixMillis, usize),
    /// When to kill the kernel, unless this execution has ended by then.
    pub(crate) kill: Option<(UnixMillis, ExecutionId)>,
    /// Whether the kernel was asked to stop.
    pub(crate) stopping: bool,
    /// Time limits in seconds that were requested for runs of these cells.
    pub(crate) limits: HashMap<BlockId, u64>,
    /// Deadline of the running execution, and its time limit in seconds.
    pub(crate) limit: Option<(UnixMillis, ExecutionId, u64)>,
    /// The execution that was stopped at its time limit, and the limit in seconds.
    pub(crate) overran: Option<(ExecutionId, u64)>,
    pub(crate) reactivity: Reactivity,
    /// The Jupyter kernel named in the note's properties.
    pub(crate) kernel_stated: Option<String>,
    /// Whether the note's properties name a kernel, including the built-in one.
    pub(crate) names_kernel: bool,
    /// The kernel for notes that don't name one.
    pub(crate) kernel_default: Option<String>,
    /// Packages that the note's cells need, as declared in its properties.
    pub(crate) packages: Option<NotePackages>,
    pub(crate) kernel_once: Option<Option<String>>,
    /// Whether cells run as if from top to bottom, if states are saved.
    pub(crate) faithful: bool,
    /// Whether the note's properties allow its variables to be saved.
    pub(crate) may_save_states: bool,
    /// Whether the note's kernel saves its variables.
    pub(crate) kernel_saves: bool,
    /// Executions whose state is on disk.
    pub(crate) saved_states: BTreeSet<ExecutionId>,
    /// Whether the next kernel starts without a saved state.
    pub(crate) starts_fresh: bool,
    pub(crate) state_move: KernelStateReport,
    pub(crate) shared_state: SharedStateProgress,
    /// Why the note's last kernel ended by itself while it ran no cell, if it did.
    pub(crate) kernel_trouble: Option<String>,
    /// Fingerprint of the kernel that was last selected.
    pub(crate) kernel_print: Option<String>,
    pub(crate) kernel_is: Option<String>,
    /// What the running built-in kernel may access.
    pub(crate) grant_is: crate::records::kernels::KernelGrant,
    pub(crate) question: Option<crate::records::kernels::StdinRequest>,
    pub(crate) outputs_changed: u64,
    /// Counter that increases with changes to cells and runs; derived data is recomputed when it changes.
    pub(crate) cells_revision: u64,
    pub(crate) runs: u64,
    pub(crate) kept_fresh: KeptStaleness,
    /// Executions that the running kernel has started.
    pub(crate) kernel_executions: BTreeSet<ExecutionId>,
    /// The branch of saved states for the cells that are queued next; `None`: the user's own state.
    pub(crate) next_branch: Option<String>,
    /// Branches of executions that agents requested. The user's state knows nothing of them.
    pub(crate) branches: BTreeMap<ExecutionId, String>,
    /// The user's latest execution of each cell that an agent has run since.
    pub(crate) own_runs: BTreeMap<BlockId, ExecutionId>,
    /// Names that the kernel holds as variables.
    pub(crate) held: BTreeMap<String, HeldName>,
    /// The running execution, its cell, and the names that the cell assigns (`true` if certainly).
    pub(crate) running: Option<(ExecutionId, BlockId, BTreeMap<String, bool>)>,
    /// Cells to run again, because a run was requested while they were running.
    pub(crate) again: BTreeSet<BlockId>,
    pub(crate) clean: Option<CleanRun>,
    /// Cells waiting for an agent's call, with the hash of the approved code. They run only with that code.
    pub(crate) bound: BTreeMap<BlockId, String>,
    pub(crate) verdict: Option<(u64, CleanRunReport)>,
}

/// Number of edits kept to shift carets; readers with an older revision reread the text.
const MAX_CARET_SHIFTS: usize = 1_024;

impl Note {
    pub(crate) fn new(id: DocId, volume: DocId, kind: FileKind) -> Note {
        Note {
            id,
            kind,
            volume,
            phase: NotePhase::Reading,
            file: FileSide::default(),
            kernel: KernelPhase::Off,
            problems: Vec::new(),
            shown: false,
            locked: None,
            holds: 0,
            doc: DocPhase::None,
            outputs: None,
            outputs_new: false,
            views: BTreeMap::new(),
            blocks: Vec::new(),
            meta: HashMap::new(),
            revision: 0,
            length: 0,
            shifts: VecDeque::new(),
            adopted: false,
            pending: Vec::new(),
            pending_upto: 0,
            outside: false,
            by_agent: false,
            by_commit: None,
            burst: None,
            last_edit: UnixMillis::default(),
            undo: UndoHistory::default(),
            remote: Vec::new(),
            others: false,
            executions: BTreeMap::new(),
            queue: VecDeque::new(),
            unsaved_outputs: BTreeSet::new(),
            outputs_saved: (UnixMillis::default(), 0),
            kill: None,
            stopping: false,
            limits: HashMap::new(),
            limit: None,
            overran: None,
            reactivity: Reactivity::default(),
            kernel_stated: None,
            names_kernel: false,
            kernel_default: None,
            packages: None,
            kernel_once: None,
            faithful: true,
            may_save_states: true,
            kernel_saves: false,
            saved_states: BTreeSet::new(),
            starts_fresh: false,
            state_move: KernelStateReport::default(),
            shared_state: SharedStateProgress::default(),
            kernel_trouble: None,
            kernel_print: None,
            kernel_is: None,
            grant_is: crate::records::kernels::KernelGrant::default(),
            question: None,
            outputs_changed: 0,
            cells_revision: 0,
            runs: 0,
            kernel_executions: BTreeSet::new(),
            next_branch: None,
            branches: BTreeMap::new(),
            own_runs: BTreeMap::new(),
            kept_fresh: KeptStaleness::default(),
            held: BTreeMap::new(),
            running: None,
            again: BTreeSet::new(),
            clean: None,
            bound: BTreeMap::new(),
            verdict: None,
        }
    }

    /// Returns the blocks that have text, in order.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.blocks.iter().filter(|block| !block.text.is_empty())
    }

    /// Returns the block with this id.
    pub fn block(&self, id: BlockId) -> Option<&Block> {
        self.blocks.iter().find(|block| block.id == id)
    }

    /// Returns the start of a block, in bytes of the whole note.
    pub fn block_start(&self, id: BlockId) -> Option<usize> {
        let mut at = 0;
        for block in &self.blocks {
            if block.id == id {
                return Some(at);
            }
            at += block.text.len();
        }
        None
    }

    /// Returns a counter that increases with changes to the block, so that views know when to redraw it.
    pub fn block_revision(&self, id: BlockId) -> u64 {
        self.meta.get(&id).map_or(0, |meta| meta.revision)
    }

    /// Returns the parts of a block that is a cell.
    pub fn cell_parts(&self, id: BlockId) -> Option<&CellParts> {
        self.meta.get(&id)?.cell.as_ref()
    }

    /// Returns the code of a cell.
    pub fn cell_code(&self, id: BlockId) -> Option<&str> {
        let cell = self.cell_parts(id)?;
        self.block(id)?.text.get(cell.code.clone())
    }

    /// Returns the language of a cell in lower case.
    pub fn cell_language(&self, id: BlockId) -> Option<String> {
        let python = || "python".to_owned();
        let is_script = self.kind == FileKind::Script;
        self.cell_parts(id)
            .and_then(|_| if is_script { Some(python()) } else { markdown::cell_language(&self.block(id)?.text) })
    }

    /// Returns the ids of the note's cells, in order.
    pub fn cells(&self) -> impl Iterator<Item = BlockId> {
        self.blocks().map(|block| block.id).filter(|id| self.cell_parts(*id).is_some())
    }

    /// Returns a counter that increases with each event of a run of the note's cells.
    pub fn run_revision(&self) -> u64 {
        self.runs
    }

    /// Returns a counter that increases with each change to the note.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns how many steps can be undone.
    pub fn undo_steps(&self) -> usize {
        self.undo.step_count()
    }

    /// Returns the note's length in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the note's whole text, as it's written to the file.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.length);
        self.blocks.iter().for_each(|block| text.push_str(&block.text));
        text
    }

    /// Returns the text of a range; `None` if it's outside of the note or not on character boundaries.
    pub fn slice(&self, at: usize, length: usize) -> Option<String> {
        let end = at.checked_add(length).filter(|end| *end <= self.length)?;
        let mut out = String::with_capacity(length);
        let mut start = 0;
        for block in &self.blocks {
            let stop = start + block.text.len();
            if stop >= at && start <= end && !block.text.is_empty() {
                out.push_str(block.text.get(at.max(start) - start..end.min(stop) - start)?);
            }
            start = stop;
        }
        Some(out)
    }

    /// Returns the edits since a revision, oldest first; `None` if they're no longer kept.
    pub fn shifts_since(&self, revision: u64) -> Option<impl Iterator<Item = &CaretShift>> {
        let known = self.shifts.front().map_or(self.revision, |first| first.revision - 1);
        (revision >= known).then(|| self.shifts.iter().filter(move |shift| shift.revision > revision))
    }

    /// Returns the latest execution of a cell.
    pub fn latest_execution(&self, cell: BlockId) -> Option<&Execution> {
        self.executions.get(&cell)
    }

    /// Returns whether the cell's result is out of date.
    pub fn is_stale(&self, cell: BlockId) -> bool {
        self.stale_reason(cell).is_some()
    }

    /// Returns whether the note is loaded and contains what other programs wrote to its file while it was closed.
    pub fn is_settled(&self) -> bool {
        self.phase == NotePhase::Ready && self.file.unmerged.is_none()
    }

    /// Returns whether the file's text can only be merged once the note's document is there, so that the commits that
    /// brought it become changes of their own.
    pub(crate) fn awaits_document(&self, file: &FileText) -> bool {
        !file.commits.is_empty() && self.adopted && matches!(self.doc, DocPhase::None | DocPhase::Loading)
    }

    /// Returns whether the note's document is being loaded.
    pub fn is_document_loading(&self) -> bool {
        matches!(self.doc, DocPhase::Loading)
    }

    /// Returns whether all of the note's text is in the document.
    pub fn is_committed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns whether the note's file lacks some of its text.
    pub fn is_ahead_of_file(&self) -> bool {
        self.file.ahead_stored || !self.pending.is_empty() || self.file.writing.is_some()
    }

    /// Returns why the note can't be edited; `None` if it can.
    pub fn read_only(&self) -> Option<&str> {
        match &self.doc {
            DocPhase::Failed(why) => Some(why),
            DocPhase::None | DocPhase::Loading | DocPhase::Loaded(_) => None,
        }
    }

    /// Returns why the note's text can't be edited, as a sentence; `None` if it can. What other programs change in its
    /// file is still read if only its volume is read-only.
    pub fn edit_refusal(&self) -> Option<String> {
        let unreadable = || self.read_only().map(|why| format!("the note can only be read: {why}"));
        self.locked.clone().or_else(unreadable)
    }

    /// Returns the note's document; `None` until it's loaded.
    pub fn document(&self) -> Option<&NoteDoc> {
        match &self.doc {
            DocPhase::Loaded(doc) => Some(doc),
            DocPhase::None | DocPhase::Loading | DocPhase::Failed(_) => None,
        }
    }

    /// Returns whether the user chose to show the generated view with this id ([`crate::generated_view::source_hash`]).
    pub fn shows_view(&self, view: store::BlobHash) -> bool {
        let kept = || self.outputs.as_ref().and_then(|outputs| outputs.is_view_shown(view));
        self.views.get(&view).copied().or_else(kept).unwrap_or(false)
    }

    /// Returns the blob with the notebook that the note was imported from.
    pub fn source_notebook(&self) -> Option<store::BlobRef> {
        self.outputs.as_ref()?.notebook_blob()
    }

    /// Returns the last text that note and file had in common, as far as document and marks can tell.
    pub(crate) fn common_text(&self, now: Option<&str>) -> String {
        let Some(doc) = self.document() else { return String::new() };
        let at = |heads: &[[u8; 32]]| {
            let heads: Vec<store::ChangeHash> = heads.iter().map(|hash| store::ChangeHash(*hash)).collect();
            if heads.is_empty() { None } else { doc.text_at(&heads).ok() }
        };
        // Without heads, the file was empty, or the note was created here and its file was never written.
        let mut last = at(&self.file.heads).unwrap_or_default();
        let Some(now) = now else { return last };
        for mark in &self.file.marks {
            if let Some(text) = &mark.text {
                last.clone_from(text); // this stood in the file
            } else if let Some(text) = at(&mark.heads).filter(|text| text_edit::is_based_on(now, text, &last)) {
                last = text; // this we were about to write, and did
            }
        }
        last
    }

    /// Returns whether nothing is in progress, so that the note can be closed.
    pub(crate) fn is_idle(&self) -> bool {
        let loading = matches!(self.doc, DocPhase::Loading) || self.phase == NotePhase::Reading;
        !loading
            && !self.is_ahead_of_file()
            && self.file.unmerged.is_none()
            && !self.file.reading
            && self.unsaved_outputs.is_empty()
            && !self.shared_state.is_due
            && !self.shared_state.is_fetching
            && self.views.is_empty()
            && self.remote.is_empty()
            && !matches!(self.kernel, KernelPhase::Busy(_))
    }

    /// Replaces the blocks and recomputes everything derived from them.
    pub(crate) fn set_blocks(&mut self, blocks: Vec<Block>) {
        self.blocks = blocks;
        self.meta.clear();
        self.cells_revision += 1;
        self.revision += 1;
        self.shifts.clear();
        self.length = self.blocks.iter().map(|block| block.text.len()).sum();
        let ids: Vec<BlockId> = self.blocks.iter().map(|block| block.id).collect();
        self.refresh_blocks(ids);
    }

    /// Recomputes everything derived from these blocks after they changed.
    pub(crate) fn refresh_blocks(&mut self, ids: impl IntoIterator<Item = BlockId>) {
        for id in ids {
            let Some(block) = self.blocks.iter().find(|block| block.id == id) else { continue };
            let cell = match self.kind {
                FileKind::Script => {
                    let parts = CellParts { code: 0..block.text.len(), form: CellForm::Code };
                    (!block.text.trim().is_empty()).then_some(parts)
                }
                _ => markdown::parse_cell(&block.text),
            };
            let is_cell = cell.is_some();
            let meta = BlockMeta { revision: self.revision, cell, names: OnceLock::new(), code: OnceLock::new() };
            let was_cell = self.meta.insert(id, meta).is_some_and(|old| old.cell.is_some());
            self.cells_revision += u64::from(is_cell || was_cell);
        }
        let first = self.blocks().next().map(|block| Reactivity::from_note_text(&block.text)).unwrap_or_default();
        self.kernel_stated = self.blocks.first().and_then(|block| named_kernel(&block.text));
        self.names_kernel = self.blocks.first().is_some_and(|block| names_kernel(&block.text));
        self.packages = self.blocks.first().and_then(|block| NotePackages::read(&block.text));
        self.faithful = self.blocks.first().is_none_or(|block| is_faithful(&block.text));
        self.may_save_states = self.blocks.first().is_none_or(|block| may_save_states(&block.text));
        if first != self.reactivity {
            self.reactivity = first;
            self.cells_revision += 1;
        }
    }

    /// Records an edit, so that carets can shift.
    pub(crate) fn record_shift(&mut self, at: usize, delete: usize, insert: usize, foreign: bool) {
        self.revision += 1;
        self.length = self.length - delete + insert;
        self.shifts.push_back(CaretShift { revision: self.revision, at, delete, insert, foreign });
        if self.shifts.len() > MAX_CARET_SHIFTS {
            self.shifts.pop_front();
        }
    }
}

/// Returns the hash by which an execution identifies its code.
pub(crate) fn code_hash(code: &str) -> String {
    store::BlobHash::of(code.as_bytes()).to_string()[..16].to_owned()
}
