//! The agents of a project: Markdown definitions in `components/agents`, and Python classes in `agents`. They come with
//! the volume and may be written by another person. So none may take the name of a built-in or user's agent, and none
//! gets more rights than any other.

use crate::agent_definition::AgentDefinition;
use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use ruff_python_ast::{Expr, Mod, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse};
use serde_json::json;
use store::BlobHash;

/// Folder of agent definitions in a volume or a project.
pub const AGENT_DEFINITIONS_FOLDER: &str = "components/agents";
/// Folder of Python agents in a volume or a project.
pub const PYTHON_AGENTS_FOLDER: &str = "agents";
/// Maximum size of an agent's file in bytes.
pub const MAX_AGENT_FILE_BYTES: usize = 64 << 10;
/// Maximum number of agents of each kind (Markdown and Python).
const MAX_PROJECT_AGENTS: usize = 100;
/// Stack size for parsing deeply nested Python, in bytes.
const PYTHON_PARSER_STACK_BYTES: usize = 128 << 20;

/// An agent written in Python: `class X: def execute(self, task)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonAgent {
    /// Name of the Python class.
    pub class: String,
    /// Path of the file in the volume.
    pub path: String,
    /// The docstring of the class, or of the module if the class has none.
    pub description: String,
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

/// Returns the first class of a file that has an `execute` method.
fn parse_python_agent(path: &str, code: &str) -> Option<PythonAgent> {
    let parsed = parse(code, ParseOptions::from(Mode::Module)).ok()?;
    let Mod::Module(module) = parsed.syntax() else { return None };
    module.body.iter().find_map(|stmt| {
        let Stmt::ClassDef(class) = stmt else { return None };
        let executes = |stmt: &Stmt| matches!(stmt, Stmt::FunctionDef(function) if function.name.as_str() == "execute");
        class.body.iter().any(executes).then(|| PythonAgent {
            class: class.name.to_string(),
            path: path.to_owned(),
            description: docstring(&class.body).or_else(|| docstring(&module.body)).unwrap_or_default(),
            code: code.to_owned(),
        })
    })
}

impl PythonAgent {
    /// Returns whether a mention of `name` refers to this agent: the name of its class or of its file, ignoring case.
    fn has_name(&self, name: &str) -> bool {
        self.class.eq_ignore_ascii_case(name) || self.file_name().eq_ignore_ascii_case(name)
    }

    /// Returns the name of the agent's file, without folders and ending.
    fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".py")
    }

    /// Returns the hash of the code, which approvals refer to.
    pub fn hash(&self) -> String {
        BlobHash::of(self.code.as_bytes()).to_string().chars().take(16).collect()
    }

    /// Returns a Python program that runs a task with this agent.
    pub fn task_program(&self, task: &str) -> String {
        let task = serde_json::Value::String(task.to_owned()).to_string();
        // JSON string escapes are also valid in Python.
        format!(
            "{}\n\nimport json as _json\n_said = {}().execute({task})\nprint(_said if isinstance(_said, str) else \
             _json.dumps(_said, default=str, indent=2))\n",
            self.code, self.class
        )
    }
}

impl AgentRegistry {
    /// Returns the names of the files that define Python agents, each with the name of its agent.
    pub fn file_names(&self) -> impl Iterator<Item = (String, String)> {
        self.python.iter().map(|agent| (agent.file_name().to_owned(), agent.class.clone()))
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
    for agent in agents {
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
        let program = agent.task_program("say \"\\n\" é");
        assert!(program.contains("PeakFinder().execute(\"say \\\"\\\\n\\\" é\")"), "{program}");
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
