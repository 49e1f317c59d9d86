//! The agents of a project: Markdown definitions in `components/agents`, and Python classes in `agents`. They come with
//! the volume and may be written by another person. So none may take the name of a built-in or user's agent, and none
//! gets more rights than any other. Those of other volumes are called by `volume/name`, if the user trusts the volume.

use crate::agent_definition::AgentDefinition;
use crate::prompt_quote::single_line;
use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use ruff_python_ast::{Expr, Mod, Stmt, StmtFunctionDef};
use ruff_python_parser::{Mode, ParseOptions, parse};
use serde_json::json;
use std::path::PathBuf;
use store::{BlobHash, MessageRole, SessionMessage};

/// Folder of agent definitions in a volume or a project.
pub const AGENT_DEFINITIONS_FOLDER: &str = "components/agents";
/// Folder of Python agents in a volume or a project.
pub const PYTHON_AGENTS_FOLDER: &str = "agents";
/// Maximum size of an agent's file in bytes.
pub const MAX_AGENT_FILE_BYTES: usize = 64 << 10;
/// Maximum number of agents of each kind (Markdown and Python).
const MAX_PROJECT_AGENTS: usize = 100;
/// Maximum number of agents of each kind in all other volumes together.
const MAX_OTHER_AGENTS: usize = 200;
/// Maximum number of capabilities that a docstring lists.
const MAX_CAPABILITIES: usize = 20;
/// Maximum length of a capability in characters.
const MAX_CAPABILITY_CHARS: usize = 60;
/// Word before the list of capabilities in a docstring, with its colon.
const CAPABILITIES_HEADING: &str = "capabilities:";
/// Name of the parameter of `execute` that gets the conversation.
const CONTEXT_PARAMETER: &str = "context";
/// Maximum number of messages that a Python agent gets of its conversation.
const MAX_CONTEXT_MESSAGES: usize = 10;
/// Maximum length of each of these messages in characters.
const MAX_CONTEXT_MESSAGE_CHARS: usize = 4_000;
/// Stack size for parsing deeply nested Python, in bytes.
const PYTHON_PARSER_STACK_BYTES: usize = 128 << 20;

/// An agent written in Python: `class X: def execute(self, task)`, or `def execute(self, task, context)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonAgent {
    /// Name by which it's called: that of the class, after the volume's if it comes from another volume.
    pub name: String,
    /// Name of the Python class.
    pub class: String,
    /// Path of the file in the volume.
    pub path: String,
    /// The docstring of the class, or of the module if the class has none.
    pub description: String,
    /// What the docstring lists after `Capabilities:`, with commas or as a list.
    pub capabilities: Vec<String>,
    /// Whether `execute` takes the conversation.
    takes_context: bool,
    /// The file's source code.
    pub code: String,
}

/// The agents of a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentRegistry {
    /// Agents defined in Markdown files.
    pub definitions: Vec<AgentDefinition>,
    /// Agents defined in Python files.
    pub python: Vec<PythonAgent>,
    /// Files that can't be read, each with its reason.
    pub problems: Vec<String>,
    /// Agents of other volumes that aren't used, because the user doesn't trust these: each as volume and name.
    pub untrusted: Vec<(String, String)>,
}

/// A volume whose agents can be called from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentVolume {
    /// Name of the volume, which comes before the names of its agents.
    pub name: String,
    /// The volume's folder.
    pub root: PathBuf,
    /// Whether its agents are used, because the user trusts the volume.
    pub is_trusted: bool,
}

/// Returns a path relative to its project, if it's in one.
fn path_in_project(path: &str) -> &str {
    path.strip_prefix("projects/").and_then(|rest| rest.split_once('/')).map_or(path, |(_, rest)| rest)
}

/// Returns whether a file, by its path, may define an agent.
pub fn is_agent_file(path: &str) -> bool {
    let inside = |folder: &str| {
        let name = path_in_project(path).strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/') && !name.starts_with('.'))
    };
    (path.ends_with(".md") && inside(AGENT_DEFINITIONS_FOLDER))
        || (path.ends_with(".py") && (inside(PYTHON_AGENTS_FOLDER) || inside(AGENT_DEFINITIONS_FOLDER)))
}

/// Returns the docstring of a body.
fn docstring(body: &[Stmt]) -> Option<String> {
    let Stmt::Expr(first) = body.first()? else { return None };
    let Expr::StringLiteral(text) = first.value.as_ref() else { return None };
    Some(text.value.to_str().trim().chars().take(2_000).collect())
}

/// Returns what a docstring lists after `Capabilities:`, on the same line with commas or below with bullets.
fn listed_capabilities(docstring: &str) -> Vec<String> {
    let after_heading = |line: &str| {
        let (heading, rest) = line.trim().split_at_checked(CAPABILITIES_HEADING.len())?;
        heading.eq_ignore_ascii_case(CAPABILITIES_HEADING).then(|| rest.trim().to_owned())
    };
    let mut lines = docstring.lines();
    let Some(inline) = lines.find_map(after_heading) else { return Vec::new() };
    let below = lines.map(str::trim).skip_while(|line| line.is_empty());
    let bulleted = below.map_while(|line| line.strip_prefix(['-', '*', '•'])).map(str::to_owned);
    let listed = inline.split(',').map(str::to_owned).chain(bulleted.filter(|_| inline.is_empty()));
    let short = |one: String| one.trim().chars().take(MAX_CAPABILITY_CHARS).collect::<String>();
    listed.map(short).filter(|one| !one.is_empty()).take(MAX_CAPABILITIES).collect()
}

/// Returns whether a method can be called with `context=…`.
fn has_context_parameter(function: &StmtFunctionDef) -> bool {
    let named = function.parameters.args.iter().chain(function.parameters.kwonlyargs.iter());
    named.into_iter().any(|one| one.parameter.name.as_str() == CONTEXT_PARAMETER)
}

/// Returns the first class of a file that has an `execute` method.
fn parse_python_agent(path: &str, code: &str) -> Option<PythonAgent> {
    let parsed = parse(code, ParseOptions::from(Mode::Module)).ok()?;
    let Mod::Module(module) = parsed.syntax() else { return None };
    module.body.iter().find_map(|stmt| {
        let Stmt::ClassDef(class) = stmt else { return None };
        let execute = class.body.iter().find_map(|stmt| {
            let Stmt::FunctionDef(function) = stmt else { return None };
            (function.name.as_str() == "execute").then_some(function)
        })?;
        let description = docstring(&class.body).or_else(|| docstring(&module.body)).unwrap_or_default();
        Some(PythonAgent {
            name: class.name.to_string(),
            class: class.name.to_string(),
            path: path.to_owned(),
            capabilities: listed_capabilities(&description),
            description,
            takes_context: has_context_parameter(execute),
            code: code.to_owned(),
        })
    })
}

impl PythonAgent {
    /// Returns whether a mention of `name` refers to this agent: the name of its class or of its file, ignoring case.
    fn has_name(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.called_file().eq_ignore_ascii_case(name)
    }

    /// Returns the name by which it's called after its file.
    fn called_file(&self) -> String {
        let volume = self.name.strip_suffix(self.class.as_str()).unwrap_or_default();
        format!("{volume}{}", self.file_name())
    }

    /// Returns the name of the agent's file, without folders and ending.
    fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".py")
    }

    /// Returns the hash of the code, which approvals refer to.
    pub fn hash(&self) -> String {
        BlobHash::of(self.code.as_bytes()).to_string().chars().take(16).collect()
    }

    /// Returns what `execute` gets as context: the last messages of the conversation, oldest first.
    fn context(&self, messages: &[SessionMessage]) -> serde_json::Value {
        let is_said = |message: &&SessionMessage| message.role != MessageRole::System && !message.content.is_empty();
        let said = |message: &SessionMessage| {
            let content: String = message.content.chars().take(MAX_CONTEXT_MESSAGE_CHARS).collect();
            json!({"role": message.role.as_str(), "content": content})
        };
        let last: Vec<&SessionMessage> = messages.iter().rev().filter(is_said).take(MAX_CONTEXT_MESSAGES).collect();
        let messages: Vec<serde_json::Value> = last.into_iter().rev().map(said).collect();
        json!({"agent": self.class, "messages": messages})
    }

    /// Returns a Python program that runs a task with this agent, in a conversation.
    pub fn task_program(&self, task: &str, messages: &[SessionMessage]) -> String {
        // JSON string escapes are also valid in Python.
        let literal = |text: String| serde_json::Value::String(text).to_string();
        let mut arguments = literal(task.to_owned());
        if self.takes_context {
            let context = literal(self.context(messages).to_string());
            arguments.push_str(&format!(", {CONTEXT_PARAMETER}=_json.loads({context})"));
        }
        format!(
            "{}\n\nimport json as _json\n_said = {}().execute({arguments})\nprint(_said if isinstance(_said, str) else \
             _json.dumps(_said, default=str, indent=2))\n",
            self.code, self.class
        )
    }
}

impl AgentRegistry {
    /// Returns the names of the files that define Python agents, each with the name of its agent.
    pub fn file_names(&self) -> impl Iterator<Item = (String, String)> {
        self.python.iter().map(|agent| (agent.called_file(), agent.name.clone()))
    }

    /// Adds the agents of another volume, which are called by the volume's name and their own. If the user doesn't
    /// trust it, only their names are kept.
    pub fn add_volume(&mut self, volume: &str, is_trusted: bool, other: AgentRegistry) {
        let called = |name: &str| format!("{volume}/{name}");
        if !is_trusted {
            let names = other.definitions.into_iter().map(|agent| agent.name);
            let names = names.chain(other.python.into_iter().map(|agent| agent.name));
            self.untrusted.extend(names.map(|name| (volume.to_owned(), name)));
            self.untrusted.truncate(MAX_OTHER_AGENTS);
            return;
        }
        let from_others = self.definitions.iter().filter(|agent| agent.volume.is_some()).count();
        let definitions = other.definitions.into_iter().map(|agent| AgentDefinition {
            name: called(&agent.name),
            path: agent.path.as_deref().map(called),
            volume: Some(volume.to_owned()),
            ..agent
        });
        self.definitions.extend(definitions.take(MAX_OTHER_AGENTS.saturating_sub(from_others)));
        let from_others = self.python.iter().filter(|agent| agent.name != agent.class).count();
        let python = other.python.into_iter().map(|agent| PythonAgent {
            name: called(&agent.class),
            path: called(&agent.path),
            ..agent
        });
        self.python.extend(python.take(MAX_OTHER_AGENTS.saturating_sub(from_others)));
    }

    /// Returns why an agent of another volume isn't used, if only volumes that the user doesn't trust have one of this
    /// name. `name` may begin with the volume's.
    pub fn untrusted_reason(&self, name: &str) -> Option<String> {
        let is_called = |(volume, own): &&(String, String)| {
            own.eq_ignore_ascii_case(name) || format!("{volume}/{own}").eq_ignore_ascii_case(name)
        };
        let (volume, own) = self.untrusted.iter().find(is_called)?;
        let (volume, own) = (single_line(volume, 100), single_line(own, 60));
        Some(format!(
            "The agent {own} is in the volume {volume}, which you don't trust. To trust it: tracebook volumes trust \
             {volume}."
        ))
    }

    /// Reads the agents in `files` (path inside the volume, and text). Of two definitions with the same name, the first
    /// wins, so a project's files must come before those of the volume.
    pub fn read(files: impl IntoIterator<Item = (String, String)>) -> AgentRegistry {
        let mut crew = AgentRegistry::default();
        for (path, text) in files {
            if !is_agent_file(&path) || text.len() > MAX_AGENT_FILE_BYTES {
                continue;
            }
            if path.ends_with(".py") {
                let caught = || std::panic::catch_unwind(|| parse_python_agent(&path, &text)).ok().flatten();
                let read =
                    text::python_scope::is_shallow(&text).then(|| stacker::grow(PYTHON_PARSER_STACK_BYTES, caught));
                match read.flatten() {
                    Some(agent) if crew.python.len() < MAX_PROJECT_AGENTS => crew.python.push(agent),
                    Some(_) => {}
                    None => crew.problems.push(format!("it has no class with `def execute(self, task)`: {path}")),
                }
            } else if crew.definitions.len() < MAX_PROJECT_AGENTS {
                match AgentDefinition::parse(&text) {
                    Ok(agent) if agent.name.contains('/') => {
                        crew.problems.push(format!("the name of an agent contains no /: {path}"));
                    }
                    Ok(agent) if crew.definitions.iter().all(|known| known.name != agent.name) => {
                        crew.problems.extend(agent.unknown_keys().into_iter().map(|said| format!("{said}: {path}")));
                        if agent.llm_provider.is_some() {
                            crew.problems.push(format!(
                                "an agent of a project can't choose the provider; choose it in config.yaml under \
                                 agents.specialists: {path}"
                            ));
                        }
                        // Another person may have written the file, and the choice decides who reads the notes.
                        crew.definitions.push(AgentDefinition { path: Some(path), llm_provider: None, ..agent });
                    }
                    Ok(_) => {}
                    Err(why) => crew.problems.push(format!("{why}: {path}")),
                }
            }
        }
        crew
    }

    /// Returns the Python agent with this name.
    pub fn find_python_agent(&self, name: &str) -> Option<&PythonAgent> {
        self.python.iter().find(|agent| agent.has_name(name))
    }
}

/// Returns the agent whose `when` words match the goal best, and the reason, for rule-based delegation. `None` if
/// there's no single best match.
pub fn best_matching_agent<'a>(
    goal: &str,
    agents: impl Iterator<Item = &'a AgentDefinition>,
) -> Option<(String, String)> {
    let lower = goal.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut best: Vec<(usize, &AgentDefinition, Vec<&str>)> = Vec::new();
    // Those of other volumes work only if they're named.
    for agent in agents.filter(|agent| agent.volume.is_none()) {
        // A prefix is enough for longer words: `test` matches `tests` and `testing`.
        let fits = |when: &&String| {
            words.iter().any(|word| *word == when.as_str() || when.len() > 3 && word.starts_with(when.as_str()))
        };
        let shared: Vec<&str> = agent.when.iter().filter(fits).map(String::as_str).collect();
        if !shared.is_empty() {
            best.push((shared.len(), agent, shared));
        }
    }
    let most = best.iter().map(|(count, _, _)| *count).max()?;
    best.retain(|(count, _, _)| *count == most);
    match best.as_slice() {
        // If two agents match equally well, the rule doesn't decide.
        [(_, agent, shared)] => Some((agent.name.clone(), format!("it speaks of {}", shared.join(", ")))),
        _ => None,
    }
}

/// Returns the tool that runs a Python agent, with the same risk and permissions as running Python.
pub fn python_agent_tool() -> ToolSpec {
    ToolSpec {
        name: BuiltInTool::RunAgent.to_string(),
        description: "An agent of the project, in Python.".to_owned(),
        parameters: json!({"type": "object", "additionalProperties": false, "required": ["agent", "code", "task"],
            "properties": {"agent": {"type": "string"}, "code": {"type": "string"}, "task": {"type": "string"}}}),
        risk: ToolRisk::Medium,
        permissions: ToolPermissions { network: false, fs: true, process: true, ui: false },
        idempotent: false,
        source: ToolSource::BuiltIn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAKS: &str = "\"\"\"A file.\"\"\"\nimport math\n\nclass Helper:\n    pass\n\nclass PeakFinder:\n    \
                         \"\"\"Finds peaks.\"\"\"\n    def execute(self, task):\n        return task.upper()\n";

    fn crew(files: &[(&str, &str)]) -> AgentRegistry {
        AgentRegistry::read(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())))
    }

    #[test]
    fn agents_of_other_volumes_have_its_name_and_are_used_only_if_it_is_trusted() {
        let poet = |prompt: &str| format!("---\nname: poet\nwhen: [verse]\n---\n{prompt}\n");
        let files = [("components/agents/poet.md", poet("You rhyme.")), ("agents/peaks.py", PEAKS.to_owned())];
        let garden = || AgentRegistry::read(files.iter().map(|(path, text)| ((*path).to_owned(), text.clone())));
        let mut all = crew(&[("components/agents/poet.md", poet("Another.").as_str())]);
        all.add_volume("Garden", true, garden());
        all.add_volume("Far", false, garden());
        let names: Vec<&str> = all.definitions.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["poet", "Garden/poet"]);
        assert_eq!(all.definitions[1].path.as_deref(), Some("Garden/components/agents/poet.md"));
        let agent = all.find_python_agent("garden/peaks").expect("by its file");
        assert_eq!((agent.name.as_str(), agent.class.as_str()), ("Garden/PeakFinder", "PeakFinder"));
        assert!(agent.task_program("x", &[]).contains("PeakFinder().execute("), "it runs by its class");
        assert!(all.find_python_agent("PeakFinder").is_none(), "without the volume's name it is another agent");
        let why = all.untrusted_reason("Far/poet").expect("it is not used");
        assert!(why.contains("tracebook volumes trust Far"), "{why}");
        assert_eq!(
            (all.untrusted_reason("far/peakfinder").is_some(), all.untrusted_reason("Garden/poet")),
            (true, None)
        );
        let best = best_matching_agent("a verse", all.definitions.iter()).map(|(name, _)| name);
        assert_eq!(best.as_deref(), Some("poet"), "the rules choose none of another volume");
        // A file can't name its agent so that it seems to be another volume's.
        let named = crew(&[("components/agents/x.md", "---\nname: Garden/poet\n---\nX.\n")]);
        assert_eq!((named.definitions.len(), named.problems.len()), (0, 1), "{:?}", named.problems);
    }

    #[test]
    fn a_project_brings_its_agents() {
        let poet = "---\nname: poet\ndescription: x\ntools: [read_file]\n---\nYou rhyme.\n";
        let files = [
            ("projects/x/components/agents/poet.md", poet),
            ("components/agents/poet.md", "---\nname: poet\n---\nAnother.\n"),
            ("agents/peaks.py", PEAKS),
            ("agents/broken.py", "class X(:\n"),
            ("agents/none.py", "def execute(task): pass\n"),
            ("notes/agents/a.py", PEAKS),
            ("components/agents/deep/a.md", poet),
        ];
        let crew = crew(&files);
        let names: Vec<(&str, &str)> =
            crew.definitions.iter().map(|one| (one.name.as_str(), one.prompt.as_str())).collect();
        assert_eq!(names, [("poet", "You rhyme.")]);
        assert_eq!(crew.definitions[0].path.as_deref(), Some("projects/x/components/agents/poet.md"));
        let agent = crew.find_python_agent("peakfinder").expect("by its class");
        assert_eq!(Some(agent), crew.find_python_agent("peaks"));
        assert_eq!((agent.class.as_str(), agent.description.as_str()), ("PeakFinder", "Finds peaks."));
        assert_eq!((crew.python.len(), crew.problems.len()), (1, 2), "{:?}", crew.problems);
        let program = agent.task_program("say \"\\n\" é", &[]);
        assert!(program.contains("PeakFinder().execute(\"say \\\"\\\\n\\\" é\")"), "{program}");
    }

    #[test]
    fn a_docstring_lists_capabilities_and_execute_may_take_the_conversation() {
        let read = |docstring: &str, parameters: &str| {
            let code =
                format!("class A:\n    \"\"\"{docstring}\"\"\"\n    def execute(self, {parameters}):\n        pass\n");
            let agent = crew(&[("agents/a.py", code.as_str())]).python.remove(0);
            (agent.capabilities.join("|"), agent.takes_context)
        };
        assert_eq!(
            read("Does.\n\n    Capabilities: fft, filter design\n    - no\n", "task"),
            ("fft|filter design".to_owned(), false)
        );
        assert_eq!(
            read("CAPABILITIES:\n\n    - fft\n    * plots \n    Else: x\n    - y\n", "task, context=None").0,
            "fft|plots"
        );
        assert!(read("x", "task, context=None").1 && read("x", "task, *, context").1);
        assert_eq!(read("Has many capabilities: none\n", "task, context, /"), (String::new(), false));
        let code = "class A:\n    def execute(self, task, context): pass\n";
        let agent = crew(&[("agents/a.py", code)]).python.remove(0);
        let said = SessionMessage::new(store::MessageId(1), MessageRole::User, "hö \"x\"".to_owned(), 0);
        let program = agent.task_program("t", &[said]);
        assert!(program.contains("A().execute(\"t\", context=_json.loads(\"{"), "{program}");
        assert!(program.contains(r#"hö \\\"x\\\""#), "{program}");
    }

    #[test]
    fn rules_say_who_fits() {
        let all = crate::agent_definition::built_in();
        let who = |goal: &str| best_matching_agent(goal, all.iter()).map(|(name, _)| name);
        for (goal, name) in [
            ("Write tests for the parser and reproduce the bug", Some("qa")),
            ("Design a page with a component for the dashboard", Some("frontend")),
            ("Add an endpoint to the API and a database table", Some("backend")),
            ("Deploy the service with a pipeline", Some("devops")),
            ("Audit the login for vulnerabilities", Some("security")),
            ("Update the README and the documentation", Some("docs")),
            ("Plot the rows of data.csv", Some("data")),
            ("Sing a song", None),
            ("", None),
        ] {
            assert_eq!(who(goal).as_deref(), name, "{goal}");
        }
    }
}
