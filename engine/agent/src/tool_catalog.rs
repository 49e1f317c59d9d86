//! The tools that every agent has: names, schemas, risk. Their implementation is in `session/runs/tool_calls.rs`.

use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Explains the format of views to models.
pub const VIEW_GUIDE: &str = "A node is an object with a \"type\": column or row {children: [nodes]}; text {text, \
    look?: \
    heading|body|caption}, in which {property:NAME} and {variable:NAME} stand for values; table {rows: SOURCE, \
    columns?: [names]}; plot {y: SOURCE, x?: SOURCE, kind?: line|bar|points, title?}; slider {property, from, to, \
    step?, label?}; form {fields: [{property, label?, input?: text|number|check|choice, choices?: [texts]}], title?}; \
    button {label, action}. A SOURCE is {\"property\": NAME}, {\"variable\": NAME} or a list. An action is {\"tool\": \
    NAME, \"arguments\": {…}} or {\"command\": \"note.run_all\"|\"note.run_stale\"|\"note.run_clean\"|\
    \"kernel.restart\"}.";

/// Permissions of a tool that only reads files.
const READ_FILES_ONLY: ToolPermissions = ToolPermissions { network: false, fs: true, process: false, ui: false };
/// Permissions of a tool that runs code.
const RUN_PROGRAMS: ToolPermissions = ToolPermissions { network: false, fs: true, process: true, ui: false };
/// Permissions of a tool that runs the user's `git` with a remote.
const USE_REMOTES: ToolPermissions = ToolPermissions { network: true, fs: true, process: true, ui: false };
/// Permissions of a tool that accesses nothing outside the run.
const NO_PERMISSIONS: ToolPermissions = ToolPermissions { network: false, fs: false, process: false, ui: false };

fn new_tool_spec(
    tool: BuiltInTool,
    description: &str,
    risk: ToolRisk,
    permissions: ToolPermissions,
    properties: &Value,
) -> ToolSpec {
    let required: Vec<&str> = properties
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, property)| property.get("optional").is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let mut plain = properties.clone();
    for (_, property) in plain.as_object_mut().into_iter().flatten() {
        property.as_object_mut().map(|property| property.remove("optional"));
    }
    ToolSpec {
        name: tool.to_string(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "properties": plain, "required": required, "additionalProperties": false}),
        risk,
        permissions,
        // Another agent, or a page, may be something different the second time.
        idempotent: risk == ToolRisk::None
            && !tool.is_for_browser()
            && !tool.is_for_containers()
            && !matches!(tool, BuiltInTool::AskAgent | BuiltInTool::MessageAgent),
        source: ToolSource::BuiltIn,
    }
}

/// Returns the built-in tools, in the order in which they are offered to models.
pub fn built_in() -> Vec<ToolSpec> {
    static BUILT_IN_TOOLS: OnceLock<Vec<ToolSpec>> = OnceLock::new();
    BUILT_IN_TOOLS.get_or_init(build_catalog).clone()
}

/// Defines [`BuiltInTool`] and the specifications of the offered tools. A row of `offered` is `Name = ("wire_name",
/// "description", risk, permissions, properties)`. A row of `internal` is `Name = "wire_name": "what it is"`, and its
/// specification is built where it's called.
macro_rules! tool_table {
    (offered {
        $($tool:ident = ($name:literal, $description:literal, $risk:expr, $permissions:expr, $properties:expr $(,)?)),*
        $(,)?
    } internal {
        $($own:ident = $own_name:literal: $about:literal),* $(,)?
    }) => {
        /// A built-in tool. Models, documents and rules refer to it by its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum BuiltInTool {
            $(#[doc = concat!("`", $name, "`: ", $description)] $tool,)*
            $(#[doc = concat!("`", $own_name, "`: ", $about)] $own,)*
        }

        impl BuiltInTool {
            /// All built-in tools.
            pub const ALL: &[BuiltInTool] = &[$(BuiltInTool::$tool,)* $(BuiltInTool::$own,)*];

            /// Returns the name by which models, documents and rules refer to the tool.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(BuiltInTool::$tool => $name,)*
                    $(BuiltInTool::$own => $own_name,)*
                }
            }
        }

        fn build_catalog() -> Vec<ToolSpec> {
            vec![$(new_tool_spec(BuiltInTool::$tool, $description, $risk, $permissions, &$properties),)*]
        }
    };
}

tool_table!(offered {
    ReadFile = (
        "read_file",
        "Read a note or another text file: of the project, of another volume as VOLUME/PATH, or of the read-only \
         volume system (agents, prompts, tools, guide, config.yaml).",
        ToolRisk::None,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(),
            "path": path_schema(), "from_line": {"type": "integer", "minimum": 1, "optional": true},
            "lines": {"type": "integer", "minimum": 1, "maximum": 5000, "optional": true}}),
    ),
    WriteFile = (
        "write_file",
        "Create a file, or replace all that it holds. To change a part of a file use edit_file.",
        ToolRisk::Low,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(),
            "path": path_schema(), "content": {"type": "string", "description": "The whole new text"}}),
    ),
    EditFile = (
        "edit_file",
        "Replace one passage of a file. old_content must stand there exactly once.",
        ToolRisk::Low,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "path": path_schema(), "old_content": {"type": "string", "minLength": 1},
            "new_content": {"type": "string"}}),
    ),
    DeleteFile = (
        "delete_file",
        "Put a file into the trash. The user can take it out again.",
        ToolRisk::Medium,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "path": path_schema()}),
    ),
    ListFiles = (
        "list_files",
        "List the files of the project, or of one folder of it.",
        ToolRisk::None,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(),
            "directory": {"type": "string", "description": "Folder inside the project", "optional": true}}),
    ),
    Search = (
        "search",
        "Find passages of notes, cell outputs and past runs by words and by meaning.",
        ToolRisk::None,
        READ_FILES_ONLY,
        json!({"query": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "optional": true}}),
    ),
    RunCell = (
        "run_cell",
        "Run a Python cell of a note, as the user would, and read what it prints.",
        ToolRisk::Medium,
        RUN_PROGRAMS,
        json!({"volume": volume_schema(),
            "path": path_schema(), "cell": {"type": "integer", "minimum": 1, "description": "Its number, from 1"}}),
    ),
    RunPython = (
        "run_python",
        "Run Python code in a sandbox of its own and read what it prints. Nothing is kept.",
        ToolRisk::Medium,
        RUN_PROGRAMS,
        json!({"code": {"type": "string", "minLength": 1},
            "seconds": {"type": "integer", "minimum": 1, "maximum": 600, "optional": true}}),
    ),
    Shell = (
        "shell",
        "Run a line of shell in the project's folder, in a sandbox without network.",
        ToolRisk::Medium,
        RUN_PROGRAMS,
        json!({"command": {"type": "string", "minLength": 1},
            "workdir": {"type": "string", "description": "Folder inside the project to run it in", "optional": true},
            "seconds": {"type": "integer", "minimum": 1, "maximum": 600, "optional": true}}),
    ),
    GitStatus = (
        "git_status",
        "The branch, how far it is ahead of and behind its remote, and what has changed since the last commit.",
        ToolRisk::None,
        READ_FILES_ONLY,
        json!({"volume": volume_schema()}),
    ),
    GitDiff = (
        "git_diff",
        "How files have changed since the last commit, since another one, or between two.",
        ToolRisk::None,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "path": {"type": "string", "optional": true},
            "revision": revision_schema("As in git diff: A, A..B or A...B")}),
    ),
    GitLog = (
        "git_log",
        "The last commits: of the branch, of another branch or a range, or those that changed a file.",
        ToolRisk::None,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "path": {"type": "string", "optional": true},
            "revision": revision_schema("As in git log: a branch, tag or commit, A..B or A...B"),
            "limit": {"type": "integer", "minimum": 1, "maximum": 200, "optional": true}}),
    ),
    GitBlame = (
        "git_blame",
        "Who last changed each line of a file, and in which commit.",
        ToolRisk::None,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "path": path_schema()}),
    ),
    GitShow = (
        "git_show",
        "A commit: its message, and how it changed files. Without commit, the last one.",
        ToolRisk::None,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "commit": {"type": "string", "minLength": 1, "maxLength": 200,
            "optional": true, "description": "Its hash, a branch or a tag"}}),
    ),
    GitAdd = (
        "git_add",
        "Stage files: those that are named, or all that changed. Only git_commit with staged needs that.",
        ToolRisk::Low,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(),
            "files": {"type": "array", "items": {"type": "string"}, "optional": true}}),
    ),
    GitCommit = (
        "git_commit",
        "Commit files: those that are named, or all that changed, or with staged exactly what is staged. With push, \
         send the commit to the remote, too.",
        ToolRisk::Low,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "message": {"type": "string", "minLength": 1},
            "files": {"type": "array", "items": {"type": "string"}, "optional": true},
            "staged": {"type": "boolean", "optional": true}, "push": {"type": "boolean", "optional": true}}),
    ),
    GitFetch = (
        "git_fetch",
        "Get new commits from the remote. No file changes.",
        ToolRisk::High,
        USE_REMOTES,
        json!({"volume": volume_schema()}),
    ),
    GitPull = (
        "git_pull",
        "Get new commits from the remote and merge them, or rebase onto them. A conflict changes nothing.",
        ToolRisk::High,
        USE_REMOTES,
        json!({"volume": volume_schema(), "rebase": {"type": "boolean", "optional": true}}),
    ),
    GitPush = (
        "git_push",
        "Send the commits of the branch to the remote.",
        ToolRisk::High,
        USE_REMOTES,
        json!({"volume": volume_schema()}),
    ),
    GitBranch = (
        "git_branch",
        "Create a branch at the last commit, or list all branches. It is not switched to.",
        ToolRisk::High,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "name": {"type": "string", "minLength": 1, "optional": true}}),
    ),
    GitSwitch = (
        "git_switch",
        "Switch to another branch, or to a new one. Files change to what they are there.",
        ToolRisk::High,
        RUN_PROGRAMS,
        json!({"volume": volume_schema(), "branch": {"type": "string", "minLength": 1},
            "create": {"type": "boolean", "optional": true}}),
    ),
    GitMerge = (
        "git_merge",
        "Merge another branch into the current one. A conflict changes nothing.",
        ToolRisk::High,
        RUN_PROGRAMS,
        json!({"volume": volume_schema(), "branch": {"type": "string", "minLength": 1}}),
    ),
    GitStash = (
        "git_stash",
        "Put all changes that are not committed aside (push), take them back (apply; pop deletes the stash then), or \
         list what is put aside.",
        ToolRisk::High,
        RUN_PROGRAMS,
        json!({"volume": volume_schema(), "action": {"enum": ["list", "push", "apply", "pop"]},
            "message": {"type": "string", "maxLength": 1000, "optional": true},
            "number": {"type": "integer", "minimum": 0, "description": "0 is the newest", "optional": true}}),
    ),
    GitClone = (
        "git_clone",
        "Clone a repository into a new folder of the project. OWNER/NAME is one of GitHub.",
        ToolRisk::High,
        USE_REMOTES,
        json!({"volume": volume_schema(), "repository": {"type": "string", "minLength": 1, "maxLength": 2000},
            "directory": {"type": "string", "minLength": 1},
            "depth": {"type": "integer", "minimum": 1, "optional": true}}),
    ),
    FetchUrl = (
        "fetch_url",
        "Fetch a page from the network as text.",
        ToolRisk::High,
        ToolPermissions { network: true, ..NO_PERMISSIONS },
        json!({"url": {"type": "string", "pattern": "^https?://"}}),
    ),
    BrowserOpen = (
        "browser_open",
        "Open a page in a browser of this run, where its scripts run, and read it. For pages that need a browser or \
         that you will use; to only read one, use fetch_url.",
        ToolRisk::High,
        ToolPermissions { network: true, ..NO_PERMISSIONS },
        json!({"url": {"type": "string", "pattern": "^https?://"}}),
    ),
    BrowserRead = (
        "browser_read",
        "Read the open page: as a tree, in which elements that can be used have a ref such as [e12], or as text.",
        ToolRisk::None,
        NO_PERMISSIONS,
        json!({"as": {"enum": ["tree", "text"], "optional": true},
            "from_line": {"type": "integer", "minimum": 1, "optional": true}}),
    ),
    BrowserAct = (
        "browser_act",
        "Use an element of the open page: click, type (replaces what is in a field), select (a choice by its label), \
         press (a key such as Enter).",
        ToolRisk::Medium,
        NO_PERMISSIONS,
        json!({"action": {"enum": ["click", "type", "select", "press"]},
            "ref": {"type": "string", "maxLength": 20, "optional": true, "description": "Such as e12"},
            "element": {"type": "string", "maxLength": 200, "optional": true,
                "description": "What it is, for the user, such as: button Send"},
            "text": {"type": "string", "maxLength": 100_000, "optional": true,
                "description": "The text, the choice or the key"}}),
    ),
    BrowserGo = (
        "browser_go",
        "Go back or forward between the pages of the tab, load again, scroll by a screen, or wait.",
        ToolRisk::Low,
        NO_PERMISSIONS,
        json!({"action": {"enum": ["back", "forward", "reload", "scroll_down", "scroll_up", "wait"]},
            "seconds": {"type": "integer", "minimum": 1, "maximum": 20, "optional": true}}),
    ),
    BrowserTabs = (
        "browser_tabs",
        "List the tabs of the browser, select or close one by its number, or make a new one for browser_open.",
        ToolRisk::Low,
        NO_PERMISSIONS,
        json!({"action": {"enum": ["list", "new", "select", "close"]},
            "tab": {"type": "integer", "minimum": 1, "optional": true}}),
    ),
    BrowserSave = (
        "browser_save",
        "Take a picture of what is visible of the open page, or print it as PDF, for the user.",
        ToolRisk::None,
        NO_PERMISSIONS,
        json!({"as": {"enum": ["screenshot", "pdf"]}}),
    ),
    ContainerList = (
        "container_list",
        "List the images that Docker or Podman has here, and this project's containers.",
        ToolRisk::None,
        NO_PERMISSIONS,
        json!({}),
    ),
    ContainerPull = (
        "container_pull",
        "Get a container image from its registry.",
        ToolRisk::High,
        ToolPermissions { network: true, ..NO_PERMISSIONS },
        json!({"image": {"type": "string", "minLength": 1, "maxLength": 500,
            "description": "Such as python:3.13-slim"}}),
    ),
    ContainerBuild = (
        "container_build",
        "Build a container image from a folder of the project with a Dockerfile. It is then localhost/tracebook/NAME.",
        ToolRisk::High,
        USE_REMOTES,
        json!({"path": {"type": "string", "description": "Folder inside the project"},
            "name": {"type": "string", "minLength": 1, "maxLength": 100},
            "dockerfile": {"type": "string", "maxLength": 200, "optional": true},
            "network": {"type": "boolean", "optional": true, "description": "For its steps"},
            "seconds": {"type": "integer", "minimum": 1, "maximum": 600, "optional": true}}),
    ),
    ContainerRun = (
        "container_run",
        "Run a command in a new container of an image that this machine has, and read what it prints. It has no \
         network and sees only the folder in path, at /work, read-only, unless you ask for more. With background it \
         continues until the run ends.",
        ToolRisk::Medium,
        RUN_PROGRAMS,
        json!({"image": {"type": "string", "minLength": 1, "maxLength": 500},
            "command": {"type": "string", "minLength": 1, "optional": true, "description": "For the image's sh"},
            "path": {"type": "string", "optional": true, "description": "Folder inside the project"},
            "writable": {"type": "boolean", "optional": true, "description": "It may change that folder"},
            "network": {"type": "boolean", "optional": true},
            "background": {"type": "boolean", "optional": true},
            "seconds": {"type": "integer", "minimum": 1, "maximum": 3600, "optional": true}}),
    ),
    ContainerExec = (
        "container_exec",
        "Run a command in one of this project's containers that runs in the background.",
        ToolRisk::Medium,
        ToolPermissions { process: true, ..NO_PERMISSIONS },
        json!({"container": {"type": "string", "minLength": 1, "maxLength": 100},
            "command": {"type": "string", "minLength": 1},
            "seconds": {"type": "integer", "minimum": 1, "maximum": 600, "optional": true}}),
    ),
    ContainerLogs = (
        "container_logs",
        "Read the last lines that one of this project's containers has printed.",
        ToolRisk::None,
        NO_PERMISSIONS,
        json!({"container": {"type": "string", "minLength": 1, "maxLength": 100},
            "lines": {"type": "integer", "minimum": 1, "maximum": 5000, "optional": true}}),
    ),
    ContainerEnd = (
        "container_end",
        "Stop or remove one of this project's containers.",
        ToolRisk::Low,
        NO_PERMISSIONS,
        json!({"container": {"type": "string", "minLength": 1, "maxLength": 100},
            "action": {"enum": ["stop", "remove"]}}),
    ),
    TodoWrite = (
        "todo_write",
        "Write the list of what you will do, in its order: all of it, each time. The user may change it.",
        ToolRisk::None,
        NO_PERMISSIONS,
        json!({"todos": {"type": "array", "maxItems": 100, "items": {"type": "object", "properties": {
            "id": {"type": "string"}, "content": {"type": "string", "minLength": 1},
            "status": {"enum": ["pending", "in_progress", "completed", "cancelled"]},
            "priority": {"enum": ["lowest", "low", "normal", "medium", "high", "highest"]},
            "due": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}}, "required": ["content"]}}}),
    ),
    AskUser = (
        "ask_user",
        "Ask the user a question and wait for the answer.",
        ToolRisk::None,
        ToolPermissions { ui: true, ..NO_PERMISSIONS },
        json!({"question": {"type": "string", "minLength": 1}}),
    ),
    AskAgent = (
        "ask_agent",
        "Hand a part of the work to another agent and wait for its answer. It knows nothing of this conversation: \
         say in the goal all that it needs. Calls beside each other run at the same time.",
        ToolRisk::None,
        NO_PERMISSIONS,
        json!({"agent": {"type": "string", "minLength": 1, "maxLength": 60},
            "goal": {"type": "string", "minLength": 1, "maxLength": 20000},
            "task": {"type": "string", "maxLength": 60, "optional": true},
            "mode": {"enum": ["auto", "learner", "follower"], "optional": true},
            "checkpoint": {"type": "boolean", "description": "Ask the user first", "optional": true},
            "device": {"type": "string", "maxLength": 80, "description": "Only for tasks of a plan", "optional": true},
            "deadline": {"type": "string", "maxLength": 40, "description": "Such as 20 min", "optional": true},
            "budget": {"type": "number", "minimum": 0, "description": "US dollars", "optional": true}}),
    ),
    MessageAgent = (
        "message_agent",
        "Tell another agent that works on the same task something, or all of them (to: all). It reads it before its \
         next step. Nothing is waited for; a reply comes as a message, too.",
        ToolRisk::None,
        NO_PERMISSIONS,
        json!({"to": {"type": "string", "minLength": 1, "maxLength": 60, "description": "Name of the agent, or all"},
            "text": {"type": "string", "minLength": 1, "maxLength": 4000},
            "reply_to": {"type": "string", "maxLength": 60, "optional": true,
                "description": "Name of the message that this one answers"}}),
    ),
    CreateTool = (
        "create_tool",
        "Propose a tool of your own, in Python or JavaScript. It is pending until the user has read and approved it; \
         then it is there in every project. The code is Python that defines a function run(**arguments), or one \
         function in JavaScript such as async ({ city }) => { … }. It returns what can be JSON.",
        ToolRisk::Low,
        NO_PERMISSIONS,
        json!({"name": {"type": "string", "pattern": "^[a-z][a-z0-9_]{1,47}$"},
            "description": {"type": "string", "minLength": 1},
            "parameters": {"type": "object", "description": "JSON schema of the arguments"},
            "code": {"type": "string", "minLength": 1},
            "network": {"type": "boolean", "optional": true},
            "permissions": {"type": "array", "items": {"enum": ["network", "fs", "ui", "process"]}, "optional": true,
                "description": "All that it needs: network (urllib; fetch), fs (files of the project; in JavaScript \
                fs.readFile, writeFile, readdir, stat, exists, unlink), ui (pictures; ui.show({mime: data})), \
                process (shell(command) in the sandbox). Without this: fs and ui."}}),
    ),
    ProposeView = (
        "propose_view",
        "Propose a view for a note: a tree of text, table, plot, form, slider, button, bound to properties of the \
         note and variables of its cells. It is shown once the user presses \u{201c}Render preview\u{201d}.",
        ToolRisk::Low,
        READ_FILES_ONLY,
        json!({"volume": volume_schema(), "path": path_schema(), "title": {"type": "string"},
            "view": {"type": "object", "description": VIEW_GUIDE}}),
    ),
    ProposeComponent = (
        "propose_component",
        "Propose a custom element of your own, for what a view can't show. It's stored as components/TAGNAME.json, and \
         runs only once the user has read and approved it, in a sandboxed frame: no network, no storage, no other \
         page. `await tracebook.value(NAME)` gives a property that `data` names.",
        ToolRisk::Low,
        READ_FILES_ONLY,
        json!({"tagName": {"type": "string", "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)+$", "maxLength": 60},
            "script": {"type": "string", "minLength": 1,
                "description": "JavaScript that calls customElements.define(tagName, class extends HTMLElement {…})"},
            "styles": {"type": "string", "optional": true, "description": "CSS of the page around the element"},
            "data": {"type": "object", "optional": true, "properties": {"note": {"type": "string"},
                "properties": {"type": "array", "items": {"type": "string"}, "maxItems": 50}},
                "required": ["note", "properties"], "additionalProperties": false}}),
    ),
} internal {
    NoteCommand = "note_command": "What a button's command is, for the policy.",
    RunAgent = "run_agent": "What an agent in Python is, for the policy.",
    Plan = "plan": "What a plan is called by.",
    Assign = "assign": "Says who does which tasks of a plan.",
    AgentPermission = "agent_permission": "What a program that works as an agent asks permission for.",
    AgentReport = "agent_report": "What a program that works as an agent has done inside of itself.",
    McpSampling = "mcp_sampling": "What a tool server wants a model to answer.",
    McpForm = "mcp_form": "What a tool server wants the user to answer.",
});

/// Returns whether a goal has one of these words, or a word that begins like one of `beginnings`, so that "branch" also
/// matches "branches".
fn mentions_any(goal: &str, words: &[&str], beginnings: &[&str]) -> bool {
    let lower = goal.to_lowercase();
    let mut found = lower.split(|letter: char| !letter.is_alphanumeric());
    found.any(|word| words.contains(&word) || beginnings.iter().any(|beginning| word.starts_with(beginning)))
}

/// Removes tools for special work of which a prompt says nothing.
pub fn remove_unmentioned_tools(tools: &mut Vec<ToolSpec>, prompt: &str) {
    let (git, web) = (mentions_git(prompt), mentions_web(prompt));
    let (containers, components) = (mentions_containers(prompt), mentions_component(prompt));
    tools.retain(|tool| match BuiltInTool::from_name(&tool.name) {
        Some(BuiltInTool::ProposeComponent) => components,
        Some(known) if known.is_for_git() => git,
        Some(known) if known.is_for_browser() => web,
        Some(known) if known.is_for_containers() => containers,
        Some(_) | None => true,
    });
}

/// Returns whether a goal speaks of work with Git.
fn mentions_git(goal: &str) -> bool {
    const GIT_WORDS: [&str; 14] = [
        "blame",
        "branch",
        "checkout",
        "clone",
        "commit",
        "fetch",
        "git",
        "merge",
        "pull",
        "push",
        "rebase",
        "remote",
        "repositor",
        "stash",
    ];
    mentions_any(goal, &["diff", "repo"], &GIT_WORDS)
}

/// Returns whether a goal speaks of web pages.
fn mentions_web(goal: &str) -> bool {
    const WEB_WORDS: [&str; 8] = ["brows", "click", "http", "internet", "page", "screenshot", "site", "web"];
    mentions_any(goal, &["www", "form", "forms"], &WEB_WORDS)
}

/// Returns whether a goal speaks of something to show that a component could.
fn mentions_component(goal: &str) -> bool {
    const COMPONENT_WORDS: [&str; 8] =
        ["animat", "component", "custom", "dashboard", "element", "interactiv", "javascript", "widget"];
    mentions_any(goal, &[], &COMPONENT_WORDS)
}

/// Returns whether a goal speaks of containers.
fn mentions_containers(goal: &str) -> bool {
    mentions_any(goal, &["image", "images"], &["container", "docker", "podman"])
}

impl BuiltInTool {
    /// Returns the tool with this name.
    pub fn from_name(name: &str) -> Option<BuiltInTool> {
        BuiltInTool::ALL.iter().copied().find(|tool| tool.as_str() == name)
    }

    /// Returns whether the tool is of use only for work with Git. A model with a small context does without it.
    pub fn is_for_git(self) -> bool {
        matches!(
            self,
            BuiltInTool::GitStatus
                | BuiltInTool::GitDiff
                | BuiltInTool::GitLog
                | BuiltInTool::GitBlame
                | BuiltInTool::GitShow
                | BuiltInTool::GitAdd
                | BuiltInTool::GitCommit
                | BuiltInTool::GitFetch
                | BuiltInTool::GitPull
                | BuiltInTool::GitPush
                | BuiltInTool::GitBranch
                | BuiltInTool::GitSwitch
                | BuiltInTool::GitMerge
                | BuiltInTool::GitStash
                | BuiltInTool::GitClone
        )
    }

    /// Returns whether the tool uses the run's browser. A model with a small context does without it.
    pub fn is_for_browser(self) -> bool {
        matches!(
            self,
            BuiltInTool::BrowserOpen
                | BuiltInTool::BrowserRead
                | BuiltInTool::BrowserAct
                | BuiltInTool::BrowserGo
                | BuiltInTool::BrowserTabs
                | BuiltInTool::BrowserSave
        )
    }

    /// Returns whether the tool uses containers. A model with a small context does without it.
    pub fn is_for_containers(self) -> bool {
        matches!(
            self,
            BuiltInTool::ContainerList
                | BuiltInTool::ContainerPull
                | BuiltInTool::ContainerBuild
                | BuiltInTool::ContainerRun
                | BuiltInTool::ContainerExec
                | BuiltInTool::ContainerLogs
                | BuiltInTool::ContainerEnd
        )
    }

    /// Returns whether this is the tool's name.
    pub fn is_named(self, name: &str) -> bool {
        self.as_str() == name
    }
}

impl std::fmt::Display for BuiltInTool {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Returns the schema of the argument that names a file.
fn path_schema() -> Value {
    json!({"type": "string", "description": "Path inside the project, such as notes/plan.md"})
}

/// Returns the schema of the argument that names commits of Git.
fn revision_schema(description: &str) -> Value {
    json!({"type": "string", "maxLength": 1000, "description": description, "optional": true})
}

/// Returns the schema of the argument that names a volume.
fn volume_schema() -> Value {
    json!({"type": "string", "optional": true})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_call_parser;

    #[test]
    fn goals_that_speak_of_git_are_recognized() {
        for git in ["Push it to the remote", "git pull, please", "Who wrote this? Use blame.", "What was committed?"] {
            assert!(mentions_git(git), "{git}");
        }
        for other in ["Write the report", "Which digits are in it?", "Is it different?", ""] {
            assert!(!mentions_git(other), "{other}");
        }
        let for_git: Vec<&BuiltInTool> = BuiltInTool::ALL.iter().filter(|tool| tool.is_for_git()).collect();
        let named: Vec<&BuiltInTool> =
            BuiltInTool::ALL.iter().filter(|tool| tool.as_str().starts_with("git_")).collect();
        assert_eq!(for_git, named);
    }

    #[test]
    fn goals_that_speak_of_pages_are_recognized() {
        for web in ["Fill in the form", "What does https://a.b say?", "Make a screenshot of the website", "www.a.b"] {
            assert!(mentions_web(web), "{web}");
        }
        for other in ["Write the report", "Sort the list", "Perform and format the test", ""] {
            assert!(!mentions_web(other), "{other}");
        }
        let for_browser: Vec<&BuiltInTool> = BuiltInTool::ALL.iter().filter(|tool| tool.is_for_browser()).collect();
        let named: Vec<&BuiltInTool> =
            BuiltInTool::ALL.iter().filter(|tool| tool.as_str().starts_with("browser_")).collect();
        assert_eq!(for_browser, named);
    }

    #[test]
    fn goals_that_speak_of_containers_are_recognized() {
        for meant in ["Run the tests in a container", "Build a Docker image", "Is podman here?", "Which images?"] {
            assert!(mentions_containers(meant), "{meant}");
        }
        for other in ["Write the report", "Imagine a house", ""] {
            assert!(!mentions_containers(other), "{other}");
        }
        let for_containers: Vec<&BuiltInTool> =
            BuiltInTool::ALL.iter().filter(|tool| tool.is_for_containers()).collect();
        let named: Vec<&BuiltInTool> =
            BuiltInTool::ALL.iter().filter(|tool| tool.as_str().starts_with("container_")).collect();
        assert_eq!(for_containers, named);
    }

    #[test]
    fn goals_that_components_serve_are_recognized() {
        for shown in ["Make a dashboard", "An interactive map of it, please", "Write a web component"] {
            assert!(mentions_component(shown), "{shown}");
        }
        for other in ["Write the report", "Plot the yield", ""] {
            assert!(!mentions_component(other), "{other}");
        }
    }

    #[test]
    fn every_tool_is_known_by_its_name_alone() {
        for tool in BuiltInTool::ALL {
            assert_eq!(BuiltInTool::from_name(tool.as_str()), Some(*tool));
        }
        assert_eq!(BuiltInTool::from_name("fly"), None);
        let offered = |tool: &&BuiltInTool| built_in().iter().any(|spec| tool.is_named(&spec.name));
        assert_eq!(BuiltInTool::ALL.iter().filter(offered).count(), built_in().len());
    }

    #[test]
    fn every_schema_holds() {
        for tool in built_in() {
            jsonschema::validator_for(&tool.parameters).unwrap_or_else(|error| panic!("{}: {error}", tool.name));
            assert!(tool.name.len() <= 64 && !tool.description.is_empty());
        }
        let named = |name: &str| built_in().into_iter().find(|tool| tool.name == name).expect("there");
        let object = |value: Value| value.as_object().cloned().expect("an object");
        assert_eq!(tool_call_parser::check_arguments(&named("read_file"), &object(json!({"path": "a.md"}))), Ok(()));
        assert!(tool_call_parser::check_arguments(&named("fetch_url"), &object(json!({"url": "ftp://x"}))).is_err());
        let todos = json!({"todos": [{"content": "a", "priority": "high"}]});
        assert_eq!(tool_call_parser::check_arguments(&named("todo_write"), &object(todos)), Ok(()));
    }
}
