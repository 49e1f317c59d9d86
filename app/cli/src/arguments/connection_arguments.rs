//! What the subcommands that connect devices and other programs were given.

use clap::Args;

/// `sync`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SyncArguments {
    #[arg(id = "WHAT")]
    pub(crate) what: String,
    #[arg(id = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(id = "PLACE")]
    pub(crate) place: Option<String>,
    #[arg(id = "for", long = "for")]
    pub(crate) for_secs: Option<String>,
}

/// `devices`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DevicesArguments {
    #[arg(id = "WHAT")]
    pub(crate) what: Option<String>,
    #[arg(id = "DEVICE")]
    pub(crate) device: Option<String>,
    #[arg(id = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(long)]
    pub(crate) hub: Option<String>,
}

/// `pair`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PairArguments {
    #[arg(id = "WHERE")]
    pub(crate) place: Option<String>,
    #[arg(long)]
    pub(crate) code: Option<String>,
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[arg(long)]
    pub(crate) local: bool,
}

/// `hub`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HubArguments {
    #[arg(id = "WHAT")]
    pub(crate) what: Option<String>,
    #[arg(id = "VOLUME")]
    pub(crate) volume: Option<String>,
    #[arg(id = "ACCESS")]
    pub(crate) volume_access: Option<String>,
    #[arg(long)]
    pub(crate) device: Option<String>,
    #[arg(long)]
    pub(crate) folder: Option<String>,
    #[arg(long)]
    pub(crate) listen: Option<String>,
    #[arg(long)]
    pub(crate) address: Option<String>,
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[arg(long)]
    pub(crate) tls: bool,
    #[arg(long)]
    pub(crate) certificate: Option<String>,
    #[arg(long)]
    pub(crate) key: Option<String>,
    #[arg(id = "open", long = "open")]
    pub(crate) open_access: Option<String>,
    #[arg(long)]
    pub(crate) store: Option<String>,
    #[arg(long)]
    pub(crate) quota: Option<String>,
    #[arg(long)]
    pub(crate) rate: Option<String>,
    #[arg(long)]
    pub(crate) largest: Option<String>,
    #[arg(long)]
    pub(crate) connections: Option<String>,
    #[arg(long)]
    pub(crate) lease: Option<String>,
    #[arg(long)]
    pub(crate) pair: bool,
    #[arg(long)]
    pub(crate) admin: bool,
    #[arg(long)]
    pub(crate) access: Option<String>,
}

/// `worker`.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkerArguments {
    #[arg(id = "WHAT")]
    pub(crate) what: Option<String>,
    #[arg(id = "RUN")]
    pub(crate) run: Option<String>,
    #[arg(id = "for", long = "for")]
    pub(crate) owners: Vec<String>,
    #[arg(long)]
    pub(crate) once: bool,
}

/// `mcp`.
#[derive(Args, Clone, Debug)]
pub(crate) struct McpArguments {
    #[arg(id = "WHAT")]
    pub(crate) what: Option<String>,
    #[arg(id = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(id = "TOOL")]
    pub(crate) tool: Option<String>,
    #[arg(long)]
    pub(crate) arguments: Option<String>,
    #[arg(long)]
    pub(crate) timeout: Option<String>,
    #[arg(id = "allow-write", long = "allow-write", num_args = 0..=1, default_missing_value = "")]
    pub(crate) allow_write: Option<String>,
    #[arg(id = "allow-run", long = "allow-run")]
    pub(crate) allow_run: bool,
    #[arg(id = "allow-agent", long = "allow-agent")]
    pub(crate) allow_agent: bool,
    #[arg(id = "allow-approve", long = "allow-approve")]
    pub(crate) allow_approve: bool,
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `acp`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AcpArguments {}

/// `serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArguments {
    #[arg(long)]
    pub(crate) listen: Option<String>,
    #[arg(id = "tls-cert", long = "tls-cert")]
    pub(crate) tls_cert: Option<String>,
    #[arg(id = "tls-key", long = "tls-key")]
    pub(crate) tls_key: Option<String>,
    #[arg(long)]
    pub(crate) tls: bool,
    #[arg(long)]
    pub(crate) host: Vec<String>,
    #[arg(id = "no-tcp", long = "no-tcp")]
    pub(crate) no_tcp: bool,
    #[arg(id = "until-input-ends", long = "until-input-ends")]
    pub(crate) until_input_ends: bool,
}

/// `tokens`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TokensArguments {
    #[arg(id = "WHAT")]
    pub(crate) what: Option<String>,
    #[arg(id = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(long)]
    pub(crate) scopes: Option<String>,
    #[arg(long)]
    pub(crate) volume: Option<String>,
    #[arg(long)]
    pub(crate) days: Option<String>,
    #[arg(long)]
    pub(crate) qr: bool,
}
