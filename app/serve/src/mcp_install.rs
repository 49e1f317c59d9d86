//! Configuration of programs that start the MCP server: where it is, and what it is with Tracebook in it.
//!
//! These files have comments and an order that their users care about. So only the entry of Tracebook is written; every
//! other byte stays.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The name of the entry in every configuration.
const ENTRY_NAME: &str = "tracebook";
/// Maximum depth of nested values in a configuration.
const MAX_DEPTH: usize = 128;

/// A program that can start an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpClientProgram {
    /// Claude Code, for all projects of the user.
    ClaudeCode,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Zed.
    Zed,
    /// Visual Studio Code.
    VsCode,
    /// Cursor.
    Cursor,
}

/// Folders in which programs keep their configuration.
#[derive(Clone, Debug)]
pub struct ConfigFolders {
    /// The user's home folder.
    pub home: PathBuf,
    /// The folder for configuration, such as `~/.config`.
    pub config: PathBuf,
}

/// Why a configuration could not be changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpInstallError {
    /// The text isn't JSON, with or without comments.
    #[error("it isn't JSON at byte {at}: {why}")]
    NotJson {
        /// Byte offset of the error.
        at: usize,
        /// The error at that offset.
        why: &'static str,
    },
    /// The key of MCP servers has another kind of value.
    #[error("`{0}` in it is not an object")]
    NotAnObject(&'static str),
}

impl McpClientProgram {
    /// All programs.
    pub const ALL: [McpClientProgram; 6] = [
        McpClientProgram::ClaudeCode,
        McpClientProgram::Opencode,
        McpClientProgram::Gemini,
        McpClientProgram::Zed,
        McpClientProgram::VsCode,
        McpClientProgram::Cursor,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            McpClientProgram::ClaudeCode => "claude-code",
            McpClientProgram::Opencode => "opencode",
            McpClientProgram::Gemini => "gemini",
            McpClientProgram::Zed => "zed",
            McpClientProgram::VsCode => "vscode",
            McpClientProgram::Cursor => "cursor",
        }
    }

    /// Returns the program with this name.
    pub fn from_name(name: &str) -> Option<McpClientProgram> {
        McpClientProgram::ALL.into_iter().find(|client| client.name() == name)
    }

    /// Returns the path of the user's configuration.
    pub fn config_path(self, folders: &ConfigFolders) -> PathBuf {
        match self {
            McpClientProgram::ClaudeCode => folders.home.join(".claude.json"),
            McpClientProgram::Opencode => folders.config.join("opencode").join("opencode.json"),
            McpClientProgram::Gemini => folders.home.join(".gemini").join("settings.json"),
            McpClientProgram::Zed => folders.config.join("zed").join("settings.json"),
            McpClientProgram::VsCode => folders.config.join("Code").join("User").join("mcp.json"),
            McpClientProgram::Cursor => folders.home.join(".cursor").join("mcp.json"),
        }
    }

    /// Returns the key under which the program lists its servers.
    fn servers_key(self) -> &'static str {
        match self {
            McpClientProgram::ClaudeCode | McpClientProgram::Gemini | McpClientProgram::Cursor => "mcpServers",
            McpClientProgram::Opencode => "mcp",
            McpClientProgram::Zed => "context_servers",
            McpClientProgram::VsCode => "servers",
        }
    }

    /// Returns the entry that makes the program start `program` with these arguments.
    fn entry(self, program: &Path, arguments: &[String]) -> Value {
        let program = program.to_string_lossy();
        match self {
            McpClientProgram::ClaudeCode | McpClientProgram::VsCode => {
                json!({"type": "stdio", "command": program, "args": arguments})
            }
            McpClientProgram::Gemini | McpClientProgram::Cursor => json!({"command": program, "args": arguments}),
            McpClientProgram::Zed => json!({"source": "custom", "command": program, "args": arguments, "env": {}}),
            McpClientProgram::Opencode => {
                let whole: Vec<&str> = std::iter::once(&*program).chain(arguments.iter().map(String::as_str)).collect();
                json!({"type": "local", "command": whole, "enabled": true})
            }
        }
    }

    /// Returns the configuration `old` with the entry in it; everything else stays as it is.
    ///
    /// # Errors
    /// Returns an error if `old` can't be read as JSON with comments, or has something else in the entry's place.
    pub fn with_entry(self, old: &str, program: &Path, arguments: &[String]) -> Result<String, McpInstallError> {
        let key = self.servers_key();
        let entry = self.entry(program, arguments);
        if old.trim().is_empty() {
            let whole = json!({key: {ENTRY_NAME: entry}});
            return Ok(format!("{whole:#}\n"));
        }
        let top = JsonScanner { text: old, at: 0 }.top_object()?;
        let Some(servers) = top.value_of(old, key) else {
            let indented = format!("{:#}", json!({ENTRY_NAME: entry})).replace('\n', "\n  ");
            return Ok(inserted(old, &top, &format!("\n  {}: {indented}", json!(key))));
        };
        if old.as_bytes().get(servers.0) != Some(&b'{') {
            return Err(McpInstallError::NotAnObject(key));
        }
        let inner = JsonScanner { text: old, at: servers.0 }.object(0)?;
        let indented = format!("{entry:#}").replace('\n', "\n    ");
        match inner.value_of(old, ENTRY_NAME) {
            Some((from, to)) => {
                Ok(format!("{}{indented}{}", old.get(..from).unwrap_or(""), old.get(to..).unwrap_or("")))
            }
            None => Ok(inserted(old, &inner, &format!("\n    \"{ENTRY_NAME}\": {indented}"))),
        }
    }
}

/// Inserts a member at the beginning of an object.
fn inserted(old: &str, object: &ObjectSpan, member: &str) -> String {
    let at = object.from + 1;
    let end = match object.members.is_empty() {
        true => "\n",
        false => ",",
    };
    format!("{}{member}{end}{}", old.get(..at).unwrap_or(""), old.get(at..).unwrap_or(""))
}

/// Where an object is in a text, and its members: spans of key and value.
struct ObjectSpan {
    from: usize,
    members: Vec<((usize, usize), (usize, usize))>,
}

impl ObjectSpan {
    /// Returns the span of a member's value. Of several with this key, the last one counts.
    fn value_of(&self, text: &str, key: &str) -> Option<(usize, usize)> {
        let is_key = |span: &(usize, usize)| {
            text.get(span.0..span.1).and_then(|word| serde_json::from_str::<String>(word).ok()).as_deref() == Some(key)
        };
        self.members.iter().rev().find(|(name, _)| is_key(name)).map(|(_, value)| *value)
    }
}

/// Scans JSON that may have comments and trailing commas.
struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
}

impl JsonScanner<'_> {
    fn error<T>(&self, why: &'static str) -> Result<T, McpInstallError> {
        Err(McpInstallError::NotJson { at: self.at, why })
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Moves behind white space and comments.
    fn skip_blank(&mut self) -> Result<(), McpInstallError> {
        loop {
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return self.error("a comment doesn't end"),
                }
            } else if let Some(first) = rest.chars().next().filter(|c| c.is_whitespace() || *c == '\u{feff}') {
                self.at += first.len_utf8();
            } else {
                return Ok(());
            }
        }
    }

    fn top_object(mut self) -> Result<ObjectSpan, McpInstallError> {
        self.skip_blank()?;
        let object = self.object(0)?;
        self.skip_blank()?;
        if self.at < self.text.len() {
            return self.error("something follows the object");
        }
        Ok(object)
    }

    fn object(&mut self, depth: usize) -> Result<ObjectSpan, McpInstallError> {
        let mut object = ObjectSpan { from: self.at, members: Vec::new() };
        self.expect(b'{')?;
        loop {
            self.skip_blank()?;
            if self.next() == Some(b'}') {
                self.at += 1;
                return Ok(object);
            }
            let key = self.at;
            self.string()?;
            let key = (key, self.at);
            self.skip_blank()?;
            self.expect(b':')?;
            self.skip_blank()?;
            let value = self.at;
            self.value(depth + 1)?;
            object.members.push((key, (value, self.at)));
            self.skip_blank()?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b'}') => {}
                _ => return self.error("a comma or a brace is missing"),
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), McpInstallError> {
        if self.next() != Some(byte) {
            return self.error("another character was expected");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), McpInstallError> {
        self.expect(b'"')?;
        loop {
            match self.next() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.at += 2,
                Some(b'\n') | None => return self.error("a string doesn't end"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), McpInstallError> {
        if depth > MAX_DEPTH {
            return self.error("it is nested too deeply");
        }
        match self.next() {
            Some(b'{') => self.object(depth).map(|_| ()),
            Some(b'"') => self.string(),
            Some(b'[') => {
                self.at += 1;
                loop {
                    self.skip_blank()?;
                    if self.next() == Some(b']') {
                        self.at += 1;
                        return Ok(());
                    }
                    self.value(depth + 1)?;
                    self.skip_blank()?;
                    match self.next() {
                        Some(b',') => self.at += 1,
                        Some(b']') => {}
                        _ => return self.error("a comma or a bracket is missing"),
                    }
                }
            }
            _ => {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len());
                if end == 0 || serde_json::from_str::<Value>(rest.get(..end).unwrap_or_default()).is_err() {
                    return self.error("a value is missing");
                }
                self.at += end;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(client: McpClientProgram, old: &str) -> Result<String, McpInstallError> {
        client.with_entry(old, Path::new("/usr/bin/tracebook"), &["mcp".to_owned()])
    }

    #[test]
    fn a_new_configuration_is_what_the_program_reads() {
        for client in McpClientProgram::ALL {
            let new: Value = serde_json::from_str(&install(client, "").expect("fine")).expect("fine");
            let entry = &new[client.servers_key()]["tracebook"];
            assert!(entry["command"].to_string().contains("/usr/bin/tracebook"), "{new}");
            assert_eq!(McpClientProgram::from_name(client.name()), Some(client));
        }
    }

    #[test]
    fn comments_order_and_other_servers_stay() {
        let old = concat!(
            "// mine\n{\n  \"theme\": \"dark\", /* { */\n  \"context_servers\": {\n",
            "    \"other\": {\"command\": \"x\",},\n  },\n  \"z\": [1, -2.5e3, \"}\\\"\", null,],\n}\n",
        );
        let new = install(McpClientProgram::Zed, old).expect("fine");
        for line in old.lines() {
            assert!(new.contains(line), "{line} is gone:\n{new}");
        }
        assert!(new.contains("\"tracebook\": {") && new.find("\"tracebook\"") < new.find("\"other\""));
        // Once more changes nothing, and other arguments change the entry alone.
        assert_eq!(install(McpClientProgram::Zed, &new).expect("fine"), new);
        let other = McpClientProgram::Zed.with_entry(&new, Path::new("/opt/tb"), &[]).expect("fine");
        assert!(other.contains("/opt/tb") && !other.contains("/usr/bin/tracebook") && other.contains("// mine"));
    }

    #[test]
    fn plain_json_stays_json() {
        for old in
            ["{}", "{\"mcpServers\": {}}", "{\"a\": 1}", "{\"mcpServers\": {\"x\": {\"command\": \"y\"}}, \"b\": []}"]
        {
            let new: Value =
                serde_json::from_str(&install(McpClientProgram::Cursor, old).expect("fine")).expect("fine");
            let before: Value = serde_json::from_str(old).expect("fine");
            assert_eq!(new["mcpServers"]["tracebook"]["args"], json!(["mcp"]));
            for (key, value) in before.as_object().expect("fine").iter().filter(|(key, _)| *key != "mcpServers") {
                assert_eq!(&new[key], value);
            }
            assert_eq!(new["mcpServers"]["x"], before["mcpServers"]["x"]);
        }
    }

    #[test]
    fn what_is_no_configuration_is_left_alone() {
        for wrong in ["[]", "{", "{\"a\" 1}", "{\"a\": }", "{\"a\": 1} x", "{\"a\": \"", "/* {}", "nonsense"] {
            assert!(
                matches!(install(McpClientProgram::Gemini, wrong), Err(McpInstallError::NotJson { .. })),
                "{wrong}"
            );
        }
        let deep = format!("{{\"a\": {}", "[".repeat(100_000));
        assert!(matches!(install(McpClientProgram::Gemini, &deep), Err(McpInstallError::NotJson { .. })));
        let other = install(McpClientProgram::Gemini, "{\"mcpServers\": []}");
        assert_eq!(other, Err(McpInstallError::NotAnObject("mcpServers")));
    }
}
