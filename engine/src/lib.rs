//! Engine: the session and its state transitions, without I/O.
//!
//! This crate doesn't know that files, threads, processes, clocks or windows exist. [`Session::apply`] is the only way
//! to change state: a [`Command`] (a request of the user) or an [`Event`] (something that happened outside) goes in,
//! [`Effect`]s (work for the host) or a [`CommandError`] come out. Time and randomness are arguments, so every run can
//! be replayed.

pub mod agenda;
pub mod command;
mod derived_ids;
pub mod effect;
pub mod event;
mod note;
pub mod records;
pub mod session;
mod staleness;

pub use ::commands;
pub use agent::generated_view;
pub use agent::notice;
pub use command::Command;
pub use effect::Effect;
pub use event::Event;
pub use note::{CaretShift, DocPhase, FileSide, KernelPhase, Note, NotePhase};
pub use records::saving::BatchNumber;
pub use session::{
    AGREED_BYTES_KEY_PREFIX, AgentRun, AgentSession, AgentSetup, AgreedBytes, AttachmentAction, BudgetScope,
    BudgetStatus, CallPhase, CleanRunReport, CommandError, CompletedMove, DEPENDENCIES_PROPERTY, DeliveryState,
    DocumentsByVolume, EMBEDDED_KERNEL, EMBEDDING_COSTS_KEY_PREFIX, END_OF_INPUT, ENVIRONMENT_KERNEL,
    EXTERNAL_RENAMES_KEY, EmbeddingCost, ExternalRename, FileLocation, FileMove, GONE_FILES_KEY, HubBlobState,
    HubConnection, HubOutbox, HubState, INSTANT_KERNEL, InstructionFile, KernelGrant, KernelKind, KernelSpec,
    KernelStateMove, KernelStateReport, LAN_HUB_ADDRESS, LINKS_KEY_PREFIX, LiveModelCall, MERGES_KEY, MergeKind,
    MergeRecord, NotePackages, OUTBOX_KEY, PENDING_MOVE_KEY, PHASE_NAMES, POLICY_RULES_KEY, PROVIDER_LATENCIES_KEY,
    PendingCall, PendingMove, PhaseStatus, RELINK_KEY_PREFIX, REQUIRES_PYTHON_PROPERTY, RUN_KEY_PREFIX, RemotePeer,
    RunPhase, RunSummary, RunTraceError, RunVerificationError, RunsState, SCHEDULE_KEY_PREFIX, SCIENCE_KERNEL,
    SEEN_DEVICES_KEY, SESSION_KEY_PREFIX, SYNC_LOG_KEY, SYNC_SHARES_KEY, SaveStatus, SavedSyncState, ScanState,
    ScopeSpending, SeenDevice, Session, SessionInput, SessionSummary, SharedHub, SharedStateJob, SharedStateOutcome,
    SharedStateProgress, StdinRequest, SyncProgress, SyncShares, SyncState, SyncStatus, SyncTargets, TRASH_FOLDER,
    TRASH_KEY_PREFIX, TrashedFile, UNDO_MOVES_KEY, Volume, VolumeAttachments, hub_address, links_key, parse_heads,
    phases_of, read_volume_address, revertible_parts, run_address, session_address, volume_address,
};
pub use staleness::{Reactivity, StaleReason};
pub use text::time::UnixMillis;
pub use user_settings::pane_layout::{NotePosition, TabArrangement};
pub use user_settings::settings::{ColorTheme, EnterInsertion, FirstStep, ReducedMotion, Settings, TreeOrder};
pub use user_settings::{keymap, settings};
