//! What each subcommand was given, by name and type. The one table of commands says what there is, in which form and
//! with which help; a test holds both together.

use clap::{ArgMatches, Args, FromArgMatches};

/// Reads what a subcommand was given.
pub fn typed<A: FromArgMatches>(args: &ArgMatches) -> Result<A, super::CliError> {
    A::from_arg_matches(args).map_err(|error| super::CliError::usage(error.to_string()))
}

/// `search`.
#[derive(Args, Clone, Debug)]
pub(super) struct SearchArguments {
    #[arg(id = "QUERY")]
    pub(super) query: String,
    #[arg(long)]
    pub(super) limit: Option<String>,
    #[arg(long)]
    pub(super) explain: bool,
    #[arg(long)]
    pub(super) nearest: bool,
}

/// `new`.
#[derive(Args, Clone, Debug)]
pub(super) struct NewArguments {
    #[arg(id = "PATH")]
    pub(super) path: String,
    #[arg(long)]
    pub(super) volume: Option<String>,
    #[arg(long)]
    pub(super) text: Option<String>,
}

/// `capture`.
#[derive(Args, Clone, Debug)]
pub(super) struct CaptureArguments {
    #[arg(id = "TEXT")]
    pub(super) text: String,
    #[arg(long)]
    pub(super) volume: Option<String>,
    #[arg(long)]
    pub(super) attach: Option<String>,
    #[arg(long)]
    pub(super) missing: bool,
}

/// `open`.
#[derive(Args, Clone, Debug)]
pub(super) struct OpenArguments {
    #[arg(id = "FOLDER")]
    pub(super) folder: String,
}

/// `run`.
#[derive(Args, Clone, Debug)]
pub(super) struct RunArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(long)]
    pub(super) cell: Option<String>,
    #[arg(long)]
    pub(super) timeout: Option<String>,
    #[arg(long)]
    pub(super) kernel: Option<String>,
    #[arg(long)]
    pub(super) stale: bool,
    #[arg(long)]
    pub(super) clean: bool,
    #[arg(long)]
    pub(super) stop: bool,
}

/// `cells`.
#[derive(Args, Clone, Debug)]
pub(super) struct CellsArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(long)]
    pub(super) mode: Option<String>,
    #[arg(long)]
    pub(super) set: Vec<String>,
}

/// `kernels`.
#[derive(Args, Clone, Debug)]
pub(super) struct KernelsArguments {
    #[arg(id = "NOTE")]
    pub(super) note: Option<String>,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
    #[arg(id = "STATE")]
    pub(super) first_state: Option<String>,
    #[arg(id = "OTHER")]
    pub(super) other_state: Option<String>,
    #[arg(long)]
    pub(super) from: Option<String>,
    #[arg(id = "as", long = "as")]
    pub(super) fork: Option<String>,
    #[arg(long)]
    pub(super) state: Option<String>,
    #[arg(id = "name", long = "name")]
    pub(super) pin_name: Option<String>,
    #[arg(id = "use", long = "use")]
    pub(super) use_kernel: Option<String>,
    #[arg(long)]
    pub(super) allow: Option<String>,
    #[arg(long)]
    pub(super) setup: bool,
    #[arg(long)]
    pub(super) package: Vec<String>,
    #[arg(long)]
    pub(super) python: Option<String>,
    #[arg(long)]
    pub(super) add: Vec<String>,
    #[arg(long)]
    pub(super) remove: Vec<String>,
    #[arg(long)]
    pub(super) sync: bool,
}

/// `grant`.
#[derive(Args, Clone, Debug)]
pub(super) struct GrantArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(long)]
    pub(super) read: Vec<String>,
    #[arg(long)]
    pub(super) write: Vec<String>,
    #[arg(long)]
    pub(super) network: bool,
    #[arg(long)]
    pub(super) none: bool,
}

/// `ask`.
#[derive(Args, Clone, Debug)]
pub(super) struct AskArguments {
    #[arg(id = "TEXT")]
    pub(super) text: String,
    #[arg(long)]
    pub(super) project: Option<String>,
    #[arg(long)]
    pub(super) note: Option<String>,
    #[arg(long)]
    pub(super) session: Option<String>,
    #[arg(id = "from", long = "from")]
    pub(super) from_step: Option<String>,
    #[arg(long)]
    pub(super) agent: Option<String>,
    #[arg(long)]
    pub(super) approve: Vec<String>,
    #[arg(long)]
    pub(super) budget: Option<String>,
    #[arg(long)]
    pub(super) mode: Option<String>,
    #[arg(long)]
    pub(super) without: Vec<String>,
    #[arg(id = "no-wait", long = "no-wait")]
    pub(super) no_wait: bool,
    #[arg(id = "run", long = "run")]
    pub(super) run_id: Option<String>,
}

/// `runs`.
#[derive(Args, Clone, Debug)]
pub(super) struct RunsArguments {
    #[arg(id = "RUN")]
    pub(super) run: Option<String>,
    #[arg(long)]
    pub(super) stop: bool,
    #[arg(long)]
    pub(super) resume: bool,
    #[arg(long)]
    pub(super) more: Option<String>,
    #[arg(long)]
    pub(super) budget: Option<String>,
    #[arg(id = "no-wait", long = "no-wait")]
    pub(super) no_wait: bool,
    #[arg(long)]
    pub(super) undo: bool,
    #[arg(long)]
    pub(super) redo: bool,
    #[arg(long)]
    pub(super) change: Option<String>,
    #[arg(long)]
    pub(super) hunk: Option<String>,
    #[arg(long)]
    pub(super) result: bool,
    #[arg(long)]
    pub(super) export: bool,
    #[arg(long)]
    pub(super) import: Option<String>,
}

/// `budget`.
#[derive(Args, Clone, Debug)]
pub(super) struct BudgetArguments {
    #[arg(long)]
    pub(super) log: bool,
    #[arg(long)]
    pub(super) by: Option<String>,
}

/// `memory`.
#[derive(Args, Clone, Debug)]
pub(super) struct MemoryArguments {
    #[arg(id = "ACTION")]
    pub(super) action: Option<String>,
    #[arg(id = "TEXT")]
    pub(super) text: Option<String>,
    #[arg(long)]
    pub(super) project: Option<String>,
    #[arg(long)]
    pub(super) outcome: Option<String>,
    #[arg(long)]
    pub(super) tier: Option<String>,
    #[arg(long)]
    pub(super) about: Option<String>,
    #[arg(long)]
    pub(super) goal: Option<String>,
    #[arg(long)]
    pub(super) source: Option<String>,
    #[arg(long)]
    pub(super) expires: Option<String>,
}

/// `tasks`.
#[derive(Args, Clone, Debug)]
pub(super) struct TasksArguments {
    #[arg(id = "ACTION")]
    pub(super) action: Option<String>,
    #[arg(id = "WHAT")]
    pub(super) what: Option<String>,
    #[arg(long)]
    pub(super) project: Option<String>,
    #[arg(long)]
    pub(super) plan: Option<String>,
    #[arg(long)]
    pub(super) needs: Vec<String>,
    #[arg(long)]
    pub(super) agent: Option<String>,
    #[arg(long)]
    pub(super) tool: Vec<String>,
    #[arg(long)]
    pub(super) input: Vec<String>,
    #[arg(long)]
    pub(super) constraint: Vec<String>,
    #[arg(long)]
    pub(super) priority: Option<String>,
    #[arg(long)]
    pub(super) mode: Option<String>,
    #[arg(long)]
    pub(super) risk: Option<String>,
    #[arg(long)]
    pub(super) checkpoint: bool,
    #[arg(long)]
    pub(super) model: bool,
    #[arg(long)]
    pub(super) approve: Vec<String>,
    #[arg(long)]
    pub(super) budget: Option<String>,
    #[arg(id = "no-wait", long = "no-wait")]
    pub(super) no_wait: bool,
}

/// `schedule`.
#[derive(Args, Clone, Debug)]
pub(super) struct ScheduleArguments {
    #[arg(id = "ACTION")]
    pub(super) action: Option<String>,
    #[arg(id = "WHAT")]
    pub(super) what: Option<String>,
    #[arg(id = "GOAL")]
    pub(super) goal: Option<String>,
    #[arg(long)]
    pub(super) name: Option<String>,
    #[arg(long)]
    pub(super) project: Option<String>,
    #[arg(long)]
    pub(super) note: Option<String>,
    #[arg(long)]
    pub(super) agent: Option<String>,
    #[arg(long)]
    pub(super) approve: Vec<String>,
    #[arg(long)]
    pub(super) budget: Option<String>,
    #[arg(long)]
    pub(super) mode: Option<String>,
    #[arg(long)]
    pub(super) run: Option<String>,
    #[arg(long)]
    pub(super) cell: Option<String>,
    #[arg(long)]
    pub(super) consolidate: bool,
    #[arg(long)]
    pub(super) analyze: Option<String>,
    #[arg(long)]
    pub(super) within: Option<String>,
    #[arg(long)]
    pub(super) utc: bool,
    #[arg(long)]
    pub(super) zone: Option<String>,
}

/// `events`.
#[derive(Args, Clone, Debug)]
pub(super) struct EventsArguments {
    #[arg(long)]
    pub(super) follow: bool,
    #[arg(long)]
    pub(super) filter: Vec<String>,
    #[arg(long)]
    pub(super) project: Option<String>,
    #[arg(long)]
    pub(super) count: Option<String>,
}

/// `traces`.
#[derive(Args, Clone, Debug)]
pub(super) struct TracesArguments {
    #[arg(id = "ACTION")]
    pub(super) action: Option<String>,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
    #[arg(long, conflicts_with = "unpin")]
    pub(super) pin: bool,
    #[arg(long)]
    pub(super) unpin: bool,
    #[arg(long)]
    pub(super) signed: bool,
    #[arg(long)]
    pub(super) preview: bool,
    #[arg(long)]
    pub(super) project: Option<String>,
}

/// `steps`.
#[derive(Args, Clone, Debug)]
pub(super) struct StepsArguments {
    #[arg(id = "RUN")]
    pub(super) run: String,
    #[arg(long)]
    pub(super) whole: bool,
}

/// `sessions`.
#[derive(Args, Clone, Debug)]
pub(super) struct SessionsArguments {
    #[arg(id = "SESSION")]
    pub(super) session: Option<String>,
    #[arg(long)]
    pub(super) all: bool,
    #[arg(long)]
    pub(super) title: Option<String>,
    #[arg(long)]
    pub(super) go: Option<String>,
    #[arg(long)]
    pub(super) fork: Option<String>,
    #[arg(long)]
    pub(super) merge: Option<String>,
    #[arg(id = "into", long = "into")]
    pub(super) into_session: Option<String>,
    #[arg(long)]
    pub(super) compare: Option<String>,
    #[arg(long)]
    pub(super) export: Option<String>,
    #[arg(long)]
    pub(super) import: Option<String>,
    #[arg(long)]
    pub(super) delete: bool,
}

/// `approvals`.
#[derive(Args, Clone, Debug)]
pub(super) struct ApprovalsArguments {
    #[arg(id = "APPROVAL")]
    pub(super) approval: Option<String>,
    #[arg(long)]
    pub(super) allow: bool,
    #[arg(long)]
    pub(super) deny: bool,
    #[arg(long)]
    pub(super) scope: Option<String>,
    #[arg(long)]
    pub(super) arguments: Option<String>,
    #[arg(long)]
    pub(super) comment: Option<String>,
    #[arg(long)]
    pub(super) all: bool,
    #[arg(long)]
    pub(super) find: Option<String>,
    #[arg(long)]
    pub(super) rules: bool,
    #[arg(long)]
    pub(super) forget: Option<String>,
}

/// `tools`.
#[derive(Args, Clone, Debug)]
pub(super) struct ToolsArguments {
    #[arg(id = "TOOL")]
    pub(super) tool: Option<String>,
    #[arg(long)]
    pub(super) versions: bool,
    #[arg(long)]
    pub(super) compare: Option<String>,
    #[arg(long)]
    pub(super) rollback: bool,
    #[arg(long)]
    pub(super) approve: bool,
    #[arg(long)]
    pub(super) disable: bool,
    #[arg(long)]
    pub(super) remove: bool,
    #[arg(long)]
    pub(super) export: bool,
    #[arg(long)]
    pub(super) import: Option<String>,
}

/// `init`.
#[derive(Args, Clone, Debug)]
pub(super) struct InitArguments {
    #[arg(long)]
    pub(super) sample: bool,
}

/// `cat`.
#[derive(Args, Clone, Debug)]
pub(super) struct CatArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(long)]
    pub(super) blocks: bool,
}

/// `attachments`.
#[derive(Args, Clone, Debug)]
pub(super) struct AttachmentsArguments {
    #[arg(id = "ACTION")]
    pub(super) action: Option<String>,
    #[arg(id = "PATH")]
    pub(super) path: Option<String>,
    #[arg(long)]
    pub(super) volume: Option<String>,
    #[arg(id = "from", long = "from")]
    pub(super) from: Option<String>,
    #[arg(long)]
    pub(super) length: Option<String>,
    #[arg(id = "if-version", long = "if-version")]
    pub(super) if_version: Option<String>,
}

/// `edit`.
#[derive(Args, Clone, Debug)]
pub(super) struct EditArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(long)]
    pub(super) text: bool,
    #[arg(id = "if-version", long = "if-version")]
    pub(super) if_version: Option<String>,
}

/// `ls`.
#[derive(Args, Clone, Debug)]
pub(super) struct LsArguments {
    #[arg(long)]
    pub(super) volume: Option<String>,
    #[arg(long)]
    pub(super) volumes: bool,
    #[arg(long)]
    pub(super) recent: Option<String>,
}

/// `volumes`.
#[derive(Args, Clone, Debug)]
pub(super) struct VolumesArguments {
    #[arg(id = "VERB")]
    pub(super) verb: Option<String>,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
}

/// `links`.
#[derive(Args, Clone, Debug)]
pub(super) struct LinksArguments {
    #[arg(id = "NOTE")]
    pub(super) note: Option<String>,
    #[arg(long)]
    pub(super) broken: bool,
}

/// `related`.
#[derive(Args, Clone, Debug)]
pub(super) struct RelatedArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(long)]
    pub(super) limit: Option<String>,
}

/// `todos`.
#[derive(Args, Clone, Debug)]
pub(super) struct TodosArguments {
    #[arg(long)]
    pub(super) words: Option<String>,
    #[arg(long)]
    pub(super) all: bool,
    #[arg(long)]
    pub(super) check: Option<String>,
    #[arg(long)]
    pub(super) at: Option<String>,
}

/// `base`.
#[derive(Args, Clone, Debug)]
pub(super) struct BaseArguments {
    #[arg(id = "FILE")]
    pub(super) file: String,
    #[arg(long)]
    pub(super) view: Option<String>,
}

/// `mv`.
#[derive(Args, Clone, Debug)]
pub(super) struct MvArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(id = "PATH")]
    pub(super) path: String,
}

/// `rm`.
#[derive(Args, Clone, Debug)]
pub(super) struct RmArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
}

/// `trash`.
#[derive(Args, Clone, Debug)]
pub(super) struct TrashArguments {
    #[arg(long)]
    pub(super) delete: Option<String>,
    #[arg(long)]
    pub(super) empty: bool,
}

/// `restore-note`.
#[derive(Args, Clone, Debug)]
pub(super) struct RestoreNoteArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(id = "PATH")]
    pub(super) path: Option<String>,
}

/// `history`.
#[derive(Args, Clone, Debug)]
pub(super) struct HistoryArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(long)]
    pub(super) at: Option<String>,
    #[arg(long)]
    pub(super) diff: bool,
    #[arg(long)]
    pub(super) blame: bool,
    #[arg(long)]
    pub(super) restore: Option<String>,
}

/// `import`.
#[derive(Args, Clone, Debug)]
pub(super) struct ImportArguments {
    #[arg(id = "PATH", required = true, num_args = 1..)]
    pub(super) path: Vec<String>,
    #[arg(long)]
    pub(super) volume: Option<String>,
}

/// `export`.
#[derive(Args, Clone, Debug)]
pub(super) struct ExportArguments {
    #[arg(id = "NOTE_OR_VOLUME")]
    pub(super) note_or_volume: String,
    #[arg(id = "DEST")]
    pub(super) dest: String,
    #[arg(long)]
    pub(super) to: Option<String>,
    #[arg(long)]
    pub(super) html: bool,
    #[arg(long)]
    pub(super) paper: Option<String>,
    #[arg(long)]
    pub(super) fragment: Option<String>,
}

/// `outputs`.
#[derive(Args, Clone, Debug)]
pub(super) struct OutputsArguments {
    #[arg(id = "NOTE")]
    pub(super) note: String,
    #[arg(long)]
    pub(super) save: Option<String>,
}

/// `doctor`.
#[derive(Args, Clone, Debug)]
pub(super) struct DoctorArguments {
    #[arg(long, num_args = 0..=1, default_missing_value = "")]
    pub(super) report: Option<String>,
}

/// `update`.
#[derive(Args, Clone, Debug)]
pub(super) struct UpdateArguments {
    #[arg(long)]
    pub(super) check: bool,
}

/// `fsck`.
#[derive(Args, Clone, Debug)]
pub(super) struct FsckArguments {
    #[arg(long)]
    pub(super) check: bool,
}

/// `index`.
#[derive(Args, Clone, Debug)]
pub(super) struct IndexArguments {
    #[arg(id = "WHAT")]
    pub(super) what: String,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
}

/// `searches`.
#[derive(Args, Clone, Debug)]
pub(super) struct SearchesArguments {
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
    #[arg(id = "QUERY")]
    pub(super) query: Option<String>,
    #[arg(long)]
    pub(super) forget: bool,
}

/// `backup`.
#[derive(Args, Clone, Debug)]
pub(super) struct BackupArguments {
    #[arg(id = "DEST")]
    pub(super) dest: String,
}

/// `restore`.
#[derive(Args, Clone, Debug)]
pub(super) struct RestoreArguments {
    #[arg(id = "BACKUP")]
    pub(super) backup: String,
    #[arg(long)]
    pub(super) trusted: bool,
}

/// `providers`.
#[derive(Args, Clone, Debug)]
pub(super) struct ProvidersArguments {
    #[arg(id = "WHAT")]
    pub(super) what: Option<String>,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
    #[arg(id = "kind", long = "kind")]
    pub(super) kind: Option<String>,
    #[arg(id = "base-url", long = "base-url")]
    pub(super) base_url: Option<String>,
    #[arg(id = "model", long = "model")]
    pub(super) model: Option<String>,
    #[arg(id = "key-stdin", long = "key-stdin")]
    pub(super) key_stdin: bool,
}

/// `secrets`.
#[derive(Args, Clone, Debug)]
pub(super) struct SecretsArguments {
    #[arg(id = "WHAT")]
    pub(super) what: String,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
}

/// `completions`.
#[derive(Args, Clone, Debug)]
pub(super) struct CompletionsArguments {
    #[arg(id = "SHELL")]
    pub(super) shell: String,
}

/// `sync`.
#[derive(Args, Clone, Debug)]
pub(super) struct SyncArguments {
    #[arg(id = "WHAT")]
    pub(super) what: String,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
    #[arg(id = "PLACE")]
    pub(super) place: Option<String>,
    #[arg(id = "for", long = "for")]
    pub(super) for_secs: Option<String>,
}

/// `devices`.
#[derive(Args, Clone, Debug)]
pub(super) struct DevicesArguments {
    #[arg(id = "WHAT")]
    pub(super) what: Option<String>,
    #[arg(id = "DEVICE")]
    pub(super) device: Option<String>,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
    #[arg(long)]
    pub(super) hub: Option<String>,
}

/// `pair`.
#[derive(Args, Clone, Debug)]
pub(super) struct PairArguments {
    #[arg(id = "WHERE")]
    pub(super) place: Option<String>,
    #[arg(long)]
    pub(super) code: Option<String>,
    #[arg(long)]
    pub(super) name: Option<String>,
    #[arg(long)]
    pub(super) local: bool,
}

/// `hub`.
#[derive(Args, Clone, Debug)]
pub(super) struct HubArguments {
    #[arg(id = "WHAT")]
    pub(super) what: Option<String>,
    #[arg(id = "VOLUME")]
    pub(super) volume: Option<String>,
    #[arg(id = "ACCESS")]
    pub(super) volume_access: Option<String>,
    #[arg(long)]
    pub(super) device: Option<String>,
    #[arg(long)]
    pub(super) folder: Option<String>,
    #[arg(long)]
    pub(super) listen: Option<String>,
    #[arg(long)]
    pub(super) address: Option<String>,
    #[arg(long)]
    pub(super) name: Option<String>,
    #[arg(long)]
    pub(super) tls: bool,
    #[arg(long)]
    pub(super) certificate: Option<String>,
    #[arg(long)]
    pub(super) key: Option<String>,
    #[arg(id = "open", long = "open")]
    pub(super) open_access: Option<String>,
    #[arg(long)]
    pub(super) store: Option<String>,
    #[arg(long)]
    pub(super) quota: Option<String>,
    #[arg(long)]
    pub(super) rate: Option<String>,
    #[arg(long)]
    pub(super) largest: Option<String>,
    #[arg(long)]
    pub(super) connections: Option<String>,
    #[arg(long)]
    pub(super) pair: bool,
    #[arg(long)]
    pub(super) admin: bool,
    #[arg(long)]
    pub(super) access: Option<String>,
}

/// `mcp`.
#[derive(Args, Clone, Debug)]
pub(super) struct McpArguments {
    #[arg(id = "WHAT")]
    pub(super) what: Option<String>,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
    #[arg(id = "TOOL")]
    pub(super) tool: Option<String>,
    #[arg(long)]
    pub(super) arguments: Option<String>,
    #[arg(long)]
    pub(super) timeout: Option<String>,
    #[arg(id = "allow-write", long = "allow-write")]
    pub(super) allow_write: bool,
    #[arg(id = "allow-run", long = "allow-run")]
    pub(super) allow_run: bool,
    #[arg(id = "allow-agent", long = "allow-agent")]
    pub(super) allow_agent: bool,
    #[arg(id = "allow-approve", long = "allow-approve")]
    pub(super) allow_approve: bool,
    #[arg(long)]
    pub(super) yes: bool,
}

/// `acp`.
#[derive(Args, Clone, Debug)]
pub(super) struct AcpArguments {}

/// `serve`.
#[derive(Args, Clone, Debug)]
pub(super) struct ServeArguments {
    #[arg(long)]
    pub(super) listen: Option<String>,
    #[arg(id = "tls-cert", long = "tls-cert")]
    pub(super) tls_cert: Option<String>,
    #[arg(id = "tls-key", long = "tls-key")]
    pub(super) tls_key: Option<String>,
    #[arg(long)]
    pub(super) tls: bool,
    #[arg(long)]
    pub(super) host: Vec<String>,
    #[arg(id = "no-tcp", long = "no-tcp")]
    pub(super) no_tcp: bool,
}

/// `tokens`.
#[derive(Args, Clone, Debug)]
pub(super) struct TokensArguments {
    #[arg(id = "WHAT")]
    pub(super) what: Option<String>,
    #[arg(id = "NAME")]
    pub(super) name: Option<String>,
    #[arg(long)]
    pub(super) scopes: Option<String>,
    #[arg(long)]
    pub(super) volume: Option<String>,
    #[arg(long)]
    pub(super) days: Option<String>,
    #[arg(long)]
    pub(super) qr: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git_commands::GitArguments;
    use crate::system_files::CopyArguments;
    use clap::Command;

    /// The subcommands and their types.
    fn typed_commands() -> Vec<(&'static str, Command)> {
        fn grammar<A: Args>(name: &'static str) -> (&'static str, Command) {
            (name, A::augment_args(Command::new(name)))
        }
        vec![
            grammar::<SearchArguments>("search"),
            grammar::<NewArguments>("new"),
            grammar::<CaptureArguments>("capture"),
            grammar::<OpenArguments>("open"),
            grammar::<RunArguments>("run"),
            grammar::<CellsArguments>("cells"),
            grammar::<KernelsArguments>("kernels"),
            grammar::<GrantArguments>("grant"),
            grammar::<AskArguments>("ask"),
            grammar::<RunsArguments>("runs"),
            grammar::<BudgetArguments>("budget"),
            grammar::<MemoryArguments>("memory"),
            grammar::<TasksArguments>("tasks"),
            grammar::<ScheduleArguments>("schedule"),
            grammar::<EventsArguments>("events"),
            grammar::<TracesArguments>("traces"),
            grammar::<StepsArguments>("steps"),
            grammar::<SessionsArguments>("sessions"),
            grammar::<ApprovalsArguments>("approvals"),
            grammar::<ToolsArguments>("tools"),
            grammar::<InitArguments>("init"),
            grammar::<CatArguments>("cat"),
            grammar::<AttachmentsArguments>("attachments"),
            grammar::<EditArguments>("edit"),
            grammar::<LsArguments>("ls"),
            grammar::<VolumesArguments>("volumes"),
            grammar::<CopyArguments>("cp"),
            grammar::<GitArguments>("git"),
            grammar::<LinksArguments>("links"),
            grammar::<RelatedArguments>("related"),
            grammar::<TodosArguments>("todos"),
            grammar::<BaseArguments>("base"),
            grammar::<MvArguments>("mv"),
            grammar::<RmArguments>("rm"),
            grammar::<TrashArguments>("trash"),
            grammar::<RestoreNoteArguments>("restore-note"),
            grammar::<HistoryArguments>("history"),
            grammar::<ImportArguments>("import"),
            grammar::<ExportArguments>("export"),
            grammar::<OutputsArguments>("outputs"),
            grammar::<DoctorArguments>("doctor"),
            grammar::<UpdateArguments>("update"),
            grammar::<FsckArguments>("fsck"),
            grammar::<IndexArguments>("index"),
            grammar::<SearchesArguments>("searches"),
            grammar::<BackupArguments>("backup"),
            grammar::<RestoreArguments>("restore"),
            grammar::<ProvidersArguments>("providers"),
            grammar::<SecretsArguments>("secrets"),
            grammar::<CompletionsArguments>("completions"),
            grammar::<SyncArguments>("sync"),
            grammar::<DevicesArguments>("devices"),
            grammar::<PairArguments>("pair"),
            grammar::<HubArguments>("hub"),
            grammar::<McpArguments>("mcp"),
            grammar::<AcpArguments>("acp"),
            grammar::<ServeArguments>("serve"),
            grammar::<TokensArguments>("tokens"),
        ]
    }

    #[test]
    fn types_and_table_name_the_same_arguments_in_the_same_form() {
        let form = |arg: &clap::Arg| {
            let (min, action) =
                (arg.get_num_args().map(|number| number.min_values()), format!("{:?}", arg.get_action()));
            (arg.get_id().to_string(), arg.get_long().map(str::to_owned), arg.is_required_set(), min, action)
        };
        let table = crate::parse::build_grammar();
        let typed = typed_commands();
        for (name, command) in &typed {
            let row = table.find_subcommand(name).unwrap_or_else(|| panic!("the table has no {name}"));
            let (mut row, mut command) = (row.clone(), command.clone());
            row.build();
            command.build();
            let own = |command: &Command| command.get_arguments().map(form).collect::<Vec<_>>();
            assert_eq!(own(&command), own(&row), "{name}");
        }
        let measured = ["bench", "screenshots"];
        let takes = |command: &&Command| command.get_arguments().next().is_some() && !command.is_hide_set();
        for row in table.get_subcommands().filter(takes).filter(|row| !measured.contains(&row.get_name())) {
            assert!(typed.iter().any(|(name, _)| *name == row.get_name()), "{} has no type", row.get_name());
        }
    }
}
