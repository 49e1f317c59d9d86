//! What each subcommand was given, by name and type. The one table of commands says what there is, in which form and
//! with which help; a test holds both together.

mod agent_arguments;
mod connection_arguments;

use clap::{ArgMatches, Args, FromArgMatches};

pub(super) use agent_arguments::*;
pub(super) use connection_arguments::*;

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
    #[arg(long)]
    pub(super) volume: Option<String>,
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
    #[arg(long)]
    pub(super) save: Option<String>,
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
    pub(super) interpreter: Option<String>,
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
    #[arg(long)]
    pub(super) volume: Option<String>,
}

/// `components`.
#[derive(Args, Clone, Debug)]
pub(super) struct ComponentsArguments {
    #[arg(id = "COMPONENT")]
    pub(super) component: Option<String>,
    #[arg(long)]
    pub(super) volume: Option<String>,
    #[arg(long)]
    pub(super) approve: bool,
    #[arg(long)]
    pub(super) revoke: bool,
}

/// `packages`.
#[derive(Args, Clone, Debug)]
pub(super) struct PackagesArguments {
    #[arg(id = "ACTION")]
    pub(super) action: Option<String>,
    #[arg(id = "PACKAGE")]
    pub(super) package: Option<String>,
    #[arg(long)]
    pub(super) approve: Option<String>,
    #[arg(long)]
    pub(super) contents: bool,
    #[arg(long)]
    pub(super) volume: Option<String>,
    #[arg(long)]
    pub(super) to: Option<String>,
    #[arg(long)]
    pub(super) key: Option<String>,
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
    pub(super) tags: bool,
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
    #[arg(long)]
    pub(super) kind: Option<String>,
    #[arg(long)]
    pub(super) remote: Option<String>,
    #[arg(long)]
    pub(super) branch: Option<String>,
    #[arg(long)]
    pub(super) readonly: Option<String>,
    #[arg(long)]
    pub(super) folder: Option<String>,
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
    #[arg(long)]
    pub(super) volume: Option<String>,
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
    #[arg(id = "if-version", long = "if-version")]
    pub(super) if_version: Option<String>,
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
            grammar::<ComponentsArguments>("components"),
            grammar::<PackagesArguments>("packages"),
            grammar::<EditArguments>("edit"),
            grammar::<LsArguments>("ls"),
            grammar::<VolumesArguments>("volumes"),
            grammar::<CopyArguments>("cp"),
            grammar::<GitArguments>("git"),
            grammar::<ForksArguments>("forks"),
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
            grammar::<WorkerArguments>("worker"),
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
