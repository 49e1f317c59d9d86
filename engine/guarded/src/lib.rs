//! Files that other programs execute or load as code, so that writing them always needs approval. One table for file
//! tools, shell, Python and cells; it uses names only and touches no file.
//!
//! A path is relative to the folder that a tool or a cell may write: the volume, a note's folder, a granted folder.

/// Folders that a program reads, wherever they are.
const GUARDED_FOLDERS: &[(&str, &str)] = &[
    (".git", "git runs hooks and programs that are named there"),
    (".tracebook-github", "commits go to the repository that is named there"),
    (".hg", "Mercurial runs hooks that are named there"),
    (".svn", "Subversion reads settings there"),
    (".vscode", "Visual Studio Code runs tasks and programs that are named there"),
    (".idea", "JetBrains IDEs run configurations that lie there"),
    (".fleet", "JetBrains Fleet runs configurations that lie there"),
    (".vs", "Visual Studio runs tasks that lie there"),
    (".zed", "Zed runs tasks and programs that are named there"),
    (".helix", "Helix starts programs that are named there"),
    (".windsurf", "Windsurf runs servers that are named there"),
    (".trae", "Trae runs servers that are named there"),
    (".continue", "Continue runs servers that are named there"),
    (".junie", "Junie runs servers that are named there"),
    (".clinerules", INSTRUCTIONS_REASON),
    (".cursor", "Cursor runs servers that are named there"),
    (".claude", "Claude Code runs hooks that are named there"),
    (".codex", "Codex runs programs that are named there"),
    (".gemini", "Gemini runs programs that are named there"),
    (".opencode", "opencode loads plugins from there"),
    (".qwen", "Qwen Code runs programs that are named there"),
    (".kiro", "Kiro runs hooks and servers that are named there"),
    (".roo", "Roo Code runs servers that are named there"),
    (".amazonq", "Amazon Q runs servers that are named there"),
    (".devcontainer", "editors run commands that are named there"),
    (".obsidian", "Obsidian loads plugins from there"),
    (".logseq", "Logseq loads plugins from there"),
    (".husky", "git runs hooks that lie there"),
    (".githooks", "git runs hooks that lie there"),
    (".lefthook", "git runs hooks that lie there"),
    (".github", "GitHub runs workflows that lie there"),
    (".gitlab", "GitLab runs pipelines that lie there"),
    (".forgejo", "Forgejo runs workflows that lie there"),
    (".gitea", "Gitea runs workflows that lie there"),
    (".circleci", "CircleCI runs pipelines that lie there"),
    (".woodpecker", "Woodpecker runs pipelines that lie there"),
    (".buildkite", "Buildkite runs pipelines that lie there"),
    (".mise", "mise runs hooks that are named there"),
    (".direnv", "direnv loads what lies there"),
    (".venv", "Python, editors and Jupyter run programs from there"),
    ("venv", "Python, editors and Jupyter run programs from there"),
    (".ipython", "IPython runs startup files from there"),
    (".jupyter", "Jupyter runs configuration files from there"),
    (".ssh", "ssh runs programs that are named there"),
    (".gnupg", "GnuPG runs programs that are named there"),
    (".config", "programs load their settings from there"),
    (".local", "desktops and shells run programs from there"),
];

/// Files that a program executes automatically, wherever they are.
const GUARDED_FILES: &[(&str, &str)] = &[
    (".envrc", "direnv runs it"),
    (".autoenv", "autoenv runs it"),
    (".autoenv.zsh", "autoenv runs it"),
    (".mise.toml", "mise runs hooks that are named in it"),
    ("mise.toml", "mise runs hooks that are named in it"),
    (".mise.local.toml", "mise runs hooks that are named in it"),
    ("mise.local.toml", "mise runs hooks that are named in it"),
    (".devcontainer.json", "editors run commands that are named in it"),
    (".pre-commit-config.yaml", "git runs hooks that are named in it"),
    (".pre-commit-config.yml", "git runs hooks that are named in it"),
    ("lefthook.yml", "git runs hooks that are named in it"),
    ("lefthook.yaml", "git runs hooks that are named in it"),
    (".lefthook.yml", "git runs hooks that are named in it"),
    (".lefthook.yaml", "git runs hooks that are named in it"),
    ("lefthook-local.yml", "git runs hooks that are named in it"),
    (".lefthook-local.yml", "git runs hooks that are named in it"),
    (".overcommit.yml", "git runs hooks that are named in it"),
    (".gitlab-ci.yml", "GitLab runs it"),
    (".gitconfig", "git runs programs that are named in it"),
    (".mcp.json", "assistants start programs that are named in it"),
    ("opencode.json", "opencode starts programs that are named in it"),
    ("opencode.jsonc", "opencode starts programs that are named in it"),
    ("crush.json", "Crush starts programs that are named in it"),
    (".crush.json", "Crush starts programs that are named in it"),
    (".aider.conf.yml", "aider runs commands that are named in it"),
    (".exrc", "Vim runs it"),
    (".vimrc", "Vim runs it"),
    (".nvimrc", "Neovim runs it"),
    (".nvim.lua", "Neovim runs it"),
    (".lvimrc", "Vim runs it"),
    (".lazy.lua", "Neovim runs it"),
    (".dir-locals.el", "Emacs evaluates it"),
    (".dir-locals-2.el", "Emacs evaluates it"),
    (".emacs", "Emacs evaluates it"),
    (".gdbinit", "the debugger gdb runs it"),
    (".lldbinit", "the debugger lldb runs it"),
    (".bashrc", "the shell runs it"),
    (".bash_profile", "the shell runs it"),
    (".bash_login", "the shell runs it"),
    (".bash_logout", "the shell runs it"),
    (".profile", "the shell runs it"),
    (".zshrc", "the shell runs it"),
    (".zshenv", "the shell runs it"),
    (".zprofile", "the shell runs it"),
    (".zlogin", "the shell runs it"),
    (".zlogout", "the shell runs it"),
    (".cshrc", "the shell runs it"),
    (".tcshrc", "the shell runs it"),
    (".login", "the shell runs it"),
    (".xprofile", "the desktop runs it"),
    (".xsession", "the desktop runs it"),
    (".xinitrc", "the desktop runs it"),
    (".rprofile", "R runs it"),
    (".renviron", "R loads libraries from where it says"),
    (".rdata", "R loads code from it"),
    (".octaverc", "Octave runs it"),
    (".ghci", "GHCi runs it"),
    (".irbrc", "Ruby's shell runs it"),
    (".pryrc", "Ruby's shell runs it"),
    (".iex.exs", "Elixir's shell runs it"),
    (".ocamlinit", "OCaml's shell runs it"),
    (".pdbrc", "Python's debugger runs it"),
    (".perldb", "Perl's debugger runs it"),
    (".cursorrules", INSTRUCTIONS_REASON),
    (".windsurfrules", INSTRUCTIONS_REASON),
    (".roorules", INSTRUCTIONS_REASON),
    (".goosehints", INSTRUCTIONS_REASON),
    ("sitecustomize.py", "Python runs it at every start"),
    ("usercustomize.py", "Python runs it at every start"),
];

/// Files that run elsewhere, once they were committed and pushed.
const PIPELINE_FILES: &[(&str, &str)] = &[
    (".travis.yml", "Travis CI runs it"),
    (".drone.yml", "Drone runs it"),
    (".cirrus.yml", "Cirrus CI runs it"),
    ("azure-pipelines.yml", "Azure Pipelines runs it"),
    ("bitbucket-pipelines.yml", "Bitbucket Pipelines runs it"),
    ("jenkinsfile", "Jenkins runs it"),
];

/// Files that agents take as instructions, wherever they are, also in lower case.
const INSTRUCTION_FILES: &[(&str, &str)] = &[
    ("AGENTS.md", "agents.md"),
    ("AGENTS.override.md", "agents.override.md"),
    ("CLAUDE.md", "claude.md"),
    ("CLAUDE.local.md", "claude.local.md"),
    ("GEMINI.md", "gemini.md"),
    ("QWEN.md", "qwen.md"),
    ("CRUSH.md", "crush.md"),
    ("WARP.md", "warp.md"),
    ("SKILL.md", "skill.md"),
];
/// Such a file, as a reason.
const INSTRUCTIONS_REASON: &str = "agents take it as instructions";

/// Where a volume and its projects keep agents.
const AGENTS_REASON: &str = "agents are loaded from there";
/// A folder with such a file can pass for a git repository.
const REPOSITORY_REASON: &str = "git would take its folder for a repository and run programs that are named in it";
/// The folder `.git`, as a reason.
const GIT_REASON: &str = GUARDED_FOLDERS[0].1;

/// Why writing this path always asks; `None`: it is an ordinary file.
///
/// `path` is relative to the folder that may be written, its parts separated by `/` (and `\`).
pub fn guarded_reason(path: &str) -> Option<&'static str> {
    find_reason(path, false)
}

/// The same for programs that run behind walls, such as git: what a repository keeps as data may be written, what git
/// executes or reads settings from may not.
pub fn guarded_reason_for_programs(path: &str) -> Option<&'static str> {
    find_reason(path, true)
}

/// Why another device may not make this file here: programs of this device would obey it, such as a virtual environment
/// or a Git repository. Agents and instructions may come: they are text, and count only where the user trusts them.
pub fn executed_reason(path: &str) -> Option<&'static str> {
    let is_elsewhere = |why: &str| PIPELINE_FILES.iter().any(|(_, known)| *known == why);
    find_reason(path, false).filter(|why| *why != AGENTS_REASON && *why != INSTRUCTIONS_REASON && !is_elsewhere(why))
}

/// The entries that would be guarded below `path` and are not elsewhere: who renames a folder that holds one of them to
/// `path` makes it guarded. `*` stands for every folder with such entries.
pub fn names_that_become_guarded(path: &str) -> &'static [&'static str] {
    let parts = folded_parts(path);
    let last = parts.last().map(String::as_str).unwrap_or_default();
    if last == "components" || (parts.len() == 2 && parts[0] == "projects") {
        &["agents"]
    } else if parts.len() == 1 && last == "projects" {
        &["*"]
    } else {
        &[]
    }
}

fn find_reason(path: &str, programs: bool) -> Option<&'static str> {
    let parts = folded_parts(path);
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        if part == ".git" {
            return (!programs || last || !is_git_data(&parts[at + 1..])).then_some(GIT_REASON);
        }
        if let Some((_, why)) = GUARDED_FOLDERS.iter().find(|(name, _)| name == part) {
            return Some(why);
        }
        if let Some((_, why)) = GUARDED_FILES.iter().chain(PIPELINE_FILES).find(|(name, _)| name == part) {
            return Some(why);
        }
    }
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    if name == "HEAD" || (!cfg!(target_os = "linux") && parts.last().is_some_and(|last| last == "head")) {
        return Some(REPOSITORY_REASON);
    }
    // Where names differ by case, `agents.md` is a note like any other.
    let is_instruction = |(exact, lower): &&(&str, &str)| {
        name == *exact || (!cfg!(target_os = "linux") && parts.last().is_some_and(|last| last == lower))
    };
    if INSTRUCTION_FILES.iter().any(|file| is_instruction(&file)) {
        return Some(INSTRUCTIONS_REASON);
    }
    let own = match &parts[..] {
        [projects, _, rest @ ..] if projects == "projects" => rest,
        all => all,
    };
    let is_agents = |parts: &[String]| parts.first().is_some_and(|first| first == "agents");
    let nested = parts.windows(2).any(|two| two[0] == "components" && two[1] == "agents");
    // It only keeps an empty folder in Git.
    if parts.last().is_some_and(|last| last == ".gitkeep") {
        return None;
    }
    (is_agents(own) || is_agents(&parts) || nested).then_some(AGENTS_REASON)
}

/// Whether this path below `.git` is data: objects, references, the index, messages. Everything that is not known to be
/// data counts as settings.
fn is_git_data(below: &[String]) -> bool {
    const GIT_DATA_FOLDERS: [&str; 4] = ["objects", "refs", "logs", "lfs"];
    const GIT_DATA_FILES: [&str; 15] = [
        "head",
        "index",
        "packed-refs",
        "packed-refs.new",
        "commit_editmsg",
        "merge_msg",
        "merge_mode",
        "merge_rr",
        "squash_msg",
        "tag_editmsg",
        "shallow",
        "gc.pid",
        "gc.log",
        "auto_merge",
        "fetch_head",
    ];
    // Who reads the repository outside of the walls would read the folders that are named there.
    if below.last().is_some_and(|last| strip_lock(last).ends_with("alternates")) {
        return false;
    }
    // Settings and programs of submodules and worktrees are deeper.
    const GIT_SETTINGS_NAMES: [&str; 9] = [
        "config",
        "config.worktree",
        "hooks",
        "commondir",
        "gitdir",
        "info",
        "rebase-merge",
        "rebase-apply",
        "sequencer",
    ];
    let below = match below {
        [modules, name, rest @ ..] if modules == "modules" || modules == "worktrees" => {
            if GIT_SETTINGS_NAMES
                .iter()
                .any(|never| name == never || rest.iter().any(|part| strip_lock(part) == *never))
            {
                return false;
            }
            // The name of a submodule may have several parts.
            let begin = rest.iter().position(|part| {
                GIT_DATA_FOLDERS.contains(&part.as_str())
                    || GIT_DATA_FILES.contains(&strip_lock(part))
                    || part.ends_with("_head")
            });
            match begin {
                Some(begin) => &rest[begin..],
                None => return false,
            }
        }
        below => below,
    };
    match below {
        [only] => {
            let name = strip_lock(only);
            GIT_DATA_FOLDERS.contains(&only.as_str())
                || GIT_DATA_FILES.contains(&name)
                || name.ends_with("_head")
                || name.starts_with("sharedindex.")
                || name.starts_with("index.")
                || name.starts_with("next-index-")
                || name.starts_with(".merge_file_")
        }
        // Lists for web servers.
        [info, name] if info == "info" => name.starts_with("refs") || name.starts_with("rev-cache"),
        [first, ..] => GIT_DATA_FOLDERS.contains(&first.as_str()),
        [] => false,
    }
}

fn strip_lock(name: &str) -> &str {
    name.strip_suffix(".lock").unwrap_or(name)
}

/// The parts of a path as file systems that fold them see them.
fn folded_parts(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(fold_name(part)),
        }
    }
    parts
}

/// One name in its one form: macOS and Windows take `.GIT`, `.git. ` and `git~1` for `.git`, and macOS overlooks some
/// letters.
fn fold_name(name: &str) -> String {
    let seen: String = name
        .chars()
        .filter(|letter| {
            !matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
        })
        .flat_map(char::to_lowercase)
        .collect();
    // A stream of a file on Windows is the file.
    let seen = seen.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']);
    match seen {
        "" => name.to_owned(),
        "git~1" | "git~2" => ".git".to_owned(),
        seen => seen.replace('\u{17f}', "s").replace('\u{212a}', "k"),
    }
}

/// Returns names guarded everywhere, for sandboxes based on patterns.
pub fn guarded_names() -> impl Iterator<Item = &'static str> {
    let instructions = INSTRUCTION_FILES.iter().map(|(_, lower)| *lower);
    GUARDED_FOLDERS.iter().chain(GUARDED_FILES).chain(PIPELINE_FILES).map(|(name, _)| *name).chain(instructions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_execute_is_guarded_in_every_spelling() {
        for path in [
            ".git",
            ".git/hooks/pre-commit",
            "sub/.git",
            "a/b/.GIT/config",
            ".git/",
            "./.git//config",
            ".Git. /hooks/x",
            "git~1/config",
            ".g\u{200c}it/config",
            ".git:x",
            "a/../.git/config",
            "a\\.git\\config",
            ".envrc",
            "x/.ENVRC",
            ".vscode/tasks.json",
            ".vscode",
            ".obsidian/plugins/x/main.js",
            ".husky/pre-push",
            ".idea/workspace.xml",
            "components/agents/a.md",
            "agents/a.py",
            "Agents/a.py",
            "projects/x/agents/a.py",
            "projects/x/components/agents/a.md",
            "deep/components/agents/a.md",
            ".venv/bin/python",
            "venv/pyvenv.cfg",
            "x/HEAD",
            ".github/workflows/ci.yml",
            ".mcp.json",
            "sub/opencode.json",
            "OpenCode.jsonc",
            ".opencode/plugin/x.js",
            ".kiro/settings/mcp.json",
            "sitecustomize.py",
            "AGENTS.md",
            "sub/CLAUDE.md",
            "x/SKILL.md",
            ".git/rebase-merge/git-rebase-todo",
            ".ſsh/config",
            ".devcontainer.json",
            "sub/.Rprofile",
            ".RData",
            ".dir-locals-2.el",
            ".helix/languages.toml",
            ".pdbrc",
            "Jenkinsfile",
            ".cursorrules",
            ".clinerules/a.md",
            "QWEN.md",
        ] {
            assert!(guarded_reason(path).is_some(), "{path}");
        }
        for path in [
            "",
            "a.md",
            "notes/git/config",
            "src/agents/a.py",
            "gitignore",
            ".gitignore",
            ".gitattributes",
            "Makefile",
            "model.pth",
            "agents/.gitkeep",
            "a.git",
            "components/a.md",
            "headers/head.html",
        ] {
            assert_eq!(guarded_reason(path), None, "{path}");
        }
        for path in ["projects/x/notes/agents.md", "agents.md"] {
            assert_eq!(guarded_reason(path).is_none(), cfg!(target_os = "linux"), "{path}");
        }
    }

    #[test]
    fn other_devices_send_nothing_that_programs_here_obey() {
        for path in
            ["venv/lib/python3.13/site-packages/x.py", "sub/sitecustomize.py", "mise.toml", "x/HEAD", "opencode.json"]
        {
            assert!(executed_reason(path).is_some(), "{path}");
        }
        for path in ["a.md", "AGENTS.md", "agents/a.md", "Jenkinsfile", "data/x.json", "src/main.py"] {
            assert_eq!(executed_reason(path), None, "{path}");
        }
    }

    #[test]
    fn git_may_write_its_data_and_not_its_settings() {
        for path in [
            ".git/objects/ab/cdef",
            ".git/refs/heads/main.lock",
            ".git/HEAD",
            ".git/HEAD.lock",
            ".git/index.lock",
            ".git/logs/HEAD",
            ".git/COMMIT_EDITMSG",
            ".git/ORIG_HEAD",
            "sub/.git/index",
            ".git/packed-refs.lock",
            ".git/modules/lib/objects/ab/c",
            ".git/modules/a/b/index.lock",
            ".git/worktrees/w/HEAD",
        ] {
            assert_eq!(guarded_reason_for_programs(path), None, "{path}");
            assert!(guarded_reason(path).is_some(), "{path}");
        }
        for path in [
            ".git",
            ".git/config",
            ".git/config.lock",
            ".git/hooks",
            ".git/hooks/pre-commit",
            ".git/config.worktree",
            ".git/commondir",
            ".git/gitdir",
            ".git/info/attributes",
            ".git/objects/info/alternates",
            ".git/objects/ab/http-alternates",
            ".git/modules/lib/config",
            ".git/modules/lib",
            ".git/modules/lib/hooks/x",
            ".git/modules/hooks/x",
            ".git/rebase-merge/git-rebase-todo",
            ".git/modules",
            ".git/modules/a/objects/config.lock",
            ".git/worktrees/w/commondir",
            "x/HEAD",
            ".git/description",
        ] {
            assert!(guarded_reason_for_programs(path).is_some(), "{path}");
        }
    }

    #[test]
    fn a_folder_that_is_moved_may_become_guarded() {
        assert_eq!(names_that_become_guarded("components"), ["agents"]);
        assert_eq!(names_that_become_guarded("a/components"), ["agents"]);
        assert_eq!(names_that_become_guarded("projects/x"), ["agents"]);
        assert_eq!(names_that_become_guarded("projects"), ["*"]);
        assert!(names_that_become_guarded("a").is_empty());
    }
}
