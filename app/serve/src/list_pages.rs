//! Pages of long lists: how many items, and where the next page begins.

use crate::problem::ProblemDetails;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// Number of items in a page, if the client doesn't say, and at most.
pub(crate) const DEFAULT_PAGE_ITEMS: u64 = 200;
pub(crate) const MAX_PAGE_ITEMS: u64 = 1_000;

/// Where a page is in its list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PagePosition {
    /// Number of items on all pages.
    pub(crate) total: u64,
    /// Where the next page begins; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<u64>,
}

/// Checks a limit that a client names.
pub(crate) fn page_limit(limit: Option<u64>, default: u64, max: u64) -> Result<u64, ProblemDetails> {
    match limit.unwrap_or(default) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        _ => Err(ProblemDetails::new(StatusCode::BAD_REQUEST, format!("`limit` is a number from 1 to {max}"))),
    }
}

/// Returns the items of the page that begins at `cursor`.
pub(crate) fn list_page<T>(
    items: Vec<T>,
    limit: Option<u64>,
    cursor: Option<u64>,
) -> Result<(Vec<T>, PagePosition), ProblemDetails> {
    list_page_within(items, limit, cursor, (DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS))
}

/// Returns the items of the page that begins at `cursor`, with this many on a page: if the client doesn't say, and at
/// most.
pub(crate) fn list_page_within<T>(
    items: Vec<T>,
    limit: Option<u64>,
    cursor: Option<u64>,
    (default, max): (u64, u64),
) -> Result<(Vec<T>, PagePosition), ProblemDetails> {
    let limit = page_limit(limit, default, max)?;
    // The description says that a cursor is an `int64`.
    if cursor.is_some_and(|cursor| i64::try_from(cursor).is_err()) {
        return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, "`cursor` is the `next_cursor` of another page"));
    }
    let total = items.len() as u64;
    let first = cursor.unwrap_or(0);
    let page = items.into_iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
    let page: Vec<T> = page.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect();
    let end = first.saturating_add(page.len() as u64);
    Ok((page, PagePosition { total, next_cursor: (end < total).then_some(end) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_to_the_list() {
        let all: Vec<u32> = (0..7).collect();
        let (mut cursor, mut joined) = (None, Vec::new());
        loop {
            let (page, position) = list_page(all.clone(), Some(3), cursor).expect("a page");
            assert_eq!(position.total, 7);
            joined.extend(page);
            cursor = position.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(joined, all);
        assert_eq!(list_page(all.clone(), None, Some(u64::MAX >> 1)).expect("a page").0, Vec::<u32>::new());
        assert!(list_page(all.clone(), None, Some(u64::MAX)).is_err());
        assert!(list_page(all, Some(0), None).is_err());
    }
}
