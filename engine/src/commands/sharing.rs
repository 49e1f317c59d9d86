//! The commands that concern other devices: what is shared, over which hubs, with whom.

use super::{CommandInfo, Form, Line, arg, line, window};

pub(super) const SHARING: &[CommandInfo] = &[
    CommandInfo {
        id: "sync.status",
        title: "Sync",
        help: "Show what is shared with other devices over which hubs, and how far all of it has got.",
        keys: &["Ctrl+Alt+S"],
        window: true,
        line: Some(Line {
            name: "sync",
            args: &[
                arg("WHAT", Form::Needed, "status, log, merges, share, join, leave, pause, resume, retry or now"),
                arg(
                    "NAME",
                    Form::Optional,
                    "for `share` and `leave`: the volume; for `join`: a volume's address; for `status`: a note; for \
                     `merges`: the number of one, to see the note before and after",
                ),
                arg(
                    "PLACE",
                    Form::Optional,
                    "for `share`: the hub's address (ws://host:port); for `join`: an empty folder",
                ),
                arg(
                    "for",
                    Form::Value,
                    "wait at most this many seconds for all of it (`join`, `now`); 60 when left out",
                ),
            ],
        }),
    },
    window("sync.merges", "What other devices changed", &[], "Show notes before and after edits of other devices."),
    window("sync.log", "Log of sync", &[], "Show what sync did, in plain words, newest first."),
    window("sync.pause", "Pause sync, or go on", &[], "Send and receive nothing for now; again: go on."),
    window("sync.retry", "Call hubs now", &[], "Try hubs that are not there at once, not only by and by."),
    window("sync.share", "Share this volume…", &[], "Share the open note's volume with other devices over a hub."),
    window("sync.join", "Get a shared volume…", &[], "Get a volume that another device shares, by its address."),
    CommandInfo {
        id: "sync.devices",
        title: "Devices",
        help: "List the devices that were paired, rename one, or revoke one: it is cut off within a second, and what \
               it has received stays on it.",
        keys: &[],
        window: true,
        line: Some(Line {
            name: "devices",
            args: &[
                arg("WHAT", Form::Optional, "list (when left out), revoke, name or access"),
                arg("DEVICE", Form::Optional, "a device: its name, or the beginning of its key; `this` for this one"),
                arg("NAME", Form::Optional, "the new name; for `access` none, read or write"),
                arg("hub", Form::Value, "the list of the hub over this folder instead of this machine's own"),
            ],
        }),
    },
    line(
        "sync.pair",
        "Pair a device",
        "pair",
        &[
            arg("WHERE", Form::Optional, "what a QR code says, or a hub's address; without it a code is shown here"),
            arg("code", Form::Value, "the code that the other one shows; alone, it is looked for on the local network"),
            arg("name", Form::Value, "how this device is called; its host name when left out"),
            arg("local", Form::Flag, "only for devices on this machine: nothing is announced on the network"),
        ],
        "Make this device acquainted with another one or with a hub, by a code of eight digits that is used once.",
    ),
    line(
        "sync.hub",
        "Hub",
        "hub",
        &[
            arg("WHAT", Form::Optional, "run (when left out), invite or share"),
            arg("VOLUME", Form::Optional, "for `share`: a volume's id, or `all`; without it what is shared is listed"),
            arg("ACCESS", Form::Optional, "for `share`: none, read or write"),
            arg("device", Form::Value, "for `share`: only with this device"),
            arg("folder", Form::Value, "the hub's folder; `hub` in the workspace when left out"),
            arg("listen", Form::Value, "ADDRESS:PORT; 127.0.0.1:7600 when left out"),
            arg("address", Form::Value, "how devices reach it, as wss://HOST:PORT, where that is another address"),
            arg("name", Form::Value, "how the hub is called"),
            arg("tls", Form::Flag, "TLS also on this machine; anywhere else it is always on"),
            arg("certificate", Form::Value, "a certificate (PEM) instead of the one that the hub makes for itself"),
            arg("key", Form::Value, "its key (PEM)"),
            arg("open", Form::Value, "let in programs with automerge-repo that are no devices: local, or token"),
            arg("store", Form::Value, "sqlite (when left out), or nats://HOST:PORT, several with commas"),
            arg("quota", Form::Value, "megabytes that one device may store"),
            arg("rate", Form::Value, "messages a second from one connection; 10000 when left out"),
            arg("largest", Form::Value, "megabytes of a message at most; 64 when left out"),
            arg("connections", Form::Value, "connections at once; 10000 when left out"),
            arg("pair", Form::Flag, "show a code for a device at the start; the first start always does"),
            arg("admin", Form::Flag, "for `invite`: the device may change the list of devices"),
            arg("access", Form::Value, "for `invite`: the most that the device may do: none, read or write"),
        ],
        "Run a hub: a peer that always listens and keeps what it hears, for automerge-repo's protocol over WebSocket. \
         `invite` shows a code for one more device, `share` says who may do what with a volume.",
    ),
];
