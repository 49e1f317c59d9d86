//! Exports a note as a Python script: code unchanged, everything else as comments, with `# %%` between cells, which
//! Jupytext, VS Code, Spyder and PyCharm understand.

use text::markdown;

/// Converts a note to a Python script.
pub fn export_script(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    let python = |block: &str| markdown::cell_language(block).is_some_and(|language| language == "python");
    for cell in markdown::cell_ranges(text).into_iter().filter(|cell| python(&text[cell.clone()])) {
        push_comment(&mut out, &text[at..cell.start]);
        let block = &text[cell.clone()];
        let parts = markdown::parse_cell(block);
        // A widget that can't be read becomes an empty cell in the script.
        let code = parts.and_then(|parts| parts.form.kernel_code(&block[parts.code]).ok()).unwrap_or_default();
        begin_cell(&mut out, "# %%\n");
        out.push_str(code.trim_end());
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
}
