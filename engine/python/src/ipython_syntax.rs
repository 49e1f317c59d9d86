//! IPython's own syntax in cells of Python kernels that have no IPython: magics such as `%matplotlib inline`,
//! `!program` and `name?`.
//!
//! Most notebooks begin with one. What changes nothing here is left out, what has an equal in Python is replaced by it,
//! and the rest becomes an error that says what to do. Lines keep their numbers. The syntax is that of IPython's
//! `inputtransformer2`.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, IpyEscapeKind, Mod, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse};
use ruff_text_size::{Ranged, TextRange};
use rustpython_vm::compiler;
use std::borrow::Cow;
use std::panic::catch_unwind;

/// Maximum size in bytes of code that is searched for IPython's syntax.
const MAX_CODE_BYTES: usize = 16 << 10;
/// Stack size for parsing code of [`MAX_CODE_BYTES`] bytes, however deeply nested.
const PARSE_STACK_BYTES: usize = 128 << 20;
/// Maximum length in characters of a command in an error.
const MAX_SHOWN_CHARS: usize = 60;

/// Magics that only set up IPython itself, or what Tracebook does anyway.
const LEFT_OUT: [&str; 12] = [
    "aimport",
    "autoreload",
    "autosave",
    "colors",
    "config",
    "gui",
    "load_ext",
    "matplotlib",
    "precision",
    "reload_ext",
    "unload_ext",
    "xmode",
];
/// Magics that install packages.
const INSTALLERS: [&str; 5] = ["conda", "mamba", "micromamba", "pip", "uv"];
/// Magics that run another program.
const PROGRAMS: [&str; 11] = ["!", "bash", "cmd", "perl", "ruby", "script", "sh", "sx", "system", "ls", "powershell"];

/// Options of installers that are followed by a value of their own.
const OPTIONS_WITH_VALUE: [&str; 12] = [
    "-c",
    "-f",
    "-i",
    "-n",
    "-p",
    "-t",
    "--channel",
    "--extra-index-url",
    "--find-links",
    "--index-url",
    "--name",
    "--target",
];

/// Python for `%%writefile`.
const WRITE_PROGRAM: &str =
    "with open(name, mode, encoding='utf-8') as file:\n    file.write(text)\nprint('Wrote', name)\n";

/// What a command of IPython becomes.
enum Replacement {
    /// Python code without line breaks.
    Python(String),
    /// Nothing.
    LeftOut,
    /// An error, in sentences.
    Refused(String),
}

/// Returns a cell's code as plain Python, with as many lines; code that isn't valid is returned as it is.
pub(crate) fn plain_python(code: &str) -> Cow<'_, str> {
    if code.len() > MAX_CODE_BYTES || !code.contains(['%', '!', '?']) {
        return Cow::Borrowed(code);
    }
    let blank = code.len() - code.trim_start().len();
    if let Some(cell) = code.trim_start().strip_prefix("%%") {
        let line = code[..blank].matches('\n').count();
        let (head, body) = cell.split_once('\n').unwrap_or((cell, ""));
        return Cow::Owned(whole_cell(head.trim_end_matches('\r'), body, line));
    }
    let file = compiler::core::SourceFileBuilder::new("", code).finish();
    // Too deeply nested brackets would exhaust the stack. The compiler reports them.
    if compiler::pre_parse_source_error(&file).is_err() {
        return Cow::Borrowed(code);
    }
    // The parser panics on some code that isn't valid, such as `x = ?`.
    match stacker::grow(PARSE_STACK_BYTES, || catch_unwind(|| commands_of(code))) {
        Ok(Some(commands)) if !commands.is_empty() => Cow::Owned(replaced(code, &commands)),
        _ => Cow::Borrowed(code),
    }
}

/// A command of IPython in a cell.
struct EscapeCommand {
    range: TextRange,
    kind: IpyEscapeKind,
    value: String,
    /// Where it stands.
    place: CommandPlace,
}

#[derive(Clone, Copy)]
enum CommandPlace {
    /// A statement of the cell itself.
    Cell,
    /// A statement in the body of another, which may not run.
    Body,
    /// The value of an assignment, in a body or not.
    Value { is_conditional: bool },
}

#[derive(Default)]
struct CommandReader {
    commands: Vec<EscapeCommand>,
    /// The number of statements with bodies around the current one.
    depth: usize,
}

impl CommandReader {
    fn note(&mut self, range: TextRange, kind: IpyEscapeKind, value: &str, place: CommandPlace) {
        self.commands.push(EscapeCommand { range, kind, value: value.to_owned(), place });
    }
}

impl<'a> Visitor<'a> for CommandReader {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::IpyEscapeCommand(command) => {
                let place = if self.depth > 0 { CommandPlace::Body } else { CommandPlace::Cell };
                self.note(command.range(), command.kind, &command.value, place);
            }
            Stmt::Assign(_) | Stmt::AnnAssign(_) | Stmt::AugAssign(_) | Stmt::Expr(_) => {
                visitor::walk_stmt(self, stmt);
            }
            _ => {
                self.depth += 1;
                visitor::walk_stmt(self, stmt);
                self.depth -= 1;
            }
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::IpyEscapeCommand(command) => {
                let place = CommandPlace::Value { is_conditional: self.depth > 0 };
                self.note(command.range(), command.kind, &command.value, place);
            }
            _ => visitor::walk_expr(self, expr),
        }
    }
}

/// Returns the commands in order; `None` if the code isn't valid.
fn commands_of(code: &str) -> Option<Vec<EscapeCommand>> {
    let parsed = parse(code, ParseOptions::from(Mode::Ipython)).ok()?;
    let Mod::Module(module) = parsed.syntax() else { return None };
    let mut reader = CommandReader::default();
    reader.visit_body(&module.body);
    Some(reader.commands)
}

fn replaced(code: &str, commands: &[EscapeCommand]) -> String {
    let mut python = String::with_capacity(code.len());
    let mut end = 0;
    for command in commands {
        let (start, stop) = (command.range.start().to_usize(), command.range.end().to_usize());
        let text = &code[start..stop];
        let with = match (line_command(command.kind, &command.value), command.place) {
            (Replacement::Python(with), _) => with,
            // `from __future__` may follow, which must be the first statement.
            (Replacement::LeftOut, CommandPlace::Cell) if !code[stop..].trim().is_empty() => String::new(),
            (Replacement::LeftOut, CommandPlace::Cell | CommandPlace::Body) => "pass".to_owned(),
            (Replacement::LeftOut, CommandPlace::Value { .. }) => "None".to_owned(),
            (Replacement::Refused(why), CommandPlace::Cell | CommandPlace::Value { is_conditional: false }) => {
                return error_program(code[..start].matches('\n').count(), &why);
            }
            // What is below `if in_colab:` often doesn't run.
            (Replacement::Refused(why), _) => called("refuse", &[why.as_str()], ""),
        };
        python.push_str(&code[end..start]);
        python.push_str(&with);
        // A command can go on in the next line.
        python.extend(text.matches('\n'));
        end = stop;
    }
    python.push_str(&code[end..]);
    python
}

/// Returns a program that fails in a line, counted from 0.
fn error_program(line: usize, why: &str) -> String {
    format!("{}raise SyntaxError({}) from None", "\n".repeat(line), literal(why))
}

/// Returns a Python literal of a text, without line breaks.
fn literal(text: &str) -> String {
    // Strings of JSON are strings of Python.
    serde_json::Value::from(text).to_string()
}

/// Returns a call of a function in `ipython_commands.py`. `names` is Python for the arguments before the texts.
fn called(function: &str, texts: &[&str], names: &str) -> String {
    let texts = texts.iter().map(|text| literal(text));
    let arguments: Vec<String> = (!names.is_empty()).then(|| names.to_owned()).into_iter().chain(texts).collect();
    format!("__import__(\"_tracebook_commands\").{function}({})", arguments.join(", "))
}

fn shown(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn needs_ipython(command: &str) -> Replacement {
    Replacement::Refused(format!(
        "{} is a command of IPython. It needs a Jupyter kernel: `tracebook kernels NOTE --use KERNEL`.",
        shown(command)
    ))
}

fn needs_program(command: &str) -> Replacement {
    Replacement::Refused(format!(
        "{} runs another program, which cells of this kernel can't. It needs a Jupyter kernel: `tracebook kernels NOTE \
         --use KERNEL`.",
        shown(command)
    ))
}

/// Returns the Python for a command of an installer: it fails only if one of the packages isn't there already.
fn install(words: &str) -> Replacement {
    let mut words = words.split_whitespace().skip_while(|word| *word != "install" && *word != "add").skip(1);
    let mut packages = Vec::new();
    let mut is_known = true;
    while let Some(word) = words.next() {
        if OPTIONS_WITH_VALUE.contains(&word) {
            words.next();
        } else if matches!(word, "-r" | "--requirement" | "-e" | "--editable") {
            words.next();
            is_known = false;
        } else if !word.starts_with('-') {
            packages.push(word);
        }
    }
    let packages = packages.join(" ");
    let named = if packages.is_empty() { "PACKAGE".to_owned() } else { shown(&packages) };
    let why = format!(
        "Cells can't install packages. This makes an environment of the note with them: `tracebook kernels env NOTE \
         --add {named}`."
    );
    Replacement::Python(called("installed", &[if is_known { packages.as_str() } else { "" }, why.as_str()], ""))
}

/// Returns the Python for a command within a cell.
fn line_command(kind: IpyEscapeKind, value: &str) -> Replacement {
    let (word, rest) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    let rest = rest.trim();
    match kind {
        IpyEscapeKind::Help | IpyEscapeKind::Help2 => match is_dotted_name(value.trim()) {
            true => Replacement::Python(format!("help({})", value.trim())),
            false => needs_ipython(&format!("?{value}")),
        },
        IpyEscapeKind::Shell | IpyEscapeKind::ShCap if INSTALLERS.contains(&word) => install(rest),
        // As in `!{sys.executable} -m pip install`.
        IpyEscapeKind::Shell if rest.starts_with("-m pip install ") => install(rest),
        IpyEscapeKind::Shell | IpyEscapeKind::ShCap => needs_program(&format!("!{value}")),
        IpyEscapeKind::Magic | IpyEscapeKind::Magic2 => line_magic(word, rest),
        IpyEscapeKind::Quote | IpyEscapeKind::Quote2 | IpyEscapeKind::Paren => needs_ipython(value),
    }
}

fn line_magic(name: &str, rest: &str) -> Replacement {
    match name {
        _ if LEFT_OUT.contains(&name) => Replacement::LeftOut,
        _ if INSTALLERS.contains(&name) => install(rest),
        _ if PROGRAMS.contains(&name) => needs_program(&format!("%{name} {rest}")),
        // Each cell shows how long it took.
        "time" if !rest.is_empty() && !rest.contains('\n') => Replacement::Python(rest.to_owned()),
        "timeit" if !rest.is_empty() => Replacement::Python(timed(without_options(rest), "")),
        "pylab" | "who" | "whos" => Replacement::Python(called(name, &[], "globals()")),
        "reset" if rest == "-f" => Replacement::Python(called(name, &[], "globals()")),
        "cd" => Replacement::Python(called(name, &[rest.strip_prefix("-q").unwrap_or(rest).trim()], "")),
        "run" => script(rest),
        "pwd" if rest.is_empty() => Replacement::Python("__import__(\"os\").getcwd()".to_owned()),
        "env" | "set_env" => match rest.split_once(['=', ' ']) {
            Some((key, value)) => {
                let (key, value) = (literal(key.trim()), literal(value.trim()));
                Replacement::Python(format!("__import__(\"os\").environ.update({{{key}: {value}}})"))
            }
            None => needs_ipython(&format!("%{name} {rest}")),
        },
        _ => needs_ipython(&format!("%{name} {rest}")),
    }
}

/// Returns the Python for `%run`.
fn script(rest: &str) -> Replacement {
    let (inside, rest) = match rest.strip_prefix("-i ") {
        Some(rest) => ("True", rest.trim()),
        None => ("False", rest),
    };
    // A comment is no argument.
    let rest = rest.split(" #").next().unwrap_or_default().trim();
    let (path, words) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if path.is_empty() || path.starts_with('-') || path.ends_with(".ipynb") || path.contains(['"', '\'', '$', '{']) {
        return needs_ipython(&format!("%run {rest}"));
    }
    Replacement::Python(called("run", &[path, words.trim()], &format!("globals(), {inside}")))
}

/// Returns the program for a cell that begins with `%%` in a line, counted from 0. `head` is the rest of that line.
fn whole_cell(head: &str, body: &str, line: usize) -> String {
    let (name, rest) = head.split_once(char::is_whitespace).unwrap_or((head, ""));
    let rest = rest.trim();
    let shown = |class: &str| {
        let module = "__import__(\"IPython.display\", fromlist=[\"display\"])";
        format!("{module}.display({module}.{class}({}))", literal(body))
    };
    let first = match name {
        "time" | "python" | "python3" => {
            return format!("{}# %%{head}\n{}", "\n".repeat(line), plain_python(body));
        }
        "timeit" if !body.trim().is_empty() => timed(body, without_options(rest)),
        "capture" => {
            let body = format!("{}{}", "\n".repeat(line + 1), plain_python(body));
            called("capture", &[rest, body.as_str()], "globals()")
        }
        "html" | "HTML" => shown("HTML"),
        "javascript" | "js" => shown("Javascript"),
        "markdown" => shown("Markdown"),
        "latex" => shown("Latex"),
        "svg" | "SVG" => shown("SVG"),
        "writefile" | "file" if !rest.is_empty() => {
            let (mode, file) = match rest.strip_prefix("-a ") {
                Some(file) => ("a", file.trim()),
                None => ("w", rest),
            };
            // In a namespace of its own, so that no name is left in the cell's.
            let program = literal(WRITE_PROGRAM);
            format!(
                "exec({program}, {{\"name\": {}, \"mode\": \"{mode}\", \"text\": {}}})",
                literal(file),
                literal(body)
            )
        }
        _ if PROGRAMS.contains(&name) => return refused(line, needs_program(&format!("%%{head}"))),
        "sql" => {
            let why = "A cell with a query begins with ```sql instead of ```python, and has no %%sql.";
            return error_program(line, why);
        }
        _ => return refused(line, needs_ipython(&format!("%%{head}"))),
    };
    format!("{}{first}", "\n".repeat(line))
}

fn refused(line: usize, replacement: Replacement) -> String {
    match replacement {
        Replacement::Refused(why) => error_program(line, &why),
        Replacement::Python(python) => python,
        Replacement::LeftOut => String::new(),
    }
}

/// Returns the expression that prints how long a statement takes, by the standard library's `timeit`. `setup` runs
/// once before it.
fn timed(statement: &str, setup: &str) -> String {
    let say = "print(\"%s loops, %.3g s each\" % (done[0], done[1] / done[0]))";
    let setup = if setup.is_empty() { "pass" } else { setup };
    let timer = format!("Timer({}, {}, globals=globals())", literal(statement), literal(setup));
    format!("(lambda done: {say})(__import__(\"timeit\").{timer}.autorange())")
}

/// Returns the statement behind the options of `%timeit`.
fn without_options(rest: &str) -> &str {
    let mut rest = rest;
    while let Some(option) = rest.strip_prefix('-') {
        let (name, behind) = option.split_once(char::is_whitespace).unwrap_or((option, ""));
        // `-n 10` has a value of its own, `-n10` and `-o` don't.
        rest = match matches!(name, "n" | "r" | "p" | "t" | "c") {
            true => behind.trim_start().split_once(char::is_whitespace).map_or("", |(_, behind)| behind),
            false => behind,
        };
        rest = rest.trim_start();
    }
    rest
}

fn is_dotted_name(text: &str) -> bool {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first == '_' || first.is_alphabetic())
            && letters.all(|letter| letter == '_' || letter.is_alphanumeric())
    };
    text.split('.').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::{MAX_CODE_BYTES, plain_python};
    use std::borrow::Cow;

    #[test]
    fn plain_code_stays_as_it_is() {
        for code in ["", "x = 5 % 3", "print('%d?!' % 3)", "x != 2", "s = '''\n%time\n!ls\n'''", "x = (1,\n", "x = ?"] {
            assert!(matches!(plain_python(code), Cow::Borrowed(same) if same == code), "{code}");
        }
        for deep in ["(", "-", "not ", "a if b else "] {
            let deep = format!("%time 1\n{}", deep.repeat((MAX_CODE_BYTES - 10) / deep.len()));
            assert_eq!(plain_python(&deep), deep);
        }
    }

    #[test]
    fn what_changes_nothing_is_left_out() {
        assert_eq!(plain_python("%matplotlib inline\nimport numpy"), "\nimport numpy");
        assert_eq!(plain_python("if x:\n    %load_ext autoreload\ny = 1"), "if x:\n    pass\ny = 1");
        assert_eq!(plain_python("%config a.b = \\\n  1\nx"), "\n\nx");
        assert_eq!(plain_python("x = %matplotlib inline\nx"), "x = None\nx");
        assert_eq!(plain_python("\n%%time\nx = 1\n%autoreload 2\n"), "\n# %%time\nx = 1\npass\n");
    }

    #[test]
    fn what_has_an_equal_is_replaced() {
        assert_eq!(plain_python("%time total = sum(xs)"), "total = sum(xs)");
        assert_eq!(plain_python("str.join?\nx = 1"), "help(str.join)\nx = 1");
        assert_eq!(plain_python("?len"), "help(len)");
        assert!(plain_python("%timeit -n 10 -r3 f(\"a\")").contains(r#".Timer("f(\"a\")", "pass", "#));
        assert!(plain_python("%%timeit -n 10 x = 1\nx\n").contains(r#".Timer("x\n", "x = 1", "#));
        assert!(plain_python("%run a.py -v 1  # all").ends_with(r#".run(globals(), False, "a.py", "-v 1")"#));
        assert!(plain_python("%pylab inline").ends_with(".pylab(globals())"));
        assert!(plain_python("%%html\n<b>bold</b>\n").contains(r#".HTML("<b>bold</b>\n")"#));
        let written = plain_python("%%writefile -a out.txt\none\n");
        assert!(written.contains(r#""name": "out.txt", "mode": "a", "text": "one\n""#), "{written}");
        assert_eq!(plain_python("%env KEY=a b"), r#"__import__("os").environ.update({"KEY": "a b"})"#);
    }

    #[test]
    fn the_rest_says_what_to_do() {
        for (code, line, why) in [
            ("x = 1\n!ls -l", 1, "!ls -l runs another program, which cells of this kernel can't."),
            ("files = !ls", 0, "!ls runs another program"),
            ("\n%%bash\nls", 1, "%%bash runs another program"),
            ("%run -d a.py", 0, "%run -d a.py is a command of IPython."),
            ("%%cython\nx", 0, "%%cython is a command of IPython. It needs a Jupyter kernel"),
            ("1\n%magic", 1, "%magic is a command of IPython."),
            ("%%sql\nselect 1", 0, "begins with ```sql"),
        ] {
            let python = plain_python(code);
            let raised = format!("{}raise SyntaxError(\"", "\n".repeat(line));
            assert!(python.starts_with(&raised) && python.contains(why), "{code}: {python}");
            assert_eq!(python.matches('\n').count(), line, "{code}: {python}");
        }
    }

    #[test]
    fn what_may_not_run_fails_only_where_it_runs() {
        let nested = plain_python("if x:\n    !ls\nelse:\n    files = !ls\ny = 1");
        assert!(nested.starts_with("if x:\n    __import__(\"_tracebook_commands\").refuse(\"!ls runs"), "{nested}");
        assert!(nested.contains("    files = __import__(") && nested.ends_with("\ny = 1"), "{nested}");
        for (code, packages) in [
            ("!pip install -q a b", "a b"),
            ("%conda install -y -c forge a", "a"),
            ("!{sys.executable} -m pip install a==1", "a==1"),
        ] {
            let python = plain_python(code);
            assert!(python.contains(&format!(".installed(\"{packages}\", \"Cells can't")), "{code}: {python}");
            assert!(python.contains(&format!("`tracebook kernels env NOTE --add {packages}`")), "{code}: {python}");
        }
        assert!(plain_python("!pip install -r all.txt").contains(".installed(\"\", "));
    }
}
