//! What the built-in tools take from the machine that runs them: its system, processor and shell, and whether it has a
//! container engine. The host detects it; here it's plain data.

use crate::tool_catalog::{self, BuiltInTool};
use crate::tool_spec::ToolSpec;

/// Facts about the machine that runs tools. The default knows nothing, and has all tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolMachine {
    /// Kind of system, such as `linux` or `wsl`; empty if it's unknown.
    pub system: String,
    /// Processor architecture, such as `x86_64`.
    pub arch: String,
    /// Path of the shell that runs commands.
    pub shell: String,
    /// Whether there is no container engine, and none is configured.
    pub lacks_containers: bool,
}

impl ToolMachine {
    /// Returns the built-in tools of this machine, in the order in which they are offered to models.
    pub fn built_in_tools(&self) -> Vec<ToolSpec> {
        let mut tools = tool_catalog::built_in();
        let is_kept = |tool: &ToolSpec| {
            !self.lacks_containers || !BuiltInTool::from_name(&tool.name).is_some_and(BuiltInTool::is_for_containers)
        };
        tools.retain(is_kept);
        let shell = tools.iter_mut().find(|tool| BuiltInTool::Shell.is_named(&tool.name));
        if let Some(shell) = shell.filter(|_| !self.system.is_empty()) {
            let about = format!(" The system is {} on {}, the shell {}.", self.system, self.arch, self.shell);
            shell.description.push_str(&about);
        }
        tools
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(tools: &[ToolSpec], tool: BuiltInTool) -> Option<&str> {
        tools.iter().find(|one| tool.is_named(&one.name)).map(|one| one.description.as_str())
    }

    #[test]
    fn a_machine_that_nothing_is_known_about_has_all_tools_as_they_are() {
        assert_eq!(ToolMachine::default().built_in_tools(), tool_catalog::built_in());
    }

    #[test]
    fn the_shell_says_what_it_runs_on() {
        let machine = ToolMachine {
            system: "wsl".to_owned(),
            arch: "aarch64".to_owned(),
            shell: "/bin/sh".to_owned(),
            lacks_containers: false,
        };
        let (plain, tools) = (tool_catalog::built_in(), machine.built_in_tools());
        let said = description(&tools, BuiltInTool::Shell).expect("a shell");
        assert!(said.ends_with(" The system is wsl on aarch64, the shell /bin/sh."), "{said}");
        assert!(said.starts_with(description(&plain, BuiltInTool::Shell).expect("a shell")), "{said}");
        let differs = |(one, other): &(&ToolSpec, &ToolSpec)| one != other;
        assert_eq!(plain.len(), tools.len());
        assert_eq!(plain.iter().zip(&tools).filter(differs).count(), 1);
    }

    #[test]
    fn only_the_tools_for_containers_need_an_engine() {
        let (all, tools) = (
            tool_catalog::built_in(),
            ToolMachine { lacks_containers: true, ..ToolMachine::default() }.built_in_tools(),
        );
        let missing: Vec<&str> =
            all.iter().filter(|tool| !tools.contains(tool)).map(|tool| tool.name.as_str()).collect();
        assert!(missing.iter().all(|name| name.starts_with("container_")), "{missing:?}");
        assert_eq!(missing.len(), 7);
        assert!(description(&tools, BuiltInTool::BrowserOpen).is_some(), "it says which package to install");
    }
}
