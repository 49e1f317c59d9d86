//! Search: the engine of the command line, with hits that lead to pages.

use super::companion_session::{CompanionCaller, CompanionError};
use super::page_layout::{PageSection, file_url, page};
use crate::access_tokens::TokenScope;
use crate::http_state::UrlQuery;
use crate::rest_notes::find_hits;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

/// Number of hits on the page.
const SHOWN_HITS: u64 = 30;
/// Maximum length of a hit's text in characters.
const MAX_HIT_CHARS: usize = 280;

#[derive(Deserialize)]
pub(super) struct SearchPageQuery {
    q: Option<String>,
}

/// Marks the words of a query in a text.
fn marked(text: &str, query: &str) -> Markup {
    let lower: Vec<char> = text.chars().flat_map(|letter| letter.to_lowercase().next()).collect();
    let letters: Vec<char> = text.chars().collect();
    let is_word = |word: &&str| word.chars().count() > 1 && !word.contains(':') && !word.starts_with('-');
    let words = query.split_whitespace().map(|word| word.trim_matches(['"', '*', '(', ')']));
    let words: Vec<Vec<char>> =
        words.filter(is_word).map(|word| word.chars().flat_map(char::to_lowercase).collect()).collect();
    let (mut parts, mut plain, mut at) = (Vec::new(), String::new(), 0);
    while at < letters.len() {
        let begins = at == 0 || !letters[at - 1].is_alphanumeric();
        let hit = words.iter().find(|word| begins && lower[at..].starts_with(word));
        match hit {
            Some(word) => {
                parts.push((std::mem::take(&mut plain), letters[at..at + word.len()].iter().collect::<String>()));
                at += word.len();
            }
            None => {
                plain.push(letters[at]);
                at += 1;
            }
        }
    }
    html! {
        @for (before, hit) in &parts { (before) mark { (hit) } }
        (plain)
    }
}

fn hit_row(hit: &Value, query: &str) -> Markup {
    let text = |key: &str| hit[key].as_str().unwrap_or_default();
    let words = text("text").split_whitespace().collect::<Vec<_>>().join(" ");
    let words: String = words.chars().take(MAX_HIT_CHARS).collect();
    let leads_somewhere =
        !text("path").is_empty() && !text("volume").is_empty() && text("kind") != "memory" && text("kind") != "run";
    let content = html! {
        span class="name" { (marked(text("title"), query)) }
        span class="excerpt" { (marked(&words, query)) }
        span class="muted" { (text("why")) }
    };
    html! {
        li {
            @if leads_somewhere {
                a class="entry tall" href=(file_url(text("volume"), text("path"))) { (content) }
            } @else {
                div class="entry tall" { (content) }
            }
        }
    }
}

/// Shows what a query finds.
pub(super) async fn show_search(
    caller: CompanionCaller,
    UrlQuery(asked): UrlQuery<SearchPageQuery>,
) -> Result<Response, CompanionError> {
    caller.ensure(TokenScope::Read)?;
    let query = asked.q.unwrap_or_default().trim().to_owned();
    let (hits, said) = match query.as_str() {
        "" => (Vec::new(), String::new()),
        _ => find_hits(&caller.api, &query, SHOWN_HITS).await?,
    };
    let content = html! {
        h1 { "Search" }
        form class="row search" role="search" action="/search" aria-label="Search again" {
            input type="search" name="q" value=(query) aria-label="Words to find" required;
            button class="primary" type="submit" { "Search" }
        }
        @if !said.is_empty() {
            p class="muted" { (said) }
        }
        @if query.is_empty() {
            p class="muted" { "Search notes, code and outputs by words or by meaning." }
        } @else if hits.is_empty() {
            p class="muted" role="status" { "No results for “" (query) "”." }
        } @else {
            p class="muted" role="status" {
                (hits.len()) @if hits.len() == 1 { " result" } @else { " results" } " for “" (query) "”"
            }
            ul class="entries" { @for hit in &hits { (hit_row(hit, &query)) } }
        }
    };
    Ok(page(&caller, PageSection::Search, "Search", &content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_and_nothing_else_gets_through() {
        let of = |text: &str, query: &str| marked(text, query).0;
        assert_eq!(
            of("Solar panels, <b>solar</b>", "solar -b"),
            "<mark>Solar</mark> panels, &lt;b&gt;<mark>solar</mark>&lt;/b&gt;"
        );
        // Words are found by their beginnings, whatever their case.
        assert_eq!(of("insolar İstanbul é", "solar is"), "insolar <mark>İs</mark>tanbul é");
        assert_eq!(of("", "x"), "");
    }
}
