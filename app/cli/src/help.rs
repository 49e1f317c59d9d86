//! Output of `tracebook --help` and `help --all`: subcommands by subject, each with a summary and two examples.

/// Help entry of a subcommand.
pub(crate) struct SubcommandHelp {
    /// The word after `tracebook`.
    pub(crate) name: &'static str,
    /// One-line summary.
    pub(crate) summary: &'static str,
    /// Two example command lines, without `tracebook`.
    pub(crate) examples: [&'static str; 2],
}

const fn entry(name: &'static str, summary: &'static str, examples: [&'static str; 2]) -> SubcommandHelp {
    SubcommandHelp { name, summary, examples }
}

/// Subcommands by subject, in the order shown in help.
pub(crate) const HELP_GROUPS: &[(&str, &[SubcommandHelp])] = &[
    (
        "Notes",
        &[
            entry("open", "Open a folder of Markdown files as a volume", ["open ~/notes", "open ."]),
            entry(
                "volumes",
                "List, add, set up or trust volumes",
                ["volumes", "volumes add Team --remote ada/notes --kind team"],
            ),
            entry("ls", "List notes and attachments", ["ls", "ls --json"]),
            entry(
                "attachments",
                "List, print, write or delete attachments",
                ["attachments --volume notes", "attachments get Pictures/boat.png > boat.png"],
            ),
            entry("new", "Create a note", ["new Ideas/Boat", "new Log --text \"First line\""]),
            entry("capture", "Add a line to today's note", ["capture \"Call Ada\"", "capture - < idea.txt"]),
            entry("cat", "Print a note", ["cat Ideas/Boat.md", "cat notes:Log.md"]),
            entry(
                "edit",
                "Edit a note with JSON lines",
                ["edit Log.md < edits.jsonl", "edit notes:Log.md < edits.jsonl"],
            ),
            entry("mv", "Move or rename a note or folder", ["mv Boat.md Ideas/Boat.md", "mv Old/ Archive/"]),
            entry(
                "cp",
                "Copy a note, or a file of System to change it",
                ["cp system/agents/qa.md", "cp Boat.md Ideas/Boat.md"],
            ),
            entry("rm", "Move a note to the trash", ["rm Boat.md", "rm notes:Boat.md"]),
            entry("trash", "List or empty the trash", ["trash", "trash --empty"]),
            entry(
                "restore-note",
                "Restore a note from the trash",
                ["restore-note Boat.md", "restore-note Boat.md Old/Boat.md"],
            ),
            entry("undo", "Undo the last rename, move or deletion", ["undo", "undo --json"]),
            entry("follow", "Update links to files that others renamed", ["follow", "follow --json"]),
            entry(
                "history",
                "Show or restore earlier versions of a note",
                ["history Log.md", "history Log.md --at 3 --diff"],
            ),
            entry("links", "List a note's links and backlinks", ["links Log.md", "links Log.md --json"]),
            entry("todos", "List tasks of all notes by day", ["todos", "todos --words boat"]),
            entry("base", "Print a collection as a table", ["base Books.base", "base Books.base --view Unread"]),
            entry(
                "import",
                "Copy files or notebooks into a volume",
                ["import analysis.ipynb", "import ~/old --volume notes"],
            ),
            entry(
                "export",
                "Export a note or volume (HTML, PDF, ipynb, py, md)",
                ["export Log.md Log.html", "export notes site --html"],
            ),
        ],
    ),
    (
        "Cells",
        &[
            entry("run", "Run a note's cells", ["run Report.md", "run Report.md --cell 2"]),
            entry(
                "outputs",
                "Print or save the outputs of cells",
                ["outputs Report.md", "outputs Report.md --save plots"],
            ),
            entry(
                "cells",
                "List cells and what is out of date",
                ["cells Report.md", "cells Report.md --mode automatic"],
            ),
            entry(
                "kernels",
                "Choose what runs a note's cells",
                ["kernels install science", "kernels env Report.md --add polars"],
            ),
            entry(
                "grant",
                "Let cells use more folders or the network",
                ["grant Report.md --read ~/data", "grant Report.md --none"],
            ),
        ],
    ),
    (
        "Search",
        &[
            entry(
                "search",
                "Find notes, code and outputs",
                ["search \"solar panel\"", "search \"in:code pandas\" --limit 5"],
            ),
            entry("related", "List notes near in meaning", ["related Log.md", "related Log.md --json"]),
            entry("searches", "List or save searches", ["searches", "searches boats \"tag:boat\""]),
            entry("index", "Check or rebuild the search index", ["index status", "index rebuild"]),
        ],
    ),
    (
        "Agents",
        &[
            entry(
                "ask",
                "Let an agent work in a project",
                ["ask \"Summarize this week\"", "ask \"Fix the test\" --budget 0.50"],
            ),
            entry("approvals", "List and decide what agents ask for", ["approvals", "approvals 1 --allow"]),
            entry("runs", "List, stop, resume or undo runs", ["runs", "runs last --undo"]),
            entry("forks", "Adopt what agents did in copies", ["forks show try-1", "forks adopt try-1"]),
            entry("steps", "Print the steps of a run", ["steps last", "steps last --json"]),
            entry("sessions", "List sessions or show one", ["sessions", "sessions 3f2a --export md"]),
            entry("tasks", "Plan tasks and let agents do them", ["tasks list", "tasks add \"Write the README\""]),
            entry("schedule", "Start work at set times", ["schedule", "schedule due"]),
            entry(
                "events",
                "Print what happens, as it happens",
                ["events --follow --filter \"FILE_CHANGED: Inbox/*\"", "events --publish custom.deployed"],
            ),
            entry("memory", "Browse or change what agents remember", ["memory", "memory log"]),
            entry("traces", "List work that repeats without a model", ["traces", "traces show weekly-report"]),
            entry("budget", "Show what was spent and what is left", ["budget", "budget --by project"]),
            entry("tools", "List and approve tools", ["tools", "tools shell"]),
            entry(
                "components",
                "List and approve components of agents",
                ["components", "components my-chart --approve"],
            ),
            entry(
                "packages",
                "Add, update and publish packages",
                ["packages add ./sail-kit", "packages publish ./sail-kit --to ./index"],
            ),
            entry(
                "providers",
                "List, test and add language models",
                ["providers test ollama", "providers add openrouter --key-stdin < key.txt"],
            ),
            entry("secrets", "Keep API keys", ["secrets list", "secrets set OPENAI_API_KEY < key.txt"]),
        ],
    ),
    (
        "Sync",
        &[
            entry(
                "sync",
                "Show sync status, share or join volumes",
                ["sync status", "sync share notes wss://host:7600"],
            ),
            entry("pair", "Pair this device with another", ["pair", "pair wss://host:7600 --code 12345678"]),
            entry("devices", "List, rename or revoke devices", ["devices", "devices revoke laptop"]),
            entry("hub", "Run a sync server", ["hub", "hub invite"]),
            entry("worker", "Carry out runs of other devices", ["worker --for laptop", "worker list"]),
        ],
    ),
    (
        "Programs",
        &[
            entry("mcp", "Let coding agents use the notes", ["mcp install claude-code", "mcp --allow-write"]),
            entry("acp", "Use the agents in an editor", ["acp --workspace ~/w", "acp"]),
            entry("serve", "Use the notes on a phone, or over HTTP", ["serve", "serve --listen 127.0.0.1:7611"]),
            entry(
                "tokens",
                "Create, list or revoke access tokens",
                ["tokens create phone --scopes read,write", "tokens revoke phone"],
            ),
        ],
    ),
    (
        "Git",
        &[entry("git", "See, commit, push and pull changes; clone", ["git status", "git clone ada/notes ~/notes"])],
    ),
    (
        "Maintenance",
        &[
            entry("init", "Create a workspace", ["init --workspace ~/w", "init"]),
            entry("doctor", "Show what this machine offers", ["doctor", "doctor --report bug.tar.gz"]),
            entry("fsck", "Check and repair the workspace", ["fsck", "fsck --check"]),
            entry("backup", "Back up the workspace", ["backup /mnt/usb/tracebook", "backup ~/backup-1"]),
            entry(
                "restore",
                "Restore a workspace from a backup",
                ["restore ~/backup-1 --workspace ~/w", "restore ~/backup-1"],
            ),
            entry("update", "Look for a newer version", ["update --check", "update --check --json"]),
            entry("bench", "Run benchmarks", ["bench edit", "bench open --json"]),
            entry(
                "screenshots",
                "Make pictures of the window",
                ["screenshots pictures", "screenshots pictures --scale 1"],
            ),
            entry("completions", "Print shell completions", ["completions bash", "completions zsh"]),
            entry("man", "Print the manual page", ["man > tracebook.1", "man | man -l -"]),
        ],
    ),
];

const HELP_HEAD: &str = "A notebook that remembers: notes, tasks and Python cells in plain Markdown files

Usage: tracebook [OPTIONS] [COMMAND | FOLDER | NOTE.md]

Without a command, the window opens. With the path of a folder or a note, it
opens on that.
";

const HELP_END: &str = "
Options:
  --workspace <DIR>  Use this workspace instead of the one in your data folder
  --json             Print JSON, for programs
  --safe             Open the window without tabs, cells, runs and schedules
  -h, --help         Print help in short
  -V, --version      Print version

Examples:
  tracebook open ~/notes
  tracebook run Report.md
  tracebook help search

Exit codes:
  0  done
  1  a cell or a check failed
  2  wrong use: words, names or input that do not fit
  3  the workspace is damaged, locked or cannot be written
";

/// Returns the help entry of a subcommand.
pub(crate) fn subcommand_help(name: &str) -> Option<&'static SubcommandHelp> {
    HELP_GROUPS.iter().flat_map(|(_, entries)| *entries).find(|entry| entry.name == name)
}

/// Returns all subcommands by subject, one per line, with the options and exit codes.
pub(crate) fn full_help() -> String {
    let mut text = HELP_HEAD.to_owned();
    for (group, entries) in HELP_GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        for entry in *entries {
            text.push_str(&format!("  {:<13} {}\n", entry.name, entry.summary));
        }
    }
    text.push_str("\n  tracebook help COMMAND explains one of them.\n");
    text + HELP_END
}

/// Returns whether `help --all` is given, with or without global options.
pub(crate) fn is_full_help(words: &[String]) -> bool {
    let mut rest = words.iter().map(String::as_str);
    let (mut is_help, mut has_all) = (false, false);
    while let Some(word) = rest.next() {
        match word {
            "help" | "--help" | "-h" => is_help = true,
            "--all" => has_all = true,
            "--workspace" => _ = rest.next(),
            word if word == "--json" || word.starts_with("--workspace=") => {}
            _ => return false,
        }
    }
    is_help && has_all
}

/// Returns the names of the subcommands by subject, which fits 24 rows.
pub(crate) fn short_help() -> String {
    let mut text = HELP_HEAD.to_owned() + "\n";
    for (group, entries) in HELP_GROUPS {
        let mut line = format!("  {group:<12}");
        for entry in *entries {
            if line.len() + entry.name.len() + 1 > 80 {
                text.push_str(line.trim_end());
                text.push('\n');
                line = " ".repeat(14);
            }
            line.push(' ');
            line.push_str(entry.name);
        }
        text.push_str(&line);
        text.push('\n');
    }
    text + "\n  tracebook help --all lists everything; tracebook help COMMAND explains one.\n"
}

/// Returns the two examples of a subcommand, for the end of its help.
pub(crate) fn examples(name: &str) -> String {
    let Some(entry) = subcommand_help(name) else { return String::new() };
    let lines = entry.examples.map(|example| format!("  tracebook {example}"));
    format!("Examples:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::commands::COMMANDS;

    #[test]
    fn every_subcommand_has_a_line_and_two_examples_that_parse() {
        let mut listed: Vec<&str> = HELP_GROUPS.iter().flat_map(|(_, all)| *all).map(|entry| entry.name).collect();
        let mut table: Vec<&str> =
            COMMANDS.iter().filter_map(|command| command.line.as_ref()).map(|line| line.name).collect();
        listed.sort_unstable();
        table.sort_unstable();
        assert_eq!(listed, table);
        for entry in HELP_GROUPS.iter().flat_map(|(_, all)| *all) {
            assert!(entry.summary.len() <= 52, "{} is too long", entry.summary);
            for example in entry.examples {
                let command = example.split([';', '|', '<', '>']).next().unwrap_or_default();
                let quoted = command.split('"').enumerate();
                let words: Vec<String> = quoted
                    .flat_map(|(at, part)| match at % 2 {
                        0 => part.split_whitespace().map(str::to_owned).collect(),
                        _ => vec![part.to_owned()],
                    })
                    .collect();
                if let Err(error) = crate::parse::parse(&words) {
                    panic!("{example}: {error}");
                }
                if entry.name == "bench" {
                    let line =
                        COMMANDS.iter().filter_map(|command| command.line.as_ref()).find(|line| line.name == "bench");
                    let what = line.and_then(|line| line.args.first()).expect("what is measured").help;
                    assert!(what.split([' ', ',']).any(|known| known == words[1]), "{example}");
                }
            }
        }
        assert!(full_help().lines().chain(short_help().lines()).all(|line| line.chars().count() <= 80));
        assert!(short_help().lines().count() <= 24);
    }
}
