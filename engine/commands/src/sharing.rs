//! Command-line arguments of the commands for sharing and other devices.

use super::{ArgumentForm, CommandArgument, command_argument};

/// Arguments of `tracebook sync`.
pub(super) const SYNC: &[CommandArgument] = &[
    command_argument(
        "WHAT",
        ArgumentForm::Needed,
        "status, log, merges, share, join, leave, pause, resume, retry or now",
    ),
    command_argument(
        "NAME",
        ArgumentForm::Optional,
        "for `share` and `leave`: the volume; for `join`: a volume's address; for `status`: a note; for \
         `merges`: the number of one, to see the note before and after",
    ),
    command_argument(
        "PLACE",
        ArgumentForm::Optional,
        "for `share`: the hub's address (ws://host:port); for `join`: an empty folder",
    ),
    command_argument(
        "for",
        ArgumentForm::Value,
        "wait at most this many seconds for all of it (`join`, `now`); 60 when left out",
    ),
];

/// Arguments of `tracebook devices`.
pub(super) const DEVICES: &[CommandArgument] = &[
    command_argument("WHAT", ArgumentForm::Optional, "list (when left out), revoke, name or access"),
    command_argument(
        "DEVICE",
        ArgumentForm::Optional,
        "a device: its name, or the beginning of its key; `this` for this one",
    ),
    command_argument("NAME", ArgumentForm::Optional, "the new name; for `access` none, read or write"),
    command_argument("hub", ArgumentForm::Value, "the list of the hub over this folder instead of this machine's own"),
];

/// Arguments of `tracebook pair`.
pub(super) const PAIR: &[CommandArgument] = &[
    command_argument(
        "WHERE",
        ArgumentForm::Optional,
        "what a QR code says, or a hub's address; without it a code is shown here",
    ),
    command_argument(
        "code",
        ArgumentForm::Value,
        "the code shown on the other device; without an address, the local network is searched",
    ),
    command_argument("name", ArgumentForm::Value, "how this device is called; its host name when left out"),
    command_argument(
        "local",
        ArgumentForm::Flag,
        "only for devices on this machine: nothing is announced on the network",
    ),
];

/// Arguments of `tracebook hub`.
pub(super) const HUB: &[CommandArgument] = &[
    command_argument("WHAT", ArgumentForm::Optional, "run (when left out), invite or share"),
    command_argument(
        "VOLUME",
        ArgumentForm::Optional,
        "for `share`: a volume's id, or `all`; without it what is shared is listed",
    ),
    command_argument("ACCESS", ArgumentForm::Optional, "for `share`: none, read or write"),
    command_argument("device", ArgumentForm::Value, "for `share`: only with this device"),
    command_argument("folder", ArgumentForm::Value, "the hub's folder; `hub` in the workspace when left out"),
    command_argument("listen", ArgumentForm::Value, "ADDRESS:PORT; 127.0.0.1:7600 when left out"),
    command_argument(
        "address",
        ArgumentForm::Value,
        "how devices reach it, as wss://HOST:PORT, where that is another address",
    ),
    command_argument("name", ArgumentForm::Value, "how the hub is called"),
    command_argument("tls", ArgumentForm::Flag, "TLS also on this machine; anywhere else it is always on"),
    command_argument(
        "certificate",
        ArgumentForm::Value,
        "a certificate (PEM) instead of the one that the hub makes for itself",
    ),
    command_argument("key", ArgumentForm::Value, "its key (PEM)"),
    command_argument("open", ArgumentForm::Value, "accept automerge-repo clients that aren't paired: local, or token"),
    command_argument("store", ArgumentForm::Value, "sqlite (when left out), or nats://HOST:PORT, several with commas"),
    command_argument("quota", ArgumentForm::Value, "megabytes that one device may store"),
    command_argument("rate", ArgumentForm::Value, "messages a second from one connection; 10000 when left out"),
    command_argument("largest", ArgumentForm::Value, "megabytes of a message at most; 64 when left out"),
    command_argument("connections", ArgumentForm::Value, "connections at once; 10000 when left out"),
    command_argument(
        "lease",
        ArgumentForm::Value,
        "seconds that a worker may be silent before another one continues its run; 30 when left out",
    ),
    command_argument("pair", ArgumentForm::Flag, "show a code for a device at the start; the first start always does"),
    command_argument("admin", ArgumentForm::Flag, "for `invite`: the device may change the list of devices"),
    command_argument(
        "access",
        ArgumentForm::Value,
        "for `invite`: the most that the device may do: none, read or write",
    ),
];

/// Arguments of `tracebook worker`.
pub(super) const WORKER: &[CommandArgument] = &[
    command_argument("WHAT", ArgumentForm::Optional, "run (when left out), list or stop"),
    command_argument("RUN", ArgumentForm::Optional, "for `stop`: the run"),
    command_argument(
        "for",
        ArgumentForm::Values,
        "carry out runs of this device: its name, or the beginning of its key as `tracebook devices` shows it there",
    ),
    command_argument("once", ArgumentForm::Flag, "end after one run"),
];

/// Arguments of `tracebook mcp`.
pub(super) const MCP: &[CommandArgument] = &[
    command_argument(
        "WHAT",
        ArgumentForm::Optional,
        "serve (when left out), install, tools, call, prompts, resources, login or logout",
    ),
    command_argument(
        "NAME",
        ArgumentForm::Optional,
        "with install: claude-code, opencode, gemini, zed, vscode or cursor; otherwise a server of the configuration, \
         or its address; prompts and resources list those of all servers without it",
    ),
    command_argument(
        "TOOL",
        ArgumentForm::Optional,
        "with call: the tool; with prompts or resources: one of them, to see its text",
    ),
    command_argument(
        "arguments",
        ArgumentForm::Value,
        "with call or prompts: the arguments as JSON; - reads standard input",
    ),
    command_argument(
        "timeout",
        ArgumentForm::Value,
        "with call: seconds until it's given up; 300 when left out. With serve: seconds that a change waits for your \
         approval; 600 when left out",
    ),
    command_argument(
        "allow-write",
        ArgumentForm::OptionalValue,
        "let the program change notes and memory; with `ask`, each change waits for your approval, which is what \
         install writes when it's left out; with `no`, it only reads",
    ),
    command_argument("allow-run", ArgumentForm::Flag, "let the program run cells"),
    command_argument("allow-agent", ArgumentForm::Flag, "let the program ask agents, which costs money"),
    command_argument(
        "allow-approve",
        ArgumentForm::Flag,
        "let the program's user decide there what those agents ask about",
    ),
    command_argument(
        "yes",
        ArgumentForm::Flag,
        "with install: write without asking; with call: take the defaults of forms",
    ),
];

/// Arguments of `tracebook serve`.
pub(super) const SERVE: &[CommandArgument] = &[
    command_argument("listen", ArgumentForm::Value, "ADDRESS:PORT; 127.0.0.1:7610 when left out"),
    command_argument("tls-cert", ArgumentForm::Value, "a certificate (PEM); needed for other machines to connect"),
    command_argument("tls-key", ArgumentForm::Value, "its key (PEM)"),
    command_argument(
        "tls",
        ArgumentForm::Flag,
        "make a certificate in the workspace; browsers ask before they trust it",
    ),
    command_argument(
        "host",
        ArgumentForm::Values,
        "a name under which clients reach it, besides localhost and addresses",
    ),
    command_argument("no-tcp", ArgumentForm::Flag, "only the Unix socket in the workspace"),
    command_argument(
        "until-input-ends",
        ArgumentForm::Flag,
        "end with standard input, for a program that starts the server",
    ),
];

/// Arguments of `tracebook tokens`.
pub(super) const TOKENS: &[CommandArgument] = &[
    command_argument("WHAT", ArgumentForm::Optional, "list (when left out), create or revoke"),
    command_argument("NAME", ArgumentForm::Optional, "with create: a name for it; with revoke: its id or name"),
    command_argument(
        "scopes",
        ArgumentForm::Value,
        "with create: read, write, suggest, run, agent, approve or admin, several with commas; read when left out",
    ),
    command_argument("volume", ArgumentForm::Value, "with create: only this volume"),
    command_argument("days", ArgumentForm::Value, "with create: days until it expires; 90 when left out, 0 for no end"),
    command_argument(
        "qr",
        ArgumentForm::Flag,
        "with create: show a link and a QR code that pair one browser, instead of a token",
    ),
];

/// Arguments of `tracebook volumes`.
pub(super) const VOLUMES_ARGUMENTS: &[CommandArgument] = &[
    command_argument("VERB", ArgumentForm::Optional, "list, add, set, trust or distrust; list when left out"),
    command_argument("NAME", ArgumentForm::Optional, "the volume to add, to set up, to trust or to distrust"),
    command_argument("kind", ArgumentForm::Value, "with add and set: team, user or none"),
    command_argument("remote", ArgumentForm::Value, "with add and set: the address of its repository, or none"),
    command_argument("branch", ArgumentForm::Value, "with add and set: the branch that is cloned, or none"),
    command_argument("readonly", ArgumentForm::Value, "with add and set: yes or no"),
    command_argument("folder", ArgumentForm::Value, "with add: the new folder; in the workspace when left out"),
];
