//! Splits a shell command into words if it's one plain command. A line in which the shell would expand, redirect, chain
//! or substitute something isn't plain. The user's patterns are compared with these words, never with the line as text.

/// Marks a `*` in the words of a pattern. A command that contains it isn't plain.
const WILDCARD_MARKER: char = '\0';

/// Returns the words of a shell command; `None` if it isn't one plain command.
pub fn split_plain_command(line: &str) -> Option<Vec<String>> {
    let words = split(line, false)?;
    words.iter().all(|word| !word.expands).then(|| words.into_iter().map(|word| word.text).collect())
}

/// A word of a shell command.
#[derive(Default)]
struct ShellWord {
    text: String,
    /// Whether the shell would expand the word to file names or a home folder.
    expands: bool,
}

/// Returns whether a shell command matches a pattern word by word. `*` matches anything inside a word. A last word `*`
/// matches any further words, or none. A line that isn't one plain command matches only its own text.
pub fn matches_command(pattern: &str, line: &str) -> bool {
    if !pattern.contains('*') && pattern.trim() == line.trim_matches([' ', '\t']) {
        return true;
    }
    let (Some(mut pattern), Some(words)) = (split(pattern, true), split(line, false)) else { return false };
    let any = |word: &ShellWord| word.text.len() == 1 && word.text.starts_with(WILDCARD_MARKER);
    let open = pattern.len() > 1 && pattern.last().is_some_and(any);
    if open {
        pattern.pop();
    }
    let count = if open { words.len() >= pattern.len() } else { words.len() == pattern.len() };
    // A word with expansions is unknown, so only a final `*` matches it.
    let same = |(pattern, word): (&ShellWord, &ShellWord)| {
        !word.expands && super::policy_rule::matches_wildcard_parts(pattern.text.split(WILDCARD_MARKER), &word.text)
    };
    count && pattern.iter().zip(&words).all(same)
}

/// Maximum number of words between a program and the next word of a pattern, all of them options and their values. If
/// there are more, that word may be behind them.
const MAX_OPTION_WORDS: usize = 64;

/// Returns whether a command that matches a pattern may be anywhere in a shell line: after `;` or `&&`, in a
/// substitution, behind a program such as `env` or `xargs`, behind `=` or `!`, or in quotes, which `sh -c` would run.
/// The program may be named by its path, and have options before the pattern's next word. Patterns that ask or deny
/// use this, because one command too many is better than one that is missed. Words that the shell only makes up while
/// it runs, as in `$X -f`, aren't found.
pub fn may_contain_command(pattern: &str, line: &str) -> bool {
    contains_command(pattern, line, false)
}

/// Returns whether the program of a pattern is in a shell line with words that the shell makes up while it runs, as in
/// `git $X`, so that the pattern may match although [`may_contain_command`] doesn't find it.
pub fn may_become_command(pattern: &str, line: &str) -> bool {
    contains_command(pattern, line, true)
}

/// `computes`: words that the shell makes up match any word of the pattern but the program.
fn contains_command(pattern: &str, line: &str, computes: bool) -> bool {
    const QUOTES: [char; 3] = ['\'', '"', '\\'];
    const ENDS: [char; 12] = [';', '&', '|', '<', '>', '(', ')', '{', '}', '`', '\n', '\r'];
    let Some(pattern) = split(pattern, true) else { return false };
    let mut pattern: Vec<&str> = pattern.iter().flat_map(|word| word.text.split_whitespace()).collect();
    let any = WILDCARD_MARKER.to_string();
    let open = pattern.len() > 1 && pattern.last().is_some_and(|last| *last == any);
    if open {
        pattern.pop();
    }
    let Some((program, arguments)) = pattern.split_first() else { return false };
    let same =
        |pattern: &str, word: &str| super::policy_rule::matches_wildcard_parts(pattern.split(WILDCARD_MARKER), word);
    let fits = |pattern: &str, word: &str| same(pattern, word) || computes && word.contains(['$', '*', '?', '[']);
    let is_program = |word: &str| {
        // `PAGER=rm`, `alias.x=!rm` and `-Srm` name a program, too.
        let file = word.rsplit(['/', '=', '!']).next().unwrap_or_default();
        let option = word.strip_prefix('-').filter(|option| !option.starts_with('-'));
        let value = option.and_then(|option| option.get(1..)).unwrap_or_default();
        same(program, word) || same(program, file) || same(program, value)
    };
    let is_in = |part: &str| {
        let words: Vec<String> = part.split_whitespace().map(|word| word.replace(QUOTES, "")).collect();
        // `X=rm` alone runs nothing.
        let runs = words.iter().any(|word| !is_assignment(word));
        runs && (0..words.len())
            .any(|at| is_program(&words[at]) && fits_arguments(arguments, &words[at + 1..], open, &fits))
    };
    // The shell joins lines at a backslash. `$'rm'` is `rm`, and an option may hold a command, as `env -S'rm x'` does.
    let line = line.replace("\\\n", "").replace("$'", "'").replace("$\"", "\"");
    // `$IFS` holds what separates words, and many shells read `{rm,x}` as `rm x`.
    let line = line.replace("${IFS}", " ").replace("$IFS", " ");
    let is_in_line = |line: &str| {
        line.split(ENDS).any(|part| is_in(part) || part.contains(QUOTES) && is_in(&part.replace(QUOTES, " ")))
    };
    is_in_line(&line) || line.contains('{') && is_in_line(&line.replace(',', " "))
}

/// Returns whether the words behind a program match those of a pattern. Options and their values may be in between:
/// `git -C .. push` is `git push`. `open`: any words may follow.
fn fits_arguments(pattern: &[&str], words: &[String], open: bool, fits: &dyn Fn(&str, &str) -> bool) -> bool {
    let mut starts = vec![0];
    for argument in pattern {
        let mut ends = Vec::new();
        for start in starts {
            // Whether the pattern's word may be this one, and whether it may be the one after it.
            let (mut here, mut after) = (true, false);
            for (at, word) in words.iter().enumerate().skip(start) {
                if at - start > MAX_OPTION_WORDS {
                    return true;
                }
                if here && fits(argument, word) {
                    ends.push(at + 1);
                }
                let is_option = here && word.starts_with('-');
                (here, after) = (after || is_option, is_option);
                if !here {
                    break;
                }
            }
        }
        ends.sort_unstable();
        ends.dedup();
        starts = ends;
    }
    starts.iter().any(|end| open || *end == words.len())
}

/// Returns whether the shell may make up the name of a program only while it runs the line, as in `$X -f` or `/bin/r?`,
/// so that no pattern finds it. One line too many is better than one that is missed.
pub fn has_computed_program(line: &str) -> bool {
    let mut scan = ProgramScan { commands: vec![None], ..ProgramScan::default() };
    let mut is_in_backticks = false;
    for c in line.chars().filter(|c| !['\'', '"', '\\'].contains(c)) {
        match c {
            ' ' | '\t' => scan.end_word(),
            ';' | '&' | '|' | '\n' | '\r' => {
                scan.end_word();
                scan.end_command();
            }
            '<' | '>' => {
                if scan.word.chars().all(|c| c.is_ascii_digit()) {
                    scan.word.clear(); // `2>x`
                }
                scan.end_word();
                scan.is_redirected = true;
            }
            '`' => {
                is_in_backticks = !is_in_backticks;
                if is_in_backticks {
                    scan.word.push('$');
                    scan.open();
                } else {
                    scan.close();
                }
            }
            '(' => scan.open(),
            ')' => scan.close(),
            '{' | '}' if scan.word.is_empty() => {}
            c => scan.word.push(c),
        }
    }
    scan.end_word();
    scan.is_computed
}

/// Looks for the programs of a shell line, whose quotes were removed.
#[derive(Default)]
struct ProgramScan {
    word: String,
    /// For each command that others are part of: whether its program runs what its arguments name; `None` before its
    /// program.
    commands: Vec<Option<bool>>,
    /// Whether the next word is the file of a redirection.
    is_redirected: bool,
    is_computed: bool,
}

impl ProgramScan {
    fn end_word(&mut self) {
        const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "do", "while", "until", "!", "time"];
        /// Programs that run what their arguments name.
        const WRAPPERS: [&str; 21] = [
            "bash", "builtin", "busybox", "command", "dash", "doas", "env", "eval", "exec", "find", "ionice", "nice",
            "nohup", "parallel", "setsid", "sh", "stdbuf", "sudo", "timeout", "xargs", "zsh",
        ];
        let word = std::mem::take(&mut self.word);
        if word.is_empty() || std::mem::take(&mut self.is_redirected) {
            return;
        }
        let Some(command) = self.commands.last_mut() else { return };
        match command {
            Some(runs_arguments) => self.is_computed |= *runs_arguments && word.contains('$'),
            None => {
                if is_assignment(&word) || KEYWORDS.contains(&word.as_str()) {
                    return;
                }
                self.is_computed |= word.contains(['$', '*', '?', '[']) && !matches!(word.as_str(), "[" | "[[");
                let file = word.rsplit('/').next().unwrap_or_default();
                self.is_computed |= file == "alias"; // a later line can name a program by it
                *command = Some(WRAPPERS.contains(&file));
            }
        }
    }

    fn end_command(&mut self) {
        if let Some(command) = self.commands.last_mut() {
            *command = None;
        }
    }

    fn open(&mut self) {
        self.end_word();
        self.commands.push(None);
    }

    fn close(&mut self) {
        self.end_word();
        if self.commands.len() > 1 {
            self.commands.pop();
        }
    }
}

/// Returns whether a word sets a variable of the shell, as `X=rm`.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && is_name(name))
}

fn split(line: &str, pattern: bool) -> Option<Vec<ShellWord>> {
    let mut words: Vec<ShellWord> = Vec::new();
    let mut word: Option<ShellWord> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.text.push(plain(c)?),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\') => word.text.push(c),
                            _ => return None,
                        },
                        c => word.text.push(plain(c)?),
                    }
                }
            }
            '\\' => word.get_or_insert_default().text.push(plain(chars.next()?)?),
            '*' if pattern => word.get_or_insert_default().text.push(WILDCARD_MARKER),
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '{' | '}' => return None,
            '#' if word.is_none() => return None,
            '!' | '=' if words.is_empty() => return None, // `! x` and `NAME=value x` are no programs
            '*' | '?' | '[' | ']' | '~' => {
                let word = word.get_or_insert_default();
                word.expands |= c != '~' || word.text.is_empty();
                word.text.push(c);
            }
            c => word.get_or_insert_default().text.push(plain(c)?),
        }
    }
    words.extend(word);
    (!words.is_empty()).then_some(words)
}

/// Returns the character if it has no special meaning: any but control characters other than tab.
fn plain(c: char) -> Option<char> {
    (!c.is_control() || c == '\t').then_some(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_commands_are_words() {
        for (line, expected) in [
            ("cargo  test --lib ", &["cargo", "test", "--lib"][..]),
            ("git commit -m 'two words; $HOME'", &["git", "commit", "-m", "two words; $HOME"]),
            ("a \"b \\\" c\" d\\ e ''", &["a", "b \" c", "d e", ""]),
            ("./x a#b c=d", &["./x", "a#b", "c=d"]),
        ] {
            assert_eq!(
                split_plain_command(line).as_deref(),
                Some(expected.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().as_slice()),
                "{line}"
            );
        }
        for line in [
            "",
            " ",
            "a; b",
            "a && b",
            "a | b",
            "a > b",
            "a < b",
            "$(a)",
            "a `b`",
            "a $HOME",
            "a ~",
            "a *",
            "a ?",
            "a [b]",
            "a {b,c}",
            "a # b",
            "a\nb",
            "a\rb",
            "X=1 a",
            "! a",
            "'a",
            "\"a",
            "a \"$(b)\"",
            "a \\",
            "(a)",
            "a & b",
            "a \"\\$\"",
        ] {
            assert_eq!(split_plain_command(line), None, "{line:?}");
        }
    }

    #[test]
    fn patterns_stand_for_whole_words() {
        for (pattern, line, fit) in [
            ("cargo test *", "cargo test", true),
            ("cargo test *", "cargo test --lib  x", true),
            ("cargo test *", "cargo testing", false),
            ("cargo test *", "cargo test; rm -rf /", false),
            ("cargo test*", "cargo tests", true),
            ("cargo test*", "cargo test --lib", false),
            ("find * -name n.md", "find . -name n.md", true),
            ("find * -name n.md", "find . -exec rm x -name n.md", false),
            ("find * -name n.md", "find . -exec sh -c 'x' ; -name n.md", false),
            ("ls *", "ls -l *.md ~ [ab]", true),
            ("ls * x", "ls *.md x", false),
            ("l* -l", "l? -l", false),
            ("* --version", "~/evil --version", false),
            ("echo '*'", "echo '*'", true),
            ("echo '*'", "echo x", false),
            ("a | b", "a | b", true),
            ("a | *", "a | b", false),
            ("make", "make", true),
            ("make", "make install", false),
        ] {
            assert_eq!(matches_command(pattern, line), fit, "{pattern} {line}");
        }
    }

    #[test]
    fn a_command_is_found_anywhere_in_a_line() {
        for line in [
            "rm",
            "rm -f x",
            "true; rm -f x",
            "true && rm x",
            "true\nrm x",
            "(rm x)",
            "echo $(rm x)",
            "echo `rm x`",
            "/bin/rm -f x; ls",
            "X=1 env rm x",
            "sh -c 'rm -f x'",
            "sh -c \"cd a;rm -f x\"",
            "'r'm x",
            "r\\m x",
            "find . -exec rm {} +",
            "ls | xargs rm",
            "r\\\nm x",
            "$'rm' x",
            "env -S'rm -f x'",
            "tar --to-command='rm x' -xf a.tar",
            "rm${IFS}-f${IFS}x",
            "rm$IFS-f",
            "{rm,-f,x}",
            "PAGER=rm git log",
            "git -c alias.x='!rm f' x",
            "git -c core.sshCommand=rm fetch",
            "tar --checkpoint-action=exec=rm -cf x .",
            "env -Srm\\ x",
            "alias x=rm",
        ] {
            assert!(may_contain_command("rm *", line), "{line:?}");
        }
        for line in ["", "ls rmdir", "rmx y", "a/rm/b", "echo rm-x", "docker run --rm x", "X=rm", "X=rm; ls $X"] {
            assert!(!may_contain_command("rm *", line), "{line:?}");
        }
        for (pattern, line, fit) in [
            ("git push", "cd a; git push > log", true),
            ("git push", "git push --dry-run", false),
            ("git push *", "git status && git push -f", true),
            ("git push *", "git pull", false),
            ("git push *", "git${IFS}push", true),
            ("git push *", "{git,push,-f}", true),
            ("git push *", "echo {git,pull}", false),
            ("* --force", "git --force", true),
            ("a | *", "a | b", false),
            ("git push *", "git -C . push origin", true),
            ("git push", "git -c a=b --no-pager -C .. push", true),
            ("git push *", "git --git-dir .git --work-tree=. push", true),
            ("git push *", "git commit -m push", false),
            ("git push *", "git log push", false),
            ("git push *", "git -C . log push", false),
            ("rm -rf *", "rm -v -rf x", true),
            ("git remote add *", "git -C . remote -v add x", true),
        ] {
            assert_eq!(may_contain_command(pattern, line), fit, "{pattern} {line}");
        }
        let hidden = format!("git {} push origin", "-c a=b ".repeat(1_000));
        assert!(may_contain_command("git push *", &hidden));
        let long = "git -a ".repeat(50_000);
        let begun = std::time::Instant::now();
        assert!(may_contain_command("git push *", &long) && begun.elapsed().as_secs() < 5);
    }

    #[test]
    fn arguments_that_the_shell_makes_up_are_noticed() {
        for line in ["git $X origin", "X=push; git \"$X\"", "g() { git \"$@\"; }; g push", "git p?sh", "git -C $X"] {
            assert!(may_become_command("git push *", line) && !may_contain_command("git push *", line), "{line:?}");
        }
        for line in ["git status", "git commit -m \"$MSG\"", "echo $X", "git log *.md"] {
            assert!(!may_become_command("git push *", line), "{line:?}");
        }
    }

    #[test]
    fn a_program_that_the_shell_makes_up_is_noticed() {
        for line in [
            "$X -f x",
            "X=rm; $X -f x",
            "\"$X\" x",
            "${X} x",
            "$(echo r)m x",
            "`echo r`m x",
            "true && /bin/r? x",
            "env $X x",
            "sh -c '$X x'",
            "if true; then $X; fi",
            "[r]m x",
            "alias x=rm\nx -f y",
        ] {
            assert!(has_computed_program(line), "{line:?}");
        }
        for line in [
            "rm -f x",
            "echo $HOME",
            "echo `date` $(pwd) ${X}",
            "X=$(pwd); ls *.md",
            "[ -f x ] && cat x?",
            "for f in *.md; do wc \"$f\"; done",
            "find . -name '*.md'",
        ] {
            assert!(!has_computed_program(line), "{line:?}");
        }
    }

    proptest! {
        /// The words of a plain command are those that `sh` would pass on: quoted again, they are parsed the same.
        #[test]
        fn words_survive_quoting(text in proptest::collection::vec("[ -~]{0,12}", 1..5)) {
            let quoted: Vec<String> = text.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
            prop_assert_eq!(split_plain_command(&quoted.join(" ")), Some(text));
        }

        #[test]
        fn chaining_never_fits(pattern in "[a-z]{1,5}( [a-z*]{1,5}){0,3}", rest in "[a-z ]{0,9}", op in "[;&|<>`$\n]") {
            let line = format!("{} {op}{rest}", pattern.replace('*', "x"));
            prop_assert!(!matches_command(&pattern, &line));
        }
    }
}
