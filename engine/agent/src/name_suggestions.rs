//! Suggestions for mistyped names: the closest known ones.

use crate::prompt_quote::quote_inline;

/// Maximum number of suggested names.
const MAX_CLOSEST_NAMES: usize = 3;
/// Maximum number of files that are compared with a path that isn't there.
const MAX_COMPARED_FILES: usize = 20_000;
/// Maximum length in characters of paths that are compared.
const MAX_COMPARED_CHARS: usize = 100;

/// Returns the known names closest to an unknown one, closest first; none if all are too different.
pub fn closest_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted: String = name.chars().take(100).flat_map(char::to_lowercase).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(usize, &str)> = known
        .filter_map(|one| {
            let lower = one.to_lowercase();
            let distance = strsim::damerau_levenshtein(&wanted, &lower);
            let most = (wanted.chars().count().max(lower.chars().count()) / 3).max(1);
            let begins = wanted.len() >= 2 && (lower.starts_with(&wanted) || wanted.starts_with(&lower));
            (distance <= most || begins).then_some((distance, one))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, one)| one).take(MAX_CLOSEST_NAMES).collect()
}

/// Says that there's no agent with a name, and which one may be meant.
pub fn unknown_agent_sentence(name: &str, known: &[String]) -> String {
    let near = closest_names(name, known.iter().map(String::as_str));
    let hint = match near.as_slice() {
        [] => format!("There are {}.", known.join(", ")),
        near => format!("Did you mean {}?", near.join(" or ")),
    };
    format!("There is no agent called {}. {hint}", quote_inline(name, 60))
}

/// Says that a rule allows nothing, since there's no tool with this name, and which one may be meant.
pub fn unknown_tool_sentence(name: &str, known: &[String]) -> String {
    let near = closest_names(name, known.iter().map(String::as_str));
    let hint = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(" or ")) };
    format!("There is no tool called {}, so nothing is allowed by it.{hint}", quote_inline(name, 60))
}

/// Returns the known paths closest to one that isn't there, the closest first: the same file name elsewhere, then
/// similar names.
pub fn closest_paths<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let short = |text: &str| -> String { text.chars().take(MAX_COMPARED_CHARS).flat_map(char::to_lowercase).collect() };
    let name_of = |path: &str| path.rsplit('/').next().map(short).unwrap_or_default();
    let (wanted, wanted_name) = (short(path), name_of(path));
    let stem = |name: &str| name.strip_suffix(".md").unwrap_or(name).to_owned();
    let mut found: Vec<(usize, &str)> = known
        .take(MAX_COMPARED_FILES)
        .map(|one| {
            let name = name_of(one);
            let distance = if stem(&name) == stem(&wanted_name) {
                0
            } else {
                strsim::damerau_levenshtein(&stem(&wanted_name), &stem(&name))
                    .min(strsim::damerau_levenshtein(&wanted, &short(one)))
            };
            (distance, one)
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, one)| one).take(MAX_CLOSEST_NAMES).collect()
}

/// Returns a sentence that names the closest paths; empty if nothing is known.
pub fn closest_sentence<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> String {
    match closest_paths(path, known).as_slice() {
        [] => String::new(),
        near => format!(" The closest are: {}.", near.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_its_neighbours() {
        let names = ["assistant", "qa", "backend", "frontend", "security"];
        let near = |name: &str| closest_names(name, names.into_iter());
        assert_eq!(near("backand"), ["backend"]);
        assert_eq!(near("q"), ["qa"]);
        assert_eq!(near("secur"), ["security"]);
        assert_eq!(near("nonsense"), [] as [&str; 0]);
        assert_eq!(near(""), [] as [&str; 0]);
    }

    #[test]
    fn a_missing_path_has_neighbours() {
        let known = ["notes/plan.md", "plans/Plans.md", "a.py", "readme.md"];
        assert_eq!(closest_paths("plan.md", known.into_iter())[0], "notes/plan.md");
        assert_eq!(closest_paths("plam.md", known.into_iter()).len(), 3);
        assert_eq!(closest_sentence("x", std::iter::empty()), "");
    }
}
