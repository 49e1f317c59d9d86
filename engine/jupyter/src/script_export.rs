//! Exports a note as a Python script: code unchanged, everything else as comments, with `# %%` between cells, which
//! Jupytext, VS Code, Spyder and PyCharm understand. IPython's own syntax, such as `%matplotlib inline` and `!ls`,
//! becomes comments, too.

use text::cell_form::CellForm;
use text::markdown;
use text::sql_cell::SqlCell;

/// Magics of a whole cell whose body is Python.
const PYTHON_CELL_MAGICS: [&str; 4] = ["capture", "prun", "time", "timeit"];
/// Quotes of Python's strings, longest first.
const QUOTES: [&str; 4] = ["\"\"\"", "'''", "\"", "'"];

/// Converts a note to a Python script.
pub fn export_script(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    let mut has_query = false;
    let python = |block: &str| markdown::cell_language(block).is_some_and(|language| language == "python");
    for cell in markdown::cell_ranges(text).into_iter().filter(|cell| python(&text[cell.clone()])) {
        push_comment(&mut out, &text[at..cell.start]);
        let block = &text[cell.clone()];
        let parts = markdown::parse_cell(block);
        // A widget or query that can't be read becomes an empty cell in the script.
        let code = parts.and_then(|parts| {
            let source = &block[parts.code];
            match parts.form {
                CellForm::Code => Some(comment_out_commands(source)),
                CellForm::Widget => parts.form.kernel_code(source).ok().map(Into::into),
                CellForm::Query => {
                    let query = SqlCell::parse(source).ok()?;
                    // The first query brings the code that runs all of them.
                    let code = if has_query { query.following_code() } else { query.kernel_code(None) };
                    has_query = true;
                    Some(code)
                }
            }
        });
        begin_cell(&mut out, "# %%\n");
        out.push_str(code.unwrap_or_default().trim_end());
        out.push('\n');
        at = cell.end;
    }
    push_comment(&mut out, &text[at..]);
    out
}

fn begin_cell(out: &mut String, head: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(head);
}

fn push_comment(out: &mut String, text: &str) {
    let text = text.trim_matches(['\n', '\r']);
    if text.trim().is_empty() {
        return;
    }
    begin_cell(out, "# %% [markdown]\n");
    for line in text.lines() {
        out.push_str(format!("# {line}").trim_end());
        out.push('\n');
    }
}

/// Returns Python code in which the lines of IPython's own syntax are comments: magics, shell commands, and questions
/// for help.
fn comment_out_commands(code: &str) -> String {
    if !code.contains(['%', '!', '?']) {
        return code.to_owned();
    }
    let mut out = String::with_capacity(code.len() + 64);
    let mut open = OpenTokens::default();
    // Whether only blank lines and magics of the whole cell came before, whether the cell is in another language, and
    // whether the last line was a command that continues on this one.
    let (mut is_head, mut is_foreign, mut continues) = (true, false, false);
    for line in code.lines() {
        let bare = line.trim_start();
        let cell_magic = bare.strip_prefix("%%").filter(|_| is_head && !is_foreign);
        if let Some(magic) = cell_magic {
            let name = magic.split_whitespace().next().unwrap_or_default();
            is_foreign = !PYTHON_CELL_MAGICS.contains(&name);
        }
        is_head &= bare.is_empty() || cell_magic.is_some();
        let is_command = continues || {
            let begins = open.is_closed();
            let starts = begins && bare.starts_with(['%', '!', '?']);
            starts || (!is_foreign && open.read_line(line) && begins)
        };
        if is_foreign || cell_magic.is_some() {
            out.push_str(format!("# {line}").trim_end());
        } else if is_command {
            open = OpenTokens::default();
            let indent = &line[..line.len() - bare.len()];
            // A block whose only line is a command stays a block.
            let head = if indent.is_empty() || continues { "# " } else { "pass  # " };
            out.push_str(format!("{indent}{head}{bare}").trim_end());
            continues = bare.ends_with('\\');
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// What a line of Python leaves open for the next one.
#[derive(Default)]
struct OpenTokens {
    /// The closing quote of an open string.
    quote: Option<&'static str>,
    /// Number of open brackets.
    depth: usize,
    /// Whether the line ended with a backslash.
    is_continued: bool,
}

impl OpenTokens {
    /// Returns whether the next line begins a statement.
    fn is_closed(&self) -> bool {
        self.quote.is_none() && self.depth == 0 && !self.is_continued
    }

    /// Reads a line. Returns whether it assigns what a command returns (`x = !ls`), or asks for help (`x?`).
    fn read_line(&mut self, line: &str) -> bool {
        let (mut assigns, mut last) = (false, ' ');
        self.is_continued = false;
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            let mut length = letter.len_utf8();
            match (self.quote, letter) {
                (_, '\\') => {
                    length += rest[1..].chars().next().map_or(0, char::len_utf8);
                    self.is_continued = rest.len() == 1;
                }
                (Some(quote), _) if rest.starts_with(quote) => {
                    (self.quote, length) = (None, quote.len());
                }
                (Some(_), _) => {}
                (None, '#') => break,
                (None, '"' | '\'') => {
                    self.quote = QUOTES.into_iter().find(|quote| rest.starts_with(quote));
                    length = self.quote.map_or(length, str::len);
                    last = letter;
                }
                (None, _) => {
                    match letter {
                        '(' | '[' | '{' => self.depth += 1,
                        ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                        '%' | '!' => assigns |= last == '=' && self.depth == 0,
                        _ => {}
                    }
                    last = if letter.is_whitespace() { last } else { letter };
                }
            }
            rest = &rest[length..];
        }
        // Only a string in three quotes continues in the next line, or one behind whose part is a backslash.
        self.quote = self.quote.filter(|quote| quote.len() == 3 || self.is_continued);
        assigns || (last == '?' && self.is_closed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_comments() {
        let text = "# T\n\nwords\n\n```python\nx = 1\n```\n```py\n\n```\nend\n";
        let made = "# %% [markdown]\n# # T\n#\n# words\n\n# %%\nx = 1\n\n# %%\n\n\n# %% [markdown]\n# end\n";
        assert_eq!(export_script(text), made);
        assert_eq!(export_script("```widget\nslider: n\nvalue: 3\n```\n"), "# %%\nn = 3\n");
    }

    #[test]
    fn commands_of_ipython_become_comments() {
        for (code, made) in [
            ("%matplotlib inline\nx = 1\n!ls \\\n  -l\ny", "# %matplotlib inline\nx = 1\n# !ls \\\n  # -l\ny\n"),
            ("for x in y:\n    !echo \"{x}\nz?\n?z", "for x in y:\n    pass  # !echo \"{x}\n# z?\n# ?z\n"),
            ("files = !ls\nt = %timeit -o f()\na %= 2", "# files = !ls\n# t = %timeit -o f()\na %= 2\n"),
            ("\n%%bash\nls 'x\n\necho", "\n# %%bash\n# ls 'x\n#\n# echo\n"),
            ("%%time\nx = 5 % 3\n!ls", "# %%time\nx = 5 % 3\n# !ls\n"),
        ] {
            assert_eq!(comment_out_commands(code), made, "{code}");
        }
        for plain in [
            "x = \"\"\"\n%s\n!ls\nwhy?\n\"\"\"\n",
            "x = (5\n% 3, 'a?')\nif a != b: # why?\n    pass\n",
            "y = 5 \\\n  % 3\nz = 'it\\'s \\\n% f'\nw = f'{x!r}'\n",
            "a = '!' if b else '?'\nassert x == 7 % 4, \"%\" \n",
        ] {
            assert_eq!(comment_out_commands(plain), plain);
        }
    }

    #[test]
    fn what_runs_queries_is_written_once() {
        let made = export_script("```sql\nselect 1\n```\n\n```sql\n-- into: x\nselect 2\n```\n");
        assert_eq!(made.matches("def _csv_table").count(), 1, "{made}");
        assert_eq!(made.matches(".run(").count(), 2, "{made}");
    }
}
