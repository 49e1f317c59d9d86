//! Filters of a search that are given apart from the query.

use crate::passage::PassageKind;
use crate::query::ParsedQuery;

/// Filters besides those in the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilters {
    /// Kinds of passages; empty: all.
    pub kinds: Vec<PassageKind>,
    /// Tags that a note must have, all of them.
    pub tags: Vec<String>,
    /// A part of the path.
    pub path: Option<String>,
    /// Only notes changed before this day, such as `2026-11-22`.
    pub before: Option<String>,
    /// Only notes changed on this day or later.
    pub after: Option<String>,
}

impl SearchFilters {
    /// Adds these filters to a query, in query syntax.
    pub fn apply_to(&self, query: &str) -> String {
        let quoted = |name: &str, value: &str| format!("{name}:\"{}\" ", value.replace('"', " "));
        let kinds: Vec<String> = self.kinds.iter().map(|kind| format!("in:{}", kind.name())).collect();
        let mut text = kinds.join(" OR ");
        text.push(' ');
        text.extend(self.tags.iter().map(|tag| quoted("tag", tag)));
        let others = [("path", &self.path), ("before", &self.before), ("after", &self.after)];
        text.extend(others.iter().filter_map(|(name, value)| Some(quoted(name, value.as_ref()?))));
        // The query's first word has no left side for `OR`.
        text.push_str(query.trim_start().trim_start_matches("OR "));
        text.trim().to_owned()
    }

    /// Returns an explanation of the first day that is none.
    pub fn misread_day(&self) -> Option<String> {
        let mut days = [("before", &self.before), ("after", &self.after)].into_iter();
        days.find_map(|(name, day)| ParsedQuery::misread_filter(&format!("{name}:\"{}\"", day.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_a_query() {
        let filters = SearchFilters {
            kinds: vec![PassageKind::Run, PassageKind::Memory],
            tags: vec!["a b\"".to_owned()],
            path: Some("x/y".to_owned()),
            before: None,
            after: Some("2026-11".to_owned()),
        };
        let text = filters.apply_to("OR plan -not");
        assert_eq!(text, "in:run OR in:memory tag:\"a b \" path:\"x/y\" after:\"2026-11\" plan -not");
        assert_eq!(ParsedQuery::parse(&text).groups.len(), 6);
        assert_eq!(SearchFilters::default().apply_to(" plan "), "plan");
        assert_eq!(filters.misread_day(), None);
        let wrong = SearchFilters { before: Some("soon".to_owned()), ..SearchFilters::default() };
        assert!(wrong.misread_day().is_some_and(|said| said.contains("soon")));
    }
}
