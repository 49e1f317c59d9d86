//! Command-line arguments of the commands for notes and search.

use super::{ArgumentForm, CommandArgument, NOTE_ARGUMENT, command_argument};

/// Arguments of `tracebook search`.
pub(super) const SEARCH: &[CommandArgument] = &[
    command_argument(
        "QUERY",
        ArgumentForm::Needed,
        "words, \"phrases\", -not, OR, tag: path: title: in:code|output|prose|run|memory lang: by: before: \
         after: is:todo|done, begin*",
    ),
    command_argument("limit", ArgumentForm::Value, "at most this many notes; 10 when left out"),
    command_argument("explain", ArgumentForm::Flag, "with the parts of each score"),
    command_argument("nearest", ArgumentForm::Flag, "also what is nearest where nothing fits"),
    command_argument("volume", ArgumentForm::Value, "only in this volume"),
];

/// Arguments of `tracebook run`.
pub(super) const RUN: &[CommandArgument] = &[
    NOTE_ARGUMENT,
    command_argument("cell", ArgumentForm::Value, "only this cell, counted from 1; all in order when left out"),
    command_argument(
        "timeout",
        ArgumentForm::Value,
        "stop a cell after this many seconds (30, or what the cell's first line says); 0: never",
    ),
    command_argument(
        "kernel",
        ArgumentForm::Value,
        "instant, science, env, or a Jupyter kernel, which runs with your rights, outside of the sandbox",
    ),
    command_argument("stale", ArgumentForm::Flag, "only what is stale, and what that needs"),
    command_argument("clean", ArgumentForm::Flag, "in a fresh kernel, and say whether the results are the same"),
    command_argument("stop", ArgumentForm::Flag, "interrupt what runs in the note"),
    command_argument(
        "save",
        ArgumentForm::Value,
        "a new folder for pictures, tables and pages of the cells; data frames are saved with all their rows",
    ),
];

/// Arguments of `tracebook attachments`.
pub(super) const ATTACHMENTS: &[CommandArgument] = &[
    command_argument(
        "ACTION",
        ArgumentForm::Optional,
        "list, get, put or remove; list when left out. `put` reads standard input",
    ),
    command_argument("PATH", ArgumentForm::Optional, "the attachment: its path in the volume, or VOLUME:PATH"),
    command_argument("volume", ArgumentForm::Value, "the volume; with put, the first one when left out"),
    command_argument("from", ArgumentForm::Value, "with get: begin at this byte"),
    command_argument("length", ArgumentForm::Value, "with get: at most this many bytes"),
    command_argument(
        "if-version",
        ArgumentForm::Value,
        "only if the attachment has this version, as `get --json` prints it; with put, it's replaced",
    ),
];

/// Arguments of `tracebook export`.
pub(super) const EXPORT: &[CommandArgument] = &[
    command_argument("NOTE_OR_VOLUME", ArgumentForm::Needed, "what to export"),
    command_argument(
        "DEST",
        ArgumentForm::Needed,
        "a new file or folder; its ending (.html, .pdf, .ipynb, .py) says what a note becomes; `-` with --fragment",
    ),
    command_argument(
        "to",
        ArgumentForm::Value,
        "the form: html, pdf, ipynb, py or md; by the ending of DEST when left out",
    ),
    command_argument(
        "html",
        ArgumentForm::Flag,
        "pages for a browser instead of the files themselves; the same as --to html",
    ),
    command_argument("paper", ArgumentForm::Value, "for pdf: a4, as without it, or letter"),
    command_argument(
        "fragment",
        ArgumentForm::Value,
        "print what the note shows as HTML for a page of a server; links to files begin with this address",
    ),
];

/// Arguments of `tracebook index`.
pub(super) const INDEX: &[CommandArgument] = &[
    command_argument(
        "WHAT",
        ArgumentForm::Needed,
        "status, rebuild, verify, models, use, reranker, exclude, include, pause or resume",
    ),
    command_argument(
        "NAME",
        ArgumentForm::Optional,
        "for `use`: embedded, fastembed:NAME, folder:PATH or URL#MODEL; for `reranker`: \
         its name, or none; for `exclude`, `include`: a folder",
    ),
];
