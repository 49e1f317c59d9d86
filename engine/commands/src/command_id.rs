//! Identifiers of commands, generated from the rows of the table, so that a misspelled one doesn't compile.

/// Expands to the text of a row's identifier.
macro_rules! command_text {
    (( $text:literal, $($rest:tt)* )) => {
        $text
    };
    ({ id: $text:literal, $($rest:tt)* }) => {
        $text
    };
}

/// Expands to a row as a [`CommandInfo`](super::CommandInfo).
macro_rules! command_info {
    ($id:ident $maker:ident ( $text:literal, $($rest:tt)* )) => {
        $maker(CommandId::$id, $($rest)*)
    };
    ($id:ident $maker:ident { id: $text:literal, $($rest:tt)* }) => {
        $maker { id: CommandId::$id, $($rest)* }
    };
}

/// Generates [`CommandId`](super::CommandId) and [`COMMANDS`](super::COMMANDS) from rows of these forms:
///
/// - `Name = window("area.verb", …)`
/// - `Name = line("area.verb", …)`
/// - `Name = CommandInfo { id: "area.verb", … }`
macro_rules! command_table {
    ($($id:ident = $maker:ident $row:tt),* $(,)?) => {
        /// Identifies a command. Settings, the command line and files use its text form.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CommandId {
            $(#[doc = concat!("`", command_text!($row), "`")] $id,)*
        }

        impl CommandId {
            /// Returns the id used in settings and files: `area.verb`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(CommandId::$id => command_text!($row),)*
                }
            }
        }

        /// All commands, in the order of [`CommandId`].
        pub const COMMANDS: &[CommandInfo] = &[$(command_info!($id $maker $row),)*];
    };
}

pub(super) use {command_info, command_table, command_text};

use super::{COMMANDS, CommandId, CommandInfo};
use std::fmt;
use std::str::FromStr;

impl CommandId {
    /// Returns title, help, keys and scope of the command.
    pub fn info(self) -> &'static CommandInfo {
        &COMMANDS[self as usize]
    }

    /// Returns the command's title in the menu and the palette.
    pub fn title(self) -> &'static str {
        self.info().title
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Error for a text that isn't the id of a command in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCommand;

impl fmt::Display for UnknownCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("this version has no such command")
    }
}

impl std::error::Error for UnknownCommand {}

impl FromStr for CommandId {
    type Err = UnknownCommand;

    fn from_str(text: &str) -> Result<CommandId, UnknownCommand> {
        COMMANDS.iter().map(|info| info.id).find(|id| id.as_str() == text).ok_or(UnknownCommand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_and_key_stands_once() {
        let ids: BTreeSet<_> = COMMANDS.iter().map(|command| command.id.as_str()).collect();
        assert_eq!(ids.len(), COMMANDS.len());
        let keys: Vec<_> = COMMANDS.iter().flat_map(|command| command.keys).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        let lines: Vec<_> = COMMANDS.iter().filter_map(|command| command.line.as_ref()).map(|line| line.name).collect();
        assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len());
        assert!(COMMANDS.iter().all(|command| command.window || command.line.is_some()));
    }

    #[test]
    fn every_id_leads_to_its_row_and_is_read_back() {
        for info in COMMANDS {
            assert_eq!(info.id.info().id, info.id);
            assert_eq!(info.id.to_string().parse(), Ok(info.id));
        }
        assert_eq!("view.nothing".parse::<CommandId>(), Err(UnknownCommand));
        assert_eq!(CommandId::ViewLocalGraph.title(), "Graph around this note");
    }
}
