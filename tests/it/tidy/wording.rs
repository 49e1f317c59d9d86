//! Finds wording that `language.md` rules out, for tidy: in string literals of what is shipped, and in documents.

use super::source::Source;

/// Phrases that no string and no document uses, and what to write instead. The rule is in CONTRIBUTING.md.
pub(super) const RULED_OUT: &[(&str, &str)] = &[
    ("also where", "even if"),
    ("anew", "again"),
    ("any more", "no longer"),
    ("are had", "name what holds them"),
    ("as the dictionary has it", "correctly"),
    ("as the system has it", "follow the system"),
    ("at most so many", "maximum"),
    ("came of", "result"),
    ("comes of", "result"),
    ("for some seconds", "give the number"),
    ("goes on", "continues"),
    ("in other words", "rephrase"),
    ("is asked for", "requested"),
    ("is given up", "is canceled"),
    ("is had", "name who has it"),
    ("is in sight here", "is visible"),
    ("is let go", "is closed"),
    ("is looked", "say who looks"),
    ("is meant", "expected"),
    ("is no longer there", "no longer exists"),
    ("is to be", "must be"),
    ("is told", "say who tells"),
    ("it ended without a word", "say what ended, and what to do"),
    ("it is no", "it isn't a"),
    ("it went", "name the result"),
    ("look at all files", "rescan files"),
    ("made by your answers", "from your approvals"),
    ("made of the same", "name what it's made from"),
    ("not all of it", "part of it"),
    ("of that name", "with that name"),
    ("rate the result bad", "rate as bad"),
    ("show all of it", "show all"),
    ("size of everything", "zoom"),
    ("somebody", "a user, a device"),
    ("stands in", "is in"),
    ("stands there", "is there"),
    ("take the star away", "remove the star"),
    ("there is no such", "no such"),
    ("type a part", "search"),
    ("waits for a word", "needs approval"),
    ("waits for the cell before it", "queued"),
    ("was looked for yet", "say what to search for"),
    ("what came", "result"),
    ("whoever", "anyone who"),
    ("your word", "your approval"),
];

/// The phrases of a line that are ruled out, with what to write instead.
pub(super) fn ruled_out(line: &str) -> Vec<(&'static str, &'static str)> {
    let line = line.to_lowercase();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let stands_alone = |phrase: &str| {
        line.match_indices(phrase).any(|(at, _)| {
            !is_word(line[..at].chars().next_back()) && !is_word(line[at + phrase.len()..].chars().next())
        })
    };
    RULED_OUT.iter().filter(|(phrase, _)| stands_alone(phrase)).copied().collect()
}

/// The lines (from 1) of a source's string literals, unit tests left out, that have such a phrase.
pub(super) fn lines_with_ruled_out(source: &Source) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    if source.shipped.trim().is_empty() {
        return found;
    }
    let tests = source.test_lines();
    for ((text, code), number) in source.text.lines().zip(source.code.lines()).zip(1..) {
        if text.trim_start().starts_with("//") || tests.iter().any(|lines| lines.contains(&number)) {
            continue;
        }
        let text = text.split(" // ").next().unwrap_or(text);
        let named = ruled_out(code);
        found.extend(
            ruled_out(text).into_iter().filter(|hit| !named.contains(hit)).map(|(phrase, to)| (number, phrase, to)),
        );
    }
    found
}

#[test]
fn ruled_out_phrases_are_found_in_strings_alone() {
    let text = "//! a\n// whoever reads this\nfn whoever() {}\nconst A: &str = \"It is told to Whoever asks\";\n\
                const B: &str = \"manew, whoevers\"; // somebody\n#[cfg(test)]\nmod tests {\n\
                const C: &str = \"anew\";\n}\n";
    let source = Source::new("app/x/src/lib.rs".to_owned(), text.to_owned());
    let found: Vec<_> = lines_with_ruled_out(&source).into_iter().map(|(line, phrase, _)| (line, phrase)).collect();
    assert_eq!(found, [(4, "is told"), (4, "whoever")]);
    assert!(ruled_out("another one is needed").is_empty());
}
