//! Tool files: the user's own tools as JSON, in the form {id, name, version, func, schema: {description, parameters},
//! type, permissions, created}. Files of earlier versions of Tracebook are read, too.

use crate::event_filter::{EventFilter, EventFilterError};
use crate::schema_limits::ToolSchemaError;
use crate::script_tool::detect_language;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{RegisteredTool, ToolGrants, ToolLanguage, UserTool};
use text::kernel_properties::NotePackages;
use text::script_packages::{ScriptPackagesError, read_script_packages};
use text::task::CalendarDay;

/// Maximum size of a tool's code in bytes.
pub const MAX_TOOL_CODE_BYTES: usize = 256 << 10;
/// Maximum size of a tool's description in bytes.
const MAX_DESCRIPTION_BYTES: usize = 10_000;
/// Maximum length of a tool's id in bytes.
const MAX_TOOL_ID_BYTES: usize = 100;
/// Maximum number of tools in a file.
const MAX_TOOLS_PER_FILE: usize = 500;
/// Milliseconds per day.
const DAY_MS: i64 = 86_400_000;
/// Highest version number that a file may give.
const MAX_TOOL_VERSION: u64 = 1_000_000_000;

/// Why a text isn't a file of tools, or a tool isn't valid.
#[derive(Debug, thiserror::Error)]
pub enum ToolFileError {
    /// It isn't JSON, or a field has the wrong type.
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
    /// It has too many tools.
    #[error("it has more than {MAX_TOOLS_PER_FILE} tools")]
    TooMany,
    /// A field is missing.
    #[error("{tool} has no {field}; a tool file has name, func, schema {{description, parameters}} and permissions")]
    Missing {
        /// Name of the tool, or what is known of it.
        tool: String,
        /// The missing field.
        field: &'static str,
    },
    /// A permission doesn't exist.
    #[error("{tool} has the permission {word:?}; there are network, fs, ui and process")]
    UnknownPermission {
        /// Name of the tool.
        tool: String,
        /// The word in the file.
        word: String,
    },
    /// The time isn't ISO 8601.
    #[error("{tool} has no time like 2026-02-08T10:00:00Z as created")]
    InvalidTime {
        /// Name of the tool.
        tool: String,
    },
    /// The version is out of range.
    #[error("the version of {tool} is a number from 1 to {MAX_TOOL_VERSION}")]
    InvalidVersion {
        /// Name of the tool.
        tool: String,
    },
    /// The name has other characters, or a wrong length.
    #[error("a tool's name has 2 to 48 of a-z, 0-9 and _: {0}")]
    InvalidName(String),
    /// A built-in tool has this name.
    #[error("{0} is a built-in tool; choose another name")]
    BuiltInName(String),
    /// The id is one by which steps name tools of the program or of servers.
    #[error("the id of {0} begins with system: or mcp:, which stand for other tools; choose another id")]
    ReservedId(String),
    /// The code or the description is too long.
    #[error("the code of a tool has at most {} kB", MAX_TOOL_CODE_BYTES >> 10)]
    TooLong,
    /// The code doesn't define the function that is called.
    #[error("the code of a tool is Python that defines {0}(…), or one function in JavaScript, and this is neither")]
    NoFunction(String),
    /// The code of a tool in JavaScript isn't a function.
    #[error("the code of a tool in JavaScript is one function, such as async ({{ city }}) => {{ … }}")]
    NoScriptFunction,
    /// Events call a function that isn't written in Python.
    #[error("events call only functions in Python")]
    NoPythonHandler,
    /// The events that call the function can't be read.
    #[error("the events of {tool} can't be read: {why}")]
    InvalidEvents {
        /// Name of the tool.
        tool: String,
        /// What is wrong with them.
        #[source]
        why: EventFilterError,
    },
    /// The packages that the code lists can't be read.
    #[error("the packages of {tool} can't be read: {why}")]
    InvalidPackages {
        /// Name of the tool.
        tool: String,
        /// What is wrong with the list.
        #[source]
        why: ScriptPackagesError,
    },
    /// The parameters aren't a JSON object.
    #[error("the parameters of a tool are a JSON schema")]
    NoSchema,
    /// The parameters aren't a valid schema.
    #[error("the schema of {tool} does not hold: {why}")]
    InvalidSchema {
        /// Name of the tool.
        tool: String,
        /// What is wrong with the schema.
        #[source]
        why: ToolSchemaError,
    },
}

/// A tool as it's written in a file, in either form.
#[derive(Deserialize)]
struct ToolFileEntry {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    version: Option<u64>,
    func: Option<String>,
    language: Option<ToolLanguage>,
    schema: Option<ToolFileSchema>,
    permissions: Option<Vec<String>>,
    created: Option<Value>,
    #[serde(default)]
    author: String,
    #[serde(default)]
    entry: String,
    #[serde(default)]
    event: String,
    // The fields of earlier versions.
    description: Option<String>,
    parameters: Option<Value>,
    code: Option<String>,
    #[serde(default)]
    network: bool,
    grants: Option<ToolGrants>,
}

/// The interface of a tool, for models.
#[derive(Deserialize)]
struct ToolFileSchema {
    description: Option<String>,
    parameters: Option<Value>,
}

/// Reads names of permissions: whether the network is among them, and the others.
///
/// # Errors
/// Returns the first word that is no permission.
pub fn parse_permissions(words: &[String]) -> Result<(bool, ToolGrants), &String> {
    let (mut network, mut grants) = (false, ToolGrants { fs: false, ui: false, process: false });
    for word in words {
        match word.as_str() {
            "network" => network = true,
            "fs" => grants.fs = true,
            "ui" => grants.ui = true,
            "process" => grants.process = true,
            _ => return Err(word),
        }
    }
    Ok((network, grants))
}

/// Returns the names of a tool's permissions.
pub fn permission_names(tool: &UserTool) -> Vec<&'static str> {
    let ToolGrants { fs, ui, process } = tool.grants;
    let all = [(tool.network, "network"), (fs, "fs"), (ui, "ui"), (process, "process")];
    all.into_iter().filter(|(granted, _)| *granted).map(|(_, name)| name).collect()
}

/// Returns a time as ISO 8601 in UTC. `milliseconds` count from 1970.
pub fn format_iso_time(milliseconds: i64) -> String {
    let (day, within) = (CalendarDay(milliseconds.div_euclid(DAY_MS)), milliseconds.rem_euclid(DAY_MS));
    let (seconds, rest) = (within / 1_000, within % 1_000);
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
    format!("{day}T{:02}:{:02}:{:02}{fraction}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Reads a time in ISO 8601 with its offset, such as `2026-02-08T10:00:00Z`, in milliseconds since 1970.
fn parse_iso_time(text: &str) -> Option<i64> {
    let (day, time) = text.split_once('T')?;
    let day = CalendarDay::parse(day).filter(|_| day.len() == 10)?;
    let (time, offset) = match time.strip_suffix('Z') {
        Some(time) => (time, 0),
        None => {
            let (time, offset) = time.split_at_checked(time.rfind(['+', '-'])?)?;
            let (hours, minutes) = offset.get(1..)?.split_once(':')?;
            let minutes = two_digits(hours, 23)? * 60 + two_digits(minutes, 59)?;
            (time, if offset.starts_with('-') { -minutes } else { minutes })
        }
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rest: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let mut parts = time.split(':');
    let (hours, minutes) = (two_digits(parts.next()?, 23)?, two_digits(parts.next()?, 59)?);
    let seconds = two_digits(parts.next()?, 59).filter(|_| parts.next().is_none())?;
    Some(day.0 * DAY_MS + ((hours * 60 + minutes - offset) * 60 + seconds) * 1_000 + rest)
}

/// Reads a number of two digits, up to `most`.
fn two_digits(text: &str, most: i64) -> Option<i64> {
    let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| plain && *number <= most)
}

/// Returns a tool in the form of tool files.
pub fn tool_to_json(tool: &UserTool) -> Value {
    let mut value = json!({
        "id": tool.tool_id(),
        "name": tool.name,
        "version": tool.version,
        "func": tool.code,
        "schema": {"description": tool.description, "parameters": tool.parameters},
        "type": "user",
        "permissions": permission_names(tool),
        "created": format_iso_time(tool.created),
    });
    if detect_language(&tool.code) != tool.language {
        value["language"] = Value::from(tool.language.name());
    }
    for (key, text) in [("author", &tool.author), ("entry", &tool.entry), ("event", &tool.event)] {
        if !text.is_empty() {
            value[key] = Value::from(text.as_str());
        }
    }
    value
}

/// Reads a file with one tool or a list of tools. A file can't make a tool a built-in one, whatever its `type`.
///
/// # Errors
/// Returns an error with the line if it isn't JSON or a field has the wrong type, and says what is missing or unknown.
pub fn parse_tool_file(text: &str) -> Result<Vec<UserTool>, ToolFileError> {
    let entries: Vec<ToolFileEntry> = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text)?,
        false => vec![serde_json::from_str(text)?],
    };
    if entries.len() > MAX_TOOLS_PER_FILE {
        return Err(ToolFileError::TooMany);
    }
    entries.into_iter().map(entry_to_tool).collect()
}

fn entry_to_tool(entry: ToolFileEntry) -> Result<UserTool, ToolFileError> {
    let name = entry.name;
    if name.is_empty() {
        return Err(ToolFileError::Missing { tool: "a tool".to_owned(), field: "name" });
    }
    let missing = |field| ToolFileError::Missing { tool: name.clone(), field };
    let (described, parameters) = entry.schema.map_or((None, None), |schema| (schema.description, schema.parameters));
    let code = entry.func.or(entry.code).ok_or_else(|| missing("func"))?;
    let description = described.or(entry.description).ok_or_else(|| missing("schema.description"))?;
    let parameters = parameters.or(entry.parameters).ok_or_else(|| missing("schema.parameters"))?;
    let (network, grants) = match &entry.permissions {
        Some(words) => parse_permissions(words)
            .map_err(|word| ToolFileError::UnknownPermission { tool: name.clone(), word: word.clone() })?,
        None => (entry.network, entry.grants.unwrap_or_default()),
    };
    let invalid_time = || ToolFileError::InvalidTime { tool: name.clone() };
    let created = match entry.created {
        None | Some(Value::Null) => 0,
        Some(Value::String(text)) => parse_iso_time(&text).ok_or_else(invalid_time)?,
        Some(other) => other.as_i64().ok_or_else(invalid_time)?,
    };
    let version = entry.version.unwrap_or(0);
    if version > MAX_TOOL_VERSION {
        return Err(ToolFileError::InvalidVersion { tool: name });
    }
    let language = entry.language.unwrap_or_else(|| detect_language(&code));
    // Bounded, because the id is shown in lists.
    let id = entry.id.chars().take(MAX_TOOL_ID_BYTES).collect();
    let (author, entry, event) = (entry.author, entry.entry, entry.event);
    let mut tool = UserTool {
        id,
        name,
        version,
        description,
        parameters,
        code,
        language,
        entry,
        event,
        network,
        grants,
        created,
        author,
    };
    if tool.id == (UserTool { id: String::new(), ..tool.clone() }).tool_id() {
        tool.id.clear(); // it follows from the name
    }
    Ok(tool)
}

/// Returns whether this may be the name of a user's tool.
pub fn is_tool_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    letters && (2..=48).contains(&name.len()) && name.starts_with(|letter: char| letter.is_ascii_lowercase())
}

/// Checks a tool's name, code and schema.
///
/// # Errors
/// Returns an error if the tool can't be proposed.
pub fn check_tool(tool: &UserTool) -> Result<(), ToolFileError> {
    if !is_tool_name(&tool.name) {
        return Err(ToolFileError::InvalidName(tool.name.clone()));
    }
    if crate::tool_catalog::built_in().iter().any(|built_in| built_in.name == tool.name) {
        return Err(ToolFileError::BuiltInName(tool.name.clone()));
    }
    if tool.id.starts_with("system:") || tool.id.starts_with("mcp:") {
        return Err(ToolFileError::ReservedId(tool.name.clone()));
    }
    // A version after the highest number would take the place of that one, with its approval.
    if tool.version > MAX_TOOL_VERSION {
        return Err(ToolFileError::InvalidVersion { tool: tool.name.clone() });
    }
    if tool.code.len() > MAX_TOOL_CODE_BYTES || tool.description.len() > MAX_DESCRIPTION_BYTES {
        return Err(ToolFileError::TooLong);
    }
    if tool.is_event_handler() {
        let invalid = |why| ToolFileError::InvalidEvents { tool: tool.name.clone(), why };
        EventFilter::parse_starting(&tool.event).map_err(invalid)?;
        if tool.language != ToolLanguage::Python {
            return Err(ToolFileError::NoPythonHandler);
        }
    }
    if tool.language == ToolLanguage::JavaScript {
        // Whether it's valid is known once it runs; what isn't one function at all is refused here.
        let is_function = detect_language(&tool.code) == ToolLanguage::JavaScript;
        if !is_function || !tool.entry.is_empty() || tool.code.contains('\0') {
            return Err(ToolFileError::NoScriptFunction);
        }
        return check_parameters(tool);
    }
    let entry = tool.entry_name();
    let plain = entry.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if !plain || !tool.code.contains(&format!("def {entry}(")) {
        return Err(ToolFileError::NoFunction(entry.chars().take(100).collect()));
    }
    listed_packages(tool).map_err(|why| ToolFileError::InvalidPackages { tool: tool.name.clone(), why })?;
    check_parameters(tool)
}

/// Returns the packages that a tool's Python code lists (PEP 723); `None` if it needs none.
///
/// # Errors
/// Returns an error if the list can't be read.
pub fn listed_packages(tool: &UserTool) -> Result<Option<NotePackages>, ScriptPackagesError> {
    match tool.language {
        ToolLanguage::Python => read_script_packages(&tool.code),
        ToolLanguage::JavaScript => Ok(None),
    }
}

fn check_parameters(tool: &UserTool) -> Result<(), ToolFileError> {
    if !tool.parameters.is_object() {
        return Err(ToolFileError::NoSchema);
    }
    let invalid = |why| ToolFileError::InvalidSchema { tool: tool.name.clone(), why };
    crate::schema_limits::check_schema(&tool.parameters).map_err(invalid)
}

/// Returns the state of a version of a tool, as a word.
pub fn version_state(tool: &RegisteredTool, version: &UserTool) -> &'static str {
    let is_newest = Some(version.version) == tool.newest_version().map(|newest| newest.version);
    if tool.approved == Some(version.version) {
        "approved"
    } else if tool.has_pending_version() && is_newest {
        "waiting for approval"
    } else {
        "not in use"
    }
}

/// Returns what differs between two versions of a tool, as a unified diff; `None` if they do the same.
pub fn version_diff(old: &UserTool, new: &UserTool) -> Option<String> {
    if old.content_hash() == new.content_hash() && old.description == new.description {
        return None;
    }
    let described = |tool: &UserTool| {
        let parameters = serde_json::to_string_pretty(&tool.parameters).unwrap_or_default();
        let (names, entry) = (permission_names(tool).join(", "), tool.entry_name());
        let event = if tool.is_event_handler() { format!("\nevents: {}", tool.event) } else { String::new() };
        let about = format!("{}\npermissions: {names}\nfunction: {entry}{event}", tool.description);
        format!("{about}\n{parameters}\n\n{}", tool.code)
    };
    let title = format!("{} {}..{}", new.name, old.version, new.version);
    Some(text::diff::unified_diff(&title, Some(&described(old)), Some(&described(new))))
}

/// Returns the newest version before the one in use, to which a tool can be rolled back.
pub fn version_before(tool: &RegisteredTool) -> Option<u64> {
    tool.versions.iter().rev().map(|one| one.version).find(|version| Some(*version) < tool.approved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Value {
        json!({
            "id": "uuid-555-666", "name": "fetch_weather", "version": 1,
            "func": "async def run(city):\n    return city\n",
            "schema": {"description": "Fetches weather data",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
            "type": "user", "permissions": ["network"], "created": "2026-02-08T10:00:00Z",
        })
    }

    #[test]
    fn a_file_comes_back_as_it_was() {
        let theirs = example();
        let read = parse_tool_file(&theirs.to_string()).expect("read");
        assert_eq!(read.iter().map(tool_to_json).collect::<Vec<_>>(), std::slice::from_ref(&theirs));
        let grants = ToolGrants { fs: false, ui: false, process: false };
        assert_eq!((read[0].network, read[0].grants), (true, grants));
        assert!(check_tool(&read[0]).is_ok());
        // The version is optional, and a list is read as well.
        let mut short = theirs.clone();
        short.as_object_mut().expect("an object").remove("version");
        let list = parse_tool_file(&json!([theirs, short]).to_string()).expect("read");
        assert_eq!(list.iter().map(|tool| tool.version).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn a_function_in_javascript_is_told_by_its_form() {
        let mut script = example();
        script["func"] = json!("async ({ city }) => { const res = await fetch(city); return res.json(); }");
        let tool = parse_tool_file(&script.to_string()).expect("read").remove(0);
        assert_eq!(tool.language, ToolLanguage::JavaScript);
        assert!(check_tool(&tool).is_ok());
        assert_eq!(tool_to_json(&tool), script, "the form of a file doesn't change");
        // A stored version keeps its language; other code of that language is refused.
        let stored: UserTool = serde_json::from_str(&serde_json::to_string(&tool).expect("JSON")).expect("read");
        assert_eq!(stored, tool);
        assert_ne!(tool.content_hash(), UserTool { language: ToolLanguage::Python, ..tool.clone() }.content_hash());
        for code in ["return 5", "def run(): pass", "x => x\0"] {
            let wrong = UserTool { code: code.to_owned(), ..tool.clone() };
            assert!(matches!(check_tool(&wrong), Err(ToolFileError::NoScriptFunction)), "{code}");
        }
        // Where code could be either, the file says it.
        script["func"] = json!("def run(): pass");
        script["language"] = json!("javascript");
        let tool = parse_tool_file(&script.to_string()).expect("read").remove(0);
        assert_eq!(tool_to_json(&tool)["language"], json!("javascript"));
    }

    #[test]
    fn files_of_earlier_versions_are_read() {
        let old = json!({"name": "double", "version": 3, "description": "Doubles.", "parameters": {"type": "object"},
            "code": "def run(x): return 2 * x", "network": true, "created": 5, "author": "me"});
        let tool = parse_tool_file(&old.to_string()).expect("read").remove(0);
        let stored: UserTool = serde_json::from_value(old).expect("stored");
        assert_eq!(tool, stored);
        assert_eq!(tool.grants, ToolGrants::default());
        let again = parse_tool_file(&tool_to_json(&tool).to_string()).expect("read");
        assert_eq!(again, [tool]);
    }

    #[test]
    fn times_are_read_and_written() {
        for (text, milliseconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-02-08T10:00:00Z", 1_770_544_800_000),
            ("2026-02-08T10:00:00.250Z", 1_770_544_800_250),
            ("1969-12-31T23:59:59Z", -1_000),
        ] {
            assert_eq!(parse_iso_time(text), Some(milliseconds));
            assert_eq!(format_iso_time(milliseconds), text);
        }
        assert_eq!(parse_iso_time("2026-02-08T12:30:00+02:30"), Some(1_770_544_800_000));
        for wrong in ["2026-02-08", "2026-02-30T10:00:00Z", "2026-02-08T25:00:00Z", "2026-02-08T10:00:00", "T", "xTé-"]
        {
            assert_eq!(parse_iso_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_files_are_refused_with_the_place() {
        let with = |key: &str, value: Value| {
            let mut one = example();
            one[key] = value;
            parse_tool_file(&one.to_string()).expect_err("refused").to_string()
        };
        assert!(with("permissions", json!(["root"])).contains("\"root\"; there are network"));
        assert!(with("created", json!("yesterday")).contains("2026-02-08T10:00:00Z"));
        assert!(with("language", json!("ruby")).contains("ruby"));
        assert!(with("func", Value::Null).contains("has no func"));
        assert!(with("version", json!(u64::MAX)).contains("from 1"));
        let broken = parse_tool_file("{\n \"name\": \"x\",\n \"func\": }").expect_err("refused").to_string();
        assert!(broken.contains("line 3"), "{broken}");
        let wrong = parse_tool_file("{\n \"name\": 5\n}").expect_err("refused").to_string();
        assert!(wrong.contains("line 2"), "{wrong}");
    }
}
