//! Reads the packages that a Python script lists in its inline metadata (PEP 723): a comment block that starts with
//! `# /// script`. Nothing of the script runs.

use crate::kernel_properties::{DEPENDENCIES_PROPERTY, NotePackages, REQUIRES_PYTHON_PROPERTY};

/// First line of the block.
const BLOCK_START: &str = "# /// script";
/// Last line of the block.
const BLOCK_END: &str = "# ///";
/// Maximum length of the block in bytes.
const MAX_BLOCK_BYTES: usize = 64 << 10;

/// Why the packages of a script can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptPackagesError {
    /// The block has no last line.
    #[error("the block # /// script has no last line # ///")]
    NoEnd,
    /// There are several blocks.
    #[error("it has more than one block # /// script")]
    SeveralBlocks,
    /// The block is too long.
    #[error("the block # /// script is longer than 64 kB")]
    TooLong,
    /// A value isn't written as the format says.
    #[error(
        "{0} in the block # /// script can't be read; write dependencies = [\"pandas>=2\"] and requires-python = \
         \">=3.11\""
    )]
    NotReadable(&'static str),
}

/// Returns the packages that the inline metadata of a script lists; `None` if it lists none.
///
/// # Errors
/// Returns an error if there is metadata, and its packages can't be read.
pub fn read_script_packages(code: &str) -> Result<Option<NotePackages>, ScriptPackagesError> {
    let Some(block) = find_block(code)? else { return Ok(None) };
    let mut packages = NotePackages::default();
    let mut rest = block.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if line.trim_start().starts_with('[') {
            break; // keys of a table, such as [tool.uv], are other programs'
        }
        let key = line.split_once('=').map_or("", |(key, _)| key);
        let value = rest.get(key.len() + 1..).unwrap_or_default();
        rest = match key.trim().trim_matches(['"', '\'']) {
            REQUIRES_PYTHON_PROPERTY => {
                let (text, left) = read_string(value)
                    .filter(|(_, left)| is_line_over(left))
                    .ok_or(ScriptPackagesError::NotReadable(REQUIRES_PYTHON_PROPERTY))?;
                packages.requires_python = Some(text.to_owned());
                next_line(left)
            }
            DEPENDENCIES_PROPERTY => {
                let (list, left) = read_list(value)
                    .filter(|(_, left)| is_line_over(left))
                    .ok_or(ScriptPackagesError::NotReadable(DEPENDENCIES_PROPERTY))?;
                packages.dependencies = list;
                next_line(left)
            }
            _ => after,
        };
    }
    let is_stated = packages.requires_python.is_some() || !packages.dependencies.is_empty();
    Ok(is_stated.then_some(packages))
}

/// Returns the content of the block, without the comment signs.
fn find_block(code: &str) -> Result<Option<String>, ScriptPackagesError> {
    let mut starts = code.lines().enumerate().filter(|(_, line)| line.trim_end() == BLOCK_START);
    let Some((first, _)) = starts.next() else { return Ok(None) };
    if starts.next().is_some() {
        return Err(ScriptPackagesError::SeveralBlocks);
    }
    let comments = code.lines().skip(first + 1).take_while(|line| *line == "#" || line.starts_with("# "));
    let comments: Vec<&str> = comments.collect();
    let end = comments.iter().rposition(|line| line.trim_end() == BLOCK_END).ok_or(ScriptPackagesError::NoEnd)?;
    let lines: Vec<&str> = comments.iter().take(end).map(|line| line.strip_prefix("# ").unwrap_or_default()).collect();
    let block = lines.join("\n");
    if block.len() > MAX_BLOCK_BYTES {
        return Err(ScriptPackagesError::TooLong);
    }
    Ok(Some(block))
}

/// Returns whether nothing but a comment follows on this line.
fn is_line_over(rest: &str) -> bool {
    let left = rest.lines().next().unwrap_or_default().trim_start();
    left.is_empty() || left.starts_with('#')
}

fn next_line(rest: &str) -> &str {
    rest.split_once('\n').map_or("", |(_, after)| after)
}

/// Reads a text in quotation marks. Returns it, and what follows. Names and versions of packages need no escapes.
fn read_string(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let (inside, rest) = text[1..].split_once(quote)?;
    (!inside.contains(['\n', '\\'])).then_some((inside, rest))
}

/// Reads a list of texts, which may have several lines and comments. Returns it, and what follows.
fn read_list(text: &str) -> Option<(Vec<String>, &str)> {
    let mut rest = skip_space(text).strip_prefix('[')?;
    let mut list = Vec::new();
    loop {
        rest = skip_space(rest);
        if let Some(after) = rest.strip_prefix(']') {
            return Some((list, after));
        }
        let (item, after) = read_string(rest)?;
        list.push(item.to_owned());
        rest = skip_space(after);
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.starts_with(']') => {}
            None => return None,
        }
    }
}

/// Skips white space and comments.
fn skip_space(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if !text.starts_with('#') {
            return text;
        }
        text = next_line(text);
    }
}

#[cfg(test)]
mod tests {
    use super::{ScriptPackagesError, read_script_packages};

    #[test]
    fn the_packages_of_a_script_are_read() {
        let code = "#!/usr/bin/env python3\n# /// script\n# requires-python = '>=3.11' # new\n#\n\
            # dependencies = [\n#   \"rich\", # colors\n#   'boats[fast]>=1,<2',\n# ]\n# [tool.uv]\n\
            # dependencies = 5\n# ///\nimport rich\n";
        let packages = read_script_packages(code).expect("read").expect("some");
        assert_eq!(packages.requires_python.as_deref(), Some(">=3.11"));
        assert_eq!(packages.dependencies, ["rich", "boats[fast]>=1,<2"]);
        for none in ["import os\n", "# /// script\n# dependencies = []\n# ///\n", "x = '# /// script'\n"] {
            assert_eq!(read_script_packages(none), Ok(None), "{none}");
        }
    }

    #[test]
    fn what_cant_be_read_is_an_error() {
        let block = |inside: &str| read_script_packages(&format!("# /// script\n{inside}# ///\n"));
        for bad in [
            "# dependencies = rich\n",
            "# dependencies = [\"rich\"\n",
            "# dependencies = [\"rich\" \"six\"]\n",
            "# dependencies = [\"rich\"] x\n",
            "# dependencies = [\"\"\"rich\"\"\"]\n",
            "# dependencies = [\"a\\\\b\"]\n",
            "# requires-python = 3.11\n",
            "# requires-python = \n# \"3\"\n",
        ] {
            assert!(matches!(block(bad), Err(ScriptPackagesError::NotReadable(_))), "{bad}");
        }
        assert_eq!(
            read_script_packages("# /// script\n# dependencies = []\nimport os\n# ///\n"),
            Err(ScriptPackagesError::NoEnd)
        );
        assert_eq!(block("# ///\n# /// script\n"), Err(ScriptPackagesError::SeveralBlocks));
        assert_eq!(block(&"# x\n".repeat(40_000)), Err(ScriptPackagesError::TooLong));
    }
}
