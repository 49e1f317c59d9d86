//! The command line's grammar, completions and manual, built from one command table.

use super::arguments::CompletionsArguments;
use super::{CliError, EXIT_DONE, EXIT_FAILED, EXIT_USAGE, help};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::commands::{ArgumentForm, COMMANDS};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What stands between revisions and files of `git log` and `git diff`.
pub(super) const PATH_MARK: &str = "--";

/// Arguments that name a file or folder, in any subcommand that has them.
const PATH_ARGUMENTS: [&str; 14] = [
    "BACKUP",
    "DEST",
    "DIR",
    "FOLDER",
    "PATH",
    "certificate",
    "folder",
    "hub",
    "interpreter",
    "key",
    "read",
    "save",
    "workspace",
    "write",
];

/// Returns the grammar for clap, with a line about each subcommand.
pub fn build_grammar() -> Command {
    grammar_with(|line, _| line)
}

/// Returns the grammar for clap. `about` chooses what is said of a subcommand: its line, or its whole text. That isn't
/// clap's long help, which puts an empty line between all options.
fn grammar_with(about: fn(&'static str, &'static str) -> &'static str) -> Command {
    let mut grammar = Command::new("tracebook")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A notebook that remembers: notes, tasks and Python cells in plain Markdown files")
        .override_help(help::short_help())
        .arg(
            Arg::new("workspace")
                .long("workspace")
                .value_name("DIR")
                .global(true)
                .help("Use this workspace instead of the one in your data folder"),
        )
        .arg(Arg::new("json").long("json").global(true).action(ArgAction::SetTrue).help("Print JSON, for programs"))
        .arg(
            Arg::new("safe")
                .long("safe")
                .action(ArgAction::SetTrue)
                .help("Open the window without tabs, cells, runs and schedules"),
        );
    for command in COMMANDS {
        let Some(line) = &command.line else { continue };
        let summary = help::subcommand_help(line.name).map_or(command.help, |entry| entry.summary);
        let mut words = Command::new(line.name).about(about(summary, command.help));
        words = words.after_help(help::examples(line.name));
        for arg in line.args {
            let made = Arg::new(arg.name).help(arg.help);
            words = words.arg(match arg.form {
                ArgumentForm::Needed => made.required(true),
                ArgumentForm::Optional => made,
                ArgumentForm::Many => made.required(true).num_args(1..),
                ArgumentForm::Rest => made.num_args(0..),
                ArgumentForm::Values => {
                    made.long(arg.name).value_name(arg.name.to_uppercase()).action(ArgAction::Append)
                }
                // As `git commit -m` has it.
                ArgumentForm::Value if arg.name == "message" => made.long(arg.name).short('m').value_name("MESSAGE"),
                ArgumentForm::Value => made.long(arg.name).value_name(arg.name.to_uppercase()),
                ArgumentForm::OptionalValue => {
                    made.long(arg.name).value_name(arg.name.to_uppercase()).num_args(0..=1).default_missing_value("")
                }
                ArgumentForm::Flag => made.long(arg.name).action(ArgAction::SetTrue),
            });
        }
        grammar = grammar.subcommand(words);
    }
    // The kernel subcommand speaks a protocol and isn't meant for users.
    grammar.subcommand(Command::new("kernel").hide(true).about("Run cells (started by Tracebook itself)"))
}

/// Parses the arguments after `tracebook`.
pub(super) fn parse(words: &[String]) -> Result<ArgMatches, clap::Error> {
    let mut words = words.to_vec();
    if let Some(mark) = path_mark(&words) {
        // clap takes one of them.
        words.insert(mark, PATH_MARK.to_owned());
    }
    parse_words(&words)
}

fn parse_words(words: &[String]) -> Result<ArgMatches, clap::Error> {
    let grammar = grammar_with(|_, text| text);
    grammar.try_get_matches_from(std::iter::once("tracebook".to_owned()).chain(words.iter().cloned()))
}

/// Returns where the `--` of `git log` and `git diff` is, which stands between revisions and files. For other commands,
/// it only ends the options.
fn path_mark(words: &[String]) -> Option<usize> {
    let mark = words.iter().position(|word| word == PATH_MARK)?;
    let before = words[..mark].iter().any(|word| word == "git").then(|| parse_words(&words[..mark]).ok())??;
    let (_, args) = before.subcommand().filter(|(name, _)| *name == "git")?;
    let verb = args.get_one::<String>("VERB")?;
    matches!(verb.as_str(), "log" | "diff").then_some(mark)
}

/// Parses the arguments like [`parse`], but also accepts the path of a folder or file, to open in the window, instead
/// of a subcommand.
pub(super) fn parse_with_path(words: &[String], here: &Path) -> Result<(ArgMatches, Option<PathBuf>), clap::Error> {
    let error = match parse(words) {
        Ok(matches) => return Ok((matches, None)),
        Err(error) => error,
    };
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else { return Err(error) };
    let path = here.join(unknown);
    if !path.exists() {
        if unknown.contains(['/', '\\']) || unknown.ends_with(".md") {
            let missing = format!("there's no folder or note at {unknown}");
            return Err(build_grammar().error(ErrorKind::InvalidValue, missing));
        }
        return Err(error);
    }
    // The same word may also occur as the value of an option.
    let without =
        |at: usize| words.iter().enumerate().filter(move |(place, _)| *place != at).map(|(_, word)| word.clone());
    let places = (0..words.len()).filter(|at| words[*at] == *unknown);
    let rest = places.map(|at| parse(&without(at).collect::<Vec<_>>())).find_map(Result::ok);
    match rest.filter(|matches| matches.subcommand().is_none()) {
        Some(matches) => Ok((matches, Some(path))),
        None => Err(error),
    }
}

/// Returns an argument's value, or a usage error if this action needs it and it's missing.
pub(super) fn needed<'a>(value: Option<&'a str>, name: &str) -> Result<&'a str, CliError> {
    value.ok_or_else(|| CliError::usage(format!("{name} is missing; add `--help` to see what the command needs")))
}

/// Refuses an empty path, which is what a script gives whose variable isn't set: the current folder would be taken.
pub(super) fn refuse_empty_paths(args: &ArgMatches) -> Result<(), CliError> {
    for id in args.ids().map(clap::Id::as_str) {
        if !PATH_ARGUMENTS.contains(&id) {
            continue;
        }
        let Ok(Some(mut given)) = args.try_get_many::<String>(id) else { continue };
        if given.any(String::is_empty) {
            let option = if id.starts_with(char::is_lowercase) { "--" } else { "" };
            return Err(CliError::usage(format!("{option}{id} is empty; name a file or folder")));
        }
    }
    Ok(())
}

/// Says that a subcommand has no such action, which ones it has, and which one may be meant.
pub(super) fn unknown_action(command: &str, actions: &[&str], word: &str) -> CliError {
    let near = agent::name_suggestions::closest_names(word, actions.iter().copied());
    let hint = near.first().map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let (last, others) = actions.split_last().unwrap_or((&"", &[]));
    let others = others.join(", ");
    CliError::usage(format!("`tracebook {command}` takes {others} or {last}, not “{word}”{hint}"))
}

/// Reads standard input as text of at most `most` bytes. Longer text is refused, because a part of it would be taken
/// for the whole.
pub(super) fn read_text_input(input: &mut dyn Read, most: u64) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    input.take(most + 1).read_to_end(&mut bytes).map_err(|error| CliError {
        code: EXIT_FAILED,
        why: format!("standard input can't be read ({})", store::disk::io_reason(&error)),
    })?;
    if bytes.len() as u64 > most {
        let size = if most < 1 << 20 { format!("{} KB", most >> 10) } else { format!("{} MB", most >> 20) };
        return Err(CliError::usage(format!("standard input has more than {size}, which is too much; shorten it")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::usage(format!("standard input is not UTF-8 text (at byte {at}); convert it to UTF-8 first"))
    })
}

/// Parses the value of an option as a number.
pub fn number_option(name: &str, value: Option<&str>) -> Result<Option<u64>, CliError> {
    let Some(text) = value else { return Ok(None) };
    text.parse().map(Some).map_err(|_| CliError::usage(format!("--{name} wants a whole number, not “{text}”")))
}

pub(super) fn cmd_completions(args: &CompletionsArguments, out: &mut dyn Write) -> Result<u8, CliError> {
    let shell = args.shell.as_str();
    let shell: clap_complete::Shell = shell.parse().map_err(|_| CliError {
        code: EXIT_USAGE,
        why: format!("no completions for “{shell}”: bash, zsh, fish, elvish, powershell"),
    })?;
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut build_grammar(), "tracebook", &mut text);
    out.write_all(&text)?;
    Ok(EXIT_DONE)
}

pub(super) fn cmd_man(out: &mut dyn Write) -> Result<u8, CliError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(build_grammar()).render(&mut page)?;
    // clap_mangen lists only the commands; the arguments of each are appended in the same format.
    for command in build_grammar().get_subcommands().filter(|command| !command.is_hide_set()) {
        let mut one = Vec::new();
        let man = clap_mangen::Man::new(command.clone());
        writeln!(page, ".SH \"{}\"", command.get_name().to_uppercase())?;
        man.render_synopsis_section(&mut one)?;
        man.render_options_section(&mut one)?;
        let one =
            String::from_utf8_lossy(&one).replace(".SH SYNOPSIS", ".SS Synopsis").replace(".SH OPTIONS", ".SS Options");
        page.extend(one.into_bytes());
    }
    // groff reads its input as Latin-1 by default: other characters are written as escapes.
    let mut plain = String::with_capacity(page.len());
    for letter in String::from_utf8_lossy(&page).chars() {
        match letter.is_ascii() {
            true => plain.push(letter),
            false => plain.push_str(&format!("\\[u{:04X}]", u32::from(letter))),
        }
    }
    out.write_all(plain.as_bytes())?;
    Ok(EXIT_DONE)
}
