//! Fuzzy matching: all characters of the query must occur in order. Word starts, adjacent characters and short texts
//! score higher. Pure computation.

use text::composed_letters::composed_letters;

/// A match: its score, and the positions of the matched characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzyMatch {
    /// The higher, the better; comparable between matches of one query.
    pub score: i32,
    /// Position of each query character, in characters of the text, ascending.
    pub places: Vec<usize>,
}

/// A text prepared for repeated matching.
#[derive(Clone, Debug)]
pub struct FuzzyCandidate {
    letters: Vec<char>,
    /// Whether a word starts at each character.
    begins: Vec<bool>,
    /// Position of each character in the text; empty if they are the same.
    sources: Vec<usize>,
}

impl FuzzyCandidate {
    /// Prepares a text for matching.
    pub fn new(text: &str) -> FuzzyCandidate {
        let mut before = ' ';
        let mut hay = FuzzyCandidate { letters: Vec::new(), begins: Vec::new(), sources: Vec::new() };
        for (at, c) in composed_letters(text) {
            let begins = !before.is_alphanumeric() || (before.is_lowercase() && c.is_uppercase());
            hay.letters.push(c.to_lowercase().next().unwrap_or(c));
            hay.begins.push(begins);
            hay.sources.push(at);
            before = c;
        }
        if hay.sources.iter().enumerate().all(|(place, at)| place == *at) {
            hay.sources = Vec::new();
        }
        hay
    }

    /// Matches a query in lowercase and without spaces.
    pub fn match_query(&self, query: &[char]) -> Option<FuzzyMatch> {
        if query.is_empty() {
            return Some(FuzzyMatch { score: 0, places: Vec::new() });
        }
        // Greedy matches from every occurrence of the first letter; the best one wins.
        let starts = self.letters.iter().enumerate().filter(|(_, c)| **c == query[0]).map(|(at, _)| at).take(16);
        let best = starts.filter_map(|start| self.from(start, query)).max_by_key(|hit| hit.score)?;
        Some(self.with_sources(best))
    }

    /// Like [`FuzzyCandidate::match_query`], but rejects characters scattered within words: each one follows the
    /// previous one or starts a word. Only a query of three characters or more may start within a word.
    pub fn match_word_parts(&self, query: &[char]) -> Option<FuzzyMatch> {
        let hit = |start: usize| {
            let hit = self.from(start, query)?;
            let follows = hit.places.windows(2).all(|two| two[1] == two[0] + 1 || self.begins[two[1]]);
            let whole = hit.places.windows(2).all(|two| two[1] == two[0] + 1);
            (follows && (self.begins[start] || (whole && query.len() >= 3))).then_some(hit)
        };
        let Some(first) = query.first() else { return self.match_query(query) };
        let starts = self.letters.iter().enumerate().filter(|(_, c)| *c == first).map(|(at, _)| at).take(16);
        Some(self.with_sources(starts.filter_map(hit).max_by_key(|hit| hit.score)?))
    }

    /// Returns a match with the positions that its characters have in the text.
    fn with_sources(&self, mut hit: FuzzyMatch) -> FuzzyMatch {
        for place in &mut hit.places {
            *place = self.sources.get(*place).copied().unwrap_or(*place);
        }
        hit
    }

    fn from(&self, start: usize, query: &[char]) -> Option<FuzzyMatch> {
        let (mut places, mut score, mut at) = (Vec::with_capacity(query.len()), 0_i32, start);
        for c in query {
            let next = self.next(at, *c, places.last().copied())?;
            let neighbour = places.last().is_some_and(|last: &usize| last + 1 == next);
            let begins = if self.begins[next] { if places.is_empty() { 8 } else { 5 } } else { 0 };
            score += 1 + if neighbour { 8 } else { begins };
            if let Some(last) = places.last() {
                score -= i32::try_from((next - last - 1).min(6)).unwrap_or(6);
            }
            places.push(next);
            at = next + 1;
        }
        if start == 0 {
            score += 4;
        }
        score -= i32::try_from(self.letters.len() / 16).unwrap_or(i32::MAX).min(8);
        Some(FuzzyMatch { score, places })
    }

    /// Returns the next position of a character: directly after the last one, else at the start of a word, else
    /// anywhere.
    fn next(&self, from: usize, c: char, last: Option<usize>) -> Option<usize> {
        if last.is_some_and(|last| self.letters.get(last + 1) == Some(&c)) {
            return last.map(|last| last + 1);
        }
        let places = || (from..self.letters.len()).filter(|at| self.letters[*at] == c);
        places().find(|at| self.begins[*at]).filter(|_| last.is_some()).or_else(|| places().next())
    }
}

/// Returns the characters of a query, in lowercase and without spaces.
pub fn query_chars(query: &str) -> Vec<char> {
    let letters = composed_letters(query).into_iter().map(|(_, letter)| letter);
    letters.filter(|letter| !letter.is_whitespace()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order<'a>(query: &str, mut texts: Vec<&'a str>) -> Vec<&'a str> {
        let query = query_chars(query);
        texts.retain(|text| FuzzyCandidate::new(text).match_query(&query).is_some());
        texts.sort_by_key(|text| -FuzzyCandidate::new(text).match_query(&query).map_or(0, |hit| hit.score));
        texts
    }

    #[test]
    fn beginnings_and_neighbours_come_first() {
        assert_eq!(order("rain", vec!["Brain", "Rainfall", "r a i n", "nothing"]), ["Rainfall", "Brain", "r a i n"]);
        assert_eq!(order("ra", vec!["Grand", "Run all cells", "Radio"])[0], "Radio");
        assert_eq!(order("op fold", vec!["Open folder as volume", "Go to note"]), ["Open folder as volume"]);
        assert_eq!(FuzzyCandidate::new("Äpfel").match_query(&query_chars("ä")).map(|hit| hit.places), Some(vec![0]));
        let places =
            |query: &str, text: &str| FuzzyCandidate::new(text).match_query(&query_chars(query)).map(|hit| hit.places);
        let of_macos = "x \u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}";
        assert_eq!(places("한글", of_macos), Some(vec![2, 5]), "positions are those of the text");
        assert_eq!(places("e\u{301}t", "Été"), Some(vec![0, 1]));
    }

    #[test]
    fn letters_scattered_over_words_are_no_hit() {
        let hits = |query: &str, text: &str| FuzzyCandidate::new(text).match_word_parts(&query_chars(query)).is_some();
        assert!(hits("run all", "Run all cells") && hits("rac", "Run all cells") && hits("ru ce", "Run all cells"));
        assert!(hits("fold", "Unfold all headings") && !hits("fo", "Unfold all headings"));
        assert!(!hits("help", "Open the last export") && !hits("grant", "Graph around this note"));
    }
}
