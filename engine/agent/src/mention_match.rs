//! What a mention in a message means if it isn't exactly an agent's name or a file's path: a name in another case, or a
//! part of one.

use crate::agent_registry::is_agent_file;
use crate::prompt_quote;

/// Minimum length in characters of a part of a name. Shorter ones are text.
const MIN_PART_CHARS: usize = 3;
/// Maximum number of files whose names are compared.
const MAX_COMPARED_FILES: usize = 20_000;
/// Maximum number of names that are put in order by their distance.
const MAX_COMPARED_NAMES: usize = 200;
/// Maximum number of names that an answer has.
const MAX_NAMED: usize = 3;

/// The agent or note that a mention means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MentionMatch {
    /// The agent with this name.
    Agent(String),
    /// The note with this path.
    Note(String),
    /// One of several, the closest first: agents with `@`, notes by their paths.
    Several(Vec<String>),
    /// Neither an agent nor a note.
    Nothing,
}

/// Finds what a mention means, in any case, with `-`, `_` and spaces as the same: the whole name of an agent, then that
/// of a note, then that of another volume's agent without the volume, then a part of one of these names. `agents` are
/// names, each with the agent's own name; `files` are paths.
pub fn match_mention<'a>(
    mention: &str,
    agents: &[(String, String)],
    files: impl Iterator<Item = &'a str>,
) -> MentionMatch {
    let wanted = plain(mention.strip_suffix(".md").unwrap_or(mention));
    if wanted.is_empty() {
        return MentionMatch::Nothing;
    }
    // `Garden/poet.md` is the path of a note.
    let is_path = mention.contains('/') && mention.ends_with(".md");
    let agents: &[(String, String)] = if is_path { &[] } else { agents };
    if let Some((_, agent)) = agents.iter().find(|(name, _)| plain(name) == wanted) {
        return MentionMatch::Agent(agent.clone());
    }
    let has_part = wanted.chars().count() >= MIN_PART_CHARS;
    let (mut whole, mut short, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (name, agent) in agents {
        let in_volume = name.rsplit_once('/').map(|(_, name)| plain(name));
        let one = (MentionMatch::Agent(agent.clone()), plain(agent));
        if in_volume.as_ref() == Some(&wanted) && !short.contains(&one) {
            short.push(one);
        }
    }
    for (name, agent) in agents.iter().filter(|_| has_part) {
        let is_new = !parts.contains(&(MentionMatch::Agent(agent.clone()), plain(agent)));
        if is_new && plain(name).contains(&wanted) {
            parts.push((MentionMatch::Agent(agent.clone()), plain(agent)));
        }
    }
    for path in files.take(MAX_COMPARED_FILES) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let Some(name) = name.strip_suffix(".md").filter(|_| !is_agent_file(path)).map(plain) else { continue };
        if name == wanted {
            whole.push((MentionMatch::Note(path.to_owned()), name));
        } else if has_part && name.contains(&wanted) {
            parts.push((MentionMatch::Note(path.to_owned()), name));
        }
    }
    let mut found = [whole, short, parts].into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    match found.as_slice() {
        [] => return MentionMatch::Nothing,
        [(only, _)] => return only.clone(),
        [_, _, ..] => {}
    }
    found.truncate(MAX_COMPARED_NAMES);
    found.sort_by_cached_key(|(_, name)| strsim::damerau_levenshtein(&wanted, name));
    let named = found.into_iter().take(MAX_NAMED).map(|(one, _)| match one {
        MentionMatch::Agent(name) => format!("@{name}"),
        MentionMatch::Note(path) => path,
        MentionMatch::Several(_) | MentionMatch::Nothing => String::new(),
    });
    MentionMatch::Several(named.collect())
}

/// Returns a sentence that says which note a mention attached, unless the mention is the note's whole name.
pub fn attached_note_sentence(mention: &str, path: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let [wanted, name] = [mention, name].map(|name| plain(name.strip_suffix(".md").unwrap_or(name)));
    let mention = prompt_quote::quote_inline(mention, 60);
    (wanted != name).then(|| format!("{mention} means {}, which was attached.", prompt_quote::single_line(path, 100)))
}

/// Returns the agents that the files of a volume define, before these are read: by the names of the files.
pub fn agents_of_files<'a>(files: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let agents = files.take(MAX_COMPARED_FILES).filter(|path| is_agent_file(path));
    agents
        .filter_map(|path| path.rsplit('/').next()?.rsplit_once('.'))
        .map(|(name, _)| (name.to_owned(), name.to_owned()))
        .collect()
}

/// Returns a text without inline code and fenced code, where `@` isn't a mention.
pub fn strip_code(text: &str) -> String {
    let mut plain = String::new();
    let mut fence: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let ticks = line.trim_start().bytes().take_while(|byte| *byte == b'`').count();
        match fence {
            // What holds more of them on its line is code within text (CommonMark, "Fenced code blocks").
            None if ticks >= 3 && !line.trim_start().trim_start_matches('`').contains('`') => fence = Some(ticks),
            Some(open) if ticks >= open => fence = None,
            Some(_) => {}
            None => {
                let last = line.matches('`').count();
                for (at, piece) in line.split('`').enumerate() {
                    // A backtick without a second one is an ordinary character.
                    let is_text = at % 2 == 0 || at == last;
                    plain.push_str(if is_text { piece } else { " " });
                }
            }
        }
        plain.push('\n');
    }
    plain
}

/// Returns a name in the form that is compared.
fn plain(name: &str) -> String {
    name.chars()
        .take(200)
        .flat_map(char::to_lowercase)
        .map(|letter| if "- ".contains(letter) { '_' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(mention: &str) -> MentionMatch {
        let agents = [("planner", "planner"), ("qa", "qa"), ("Quantum", "Quantum"), ("qubits", "Quantum")];
        let agents = agents.map(|(name, agent)| (name.to_owned(), agent.to_owned()));
        let files = ["Plan.md", "old/Plans of 2025.md", "old/Garden plan.md", "calc.py", "components/agents/poet.md"];
        match_mention(mention, &agents, files.into_iter())
    }

    #[test]
    fn whole_names_come_before_parts_of_names() {
        let (agent, note) =
            (|name: &str| MentionMatch::Agent(name.to_owned()), |path: &str| MentionMatch::Note(path.to_owned()));
        assert_eq!(matched("QA"), agent("qa"));
        assert_eq!(matched("plan"), note("Plan.md"));
        assert_eq!(matched("Planner"), agent("planner"));
        assert_eq!(matched("quant"), agent("Quantum"));
        assert_eq!(matched("qubit"), agent("Quantum"));
        assert_eq!(matched("garden-plan"), note("old/Garden plan.md"));
        assert_eq!(matched("2025"), note("old/Plans of 2025.md"));
        assert_eq!(matched("anne"), agent("planner"));
        let near = ["@planner", "Plan.md", "old/Garden plan.md"].map(str::to_owned);
        assert_eq!(matched("pla"), MentionMatch::Several(vec![near[1].clone(), near[0].clone(), near[2].clone()]));
        for text in ["", "q", "an", "calc", "poet", "nothing"] {
            assert_eq!(matched(text), MentionMatch::Nothing, "{text}");
        }
    }

    #[test]
    fn agents_of_other_volumes_are_meant_without_the_volume_where_only_one_has_the_name() {
        let agents = ["Garden/poet", "Garden/quant", "Far land/quant"].map(|name| (name.to_owned(), name.to_owned()));
        let matched = |mention: &str| match_mention(mention, &agents, ["Quantity.md", "poets/list.md"].into_iter());
        let agent = |name: &str| MentionMatch::Agent(name.to_owned());
        assert_eq!(matched("poet"), agent("Garden/poet"));
        assert_eq!(matched("garden/Poet"), agent("Garden/poet"));
        assert_eq!(matched("far-land/quant"), agent("Far land/quant"));
        assert_eq!(matched("quantity"), MentionMatch::Note("Quantity.md".to_owned()));
        let several = ["@Garden/quant", "@Far land/quant"].map(str::to_owned).to_vec();
        assert_eq!(matched("quant"), MentionMatch::Several(several));
        assert_eq!(matched("Garden/poet.md"), MentionMatch::Nothing);
    }

    #[test]
    fn a_part_of_a_name_says_which_note_it_attached() {
        let said = attached_note_sentence("gard", "old/Garden plan.md").expect("a part");
        assert_eq!(said, "\u{201c}gard\u{201d} means old/Garden plan.md, which was attached.");
        assert_eq!(attached_note_sentence("garden-PLAN", "old/Garden plan.md"), None);
    }

    #[test]
    fn code_is_left_out_of_a_text_and_stray_backticks_are_not_code() {
        assert_eq!(strip_code("ask `@a` or @b"), "ask   or @b\n");
        assert_eq!(strip_code("5` long: @a"), "5 long: @a\n");
        assert_eq!(strip_code("```x``` @a\n@b").trim(), "@a\n\n@b");
        assert_eq!(strip_code("```py\n@a\n```\n@b"), "\n\n\n@b\n");
    }

    #[test]
    fn agents_are_known_by_their_files() {
        let files = ["Plan.md", "components/agents/poet.md", "agents/x/y.md"];
        assert_eq!(agents_of_files(files.into_iter()), [("poet".to_owned(), "poet".to_owned())]);
    }
}
