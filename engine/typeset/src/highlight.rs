//! Syntax highlighting with the grammars of Sublime Text and bat.
//!
//! It takes milliseconds or more, so it must not run on the UI thread.

use std::ops::Range;
use std::sync::OnceLock;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// Token categories, limited to the few colors that a page has for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum CodeHue {
    /// A keyword of the language.
    Keyword,
    /// A string literal.
    Text,
    /// A comment.
    Comment,
    /// A number or another constant.
    Number,
    /// A defined or called name, a tag or a key.
    Name,
}

/// Maximum length of highlighted code in bytes; longer code stays plain.
const MAX_HIGHLIGHTED_BYTES: usize = 200_000;
/// Maximum length of a highlighted line in bytes, because grammars are slow on minified code.
const MAX_HIGHLIGHTED_LINE_BYTES: usize = 2_000;

fn syntax_set() -> &'static SyntaxSet {
    static SYNTAX_SET: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAX_SET.get_or_init(two_face::syntax::extra_newlines)
}

fn find_syntax(language: &str) -> Option<&'static SyntaxReference> {
    let language = match language.to_ascii_lowercase().as_str() {
        "" | "text" | "txt" | "plain" | "plaintext" | "mermaid" => return None,
        "shell" | "console" | "zsh" => "bash".to_owned(),
        "jsonc" | "json5" => "json".to_owned(),
        "c#" => "cs".to_owned(),
        "docker" => "dockerfile".to_owned(),
        other => other.to_owned(),
    };
    syntax_set().find_syntax_by_token(&language)
}

/// Returns the scopes that have a color; the longest matching scope wins.
fn scope_hues() -> &'static [(Scope, Option<CodeHue>)] {
    static SCOPE_HUES: OnceLock<Vec<(Scope, Option<CodeHue>)>> = OnceLock::new();
    const SCOPE_HUE_NAMES: &[(&str, Option<CodeHue>)] = &[
        ("comment", Some(CodeHue::Comment)),
        ("string", Some(CodeHue::Text)),
        ("markup.raw", Some(CodeHue::Text)),
        ("markup.inserted", Some(CodeHue::Text)),
        ("markup.deleted", Some(CodeHue::Keyword)),
        ("markup.heading", Some(CodeHue::Name)),
        ("constant", Some(CodeHue::Number)),
        ("keyword", Some(CodeHue::Keyword)),
        ("keyword.operator", None),
        ("keyword.operator.word", Some(CodeHue::Keyword)),
        ("keyword.operator.logical.python", Some(CodeHue::Keyword)),
        ("storage", Some(CodeHue::Keyword)),
        ("variable.language", Some(CodeHue::Keyword)),
        ("entity.name", Some(CodeHue::Name)),
        ("entity.other.attribute-name", Some(CodeHue::Number)),
        ("entity.other.inherited-class", Some(CodeHue::Name)),
        ("support.function", Some(CodeHue::Name)),
        ("support.class", Some(CodeHue::Name)),
        ("support.type", Some(CodeHue::Name)),
        ("support.constant", Some(CodeHue::Number)),
        ("variable.function", Some(CodeHue::Name)),
        ("meta.annotation", Some(CodeHue::Number)),
    ];
    SCOPE_HUES.get_or_init(|| {
        let mut table: Vec<(Scope, Option<CodeHue>)> =
            SCOPE_HUE_NAMES.iter().filter_map(|(name, hue)| Some((Scope::new(name).ok()?, *hue))).collect();
        table.sort_by_key(|(scope, _)| std::cmp::Reverse(scope.len()));
        table
    })
}

fn stack_hue(stack: &ScopeStack) -> Option<CodeHue> {
    let found = |scope: &Scope| scope_hues().iter().find(|(known, _)| known.is_prefix_of(*scope)).map(|(_, hue)| *hue);
    // Everything in a comment has the comment's color. Elsewhere the innermost scope wins, so escapes in strings stand
    // out.
    let outer = stack.scopes.iter().find_map(|scope| found(scope).flatten().filter(|hue| *hue == CodeHue::Comment));
    outer.or_else(|| stack.scopes.iter().rev().find_map(found).flatten())
}

/// Highlights code. Returns the colored ranges in order, or `None` if the language is unknown or the code too long.
pub fn highlight_code(code: &str, language: &str) -> Option<Vec<(Range<usize>, CodeHue)>> {
    if code.len() > MAX_HIGHLIGHTED_BYTES {
        return None;
    }
    let mut state = ParseState::new(find_syntax(language)?);
    let mut stack = ScopeStack::new();
    let mut out: Vec<(Range<usize>, CodeHue)> = Vec::new();
    let mut at = 0;
    for line in code.split_inclusive('\n') {
        if line.len() > MAX_HIGHLIGHTED_LINE_BYTES {
            at += line.len();
            continue;
        }
        let ops = state.parse_line(line, syntax_set()).ok()?;
        let mut from = 0;
        for (place, op) in ops {
            push_hue(&mut out, at + from..at + place, &stack);
            stack.apply(&op).ok()?;
            from = place;
        }
        push_hue(&mut out, at + from..at + line.len(), &stack);
        at += line.len();
    }
    Some(out)
}

fn push_hue(out: &mut Vec<(Range<usize>, CodeHue)>, range: Range<usize>, stack: &ScopeStack) {
    if range.is_empty() {
        return;
    }
    if let Some(hue) = stack_hue(stack) {
        match out.last_mut() {
            Some((last, known)) if last.end == range.start && *known == hue => last.end = range.end,
            _ => out.push((range, hue)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_languages_have_a_grammar() {
        let languages = "rust python js ts tsx go c cpp java kotlin swift cs rb php bash fish powershell sql html css \
             scss json yaml toml xml markdown haskell ocaml elixir erlang lua r julia scala clojure dart zig nix \
             dockerfile make cmake diff latex perl vim graphql ini terraform";
        let unknown: Vec<&str> =
            languages.split_whitespace().filter(|language| find_syntax(language).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(find_syntax("klingon").is_none() && find_syntax("").is_none());
    }

    #[test]
    fn words_strings_and_comments_stand_out() {
        let code = "// é\nfn main() {\n    let x = \"a\\n\"; /* b\n c */ foo(1);\n}\n";
        let found = highlight_code(code, "rust").expect("a grammar");
        let hue_of = |word: &str| {
            let at = code.find(word).expect("it is there");
            found.iter().find(|(range, _)| range.contains(&at)).map(|(_, hue)| *hue)
        };
        assert_eq!(hue_of("// é"), Some(CodeHue::Comment));
        assert_eq!(hue_of("fn"), Some(CodeHue::Keyword));
        assert_eq!(hue_of("main"), Some(CodeHue::Name));
        assert_eq!(hue_of("\"a"), Some(CodeHue::Text));
        assert_eq!(hue_of(" c */"), Some(CodeHue::Comment));
        assert_eq!(hue_of("1)"), Some(CodeHue::Number));
        assert_eq!(hue_of("{"), None);
        assert!(found.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start));
        assert!(found.iter().all(|(range, _)| code.get(range.clone()).is_some()));
        let json = highlight_code("{\"a\": [1, true]}\n", "json").expect("a grammar");
        assert!(!json.is_empty());
    }
}
