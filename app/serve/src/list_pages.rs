//! Pages of long lists: how many items, and where the next page begins.
//!
//! A cursor of REST, and a page token of gRPC, name the last item of the page before, so that a page begins after this
//! item even if others were added or removed meanwhile. It's a number: the lower bits count the items up to there, the
//! upper ones are from the hash of the item's key. Without upper bits it's a position in the list.

use crate::problem::ProblemDetails;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Number of items in a page, if the client doesn't say, and at most.
pub(crate) const DEFAULT_PAGE_ITEMS: u64 = 200;
pub(crate) const MAX_PAGE_ITEMS: u64 = 1_000;
/// Number of bits of a cursor that count items. With those of the key it has 53, up to which JSON's numbers are exact.
const POSITION_BITS: u32 = 21;
const MAX_POSITION: u64 = (1 << POSITION_BITS) - 1;

/// Where a page is in its list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PagePosition {
    /// Number of items on all pages.
    pub(crate) total: u64,
    /// Where the next page begins; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<u64>,
}

impl PagePosition {
    /// Returns the number of items on the pages before this one, which has `count`.
    pub(crate) fn items_before(&self, count: usize) -> u64 {
        let end = self.next_cursor.map_or(self.total, cursor_position);
        end.saturating_sub(count as u64)
    }
}

/// Which part of a list is wanted.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// How many at most.
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    pub(crate) cursor: Option<u64>,
}

/// Checks a limit that a client names.
pub(crate) fn page_limit(limit: Option<u64>, default: u64, max: u64) -> Result<u64, ProblemDetails> {
    match limit.unwrap_or(default) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        _ => Err(ProblemDetails::new(StatusCode::BAD_REQUEST, format!("`limit` is a number from 1 to {max}"))),
    }
}

/// Checks a cursor that a client sends.
pub(crate) fn page_cursor(cursor: Option<u64>) -> Result<u64, ProblemDetails> {
    match cursor.unwrap_or(0) {
        // The description says that a cursor is an `int64`.
        cursor if i64::try_from(cursor).is_ok() => Ok(cursor),
        _ => Err(ProblemDetails::new(StatusCode::BAD_REQUEST, "`cursor` is the `next_cursor` of another page")),
    }
}

/// Returns how many items there were up to a cursor.
pub(crate) fn cursor_position(cursor: u64) -> u64 {
    cursor & MAX_POSITION
}

/// Returns bits of the hash of a key, which are never 0.
fn key_bits(key: &str) -> u64 {
    let [a, b, c, d, ..] = *blake3::hash(key.as_bytes()).as_bytes();
    u64::from(u32::from_le_bytes([a, b, c, d]).max(1))
}

/// Returns the cursor after the item with this key, up to which there are `position` items.
pub(crate) fn cursor_after(position: u64, key: &str) -> u64 {
    (key_bits(key) << POSITION_BITS) | position.min(MAX_POSITION)
}

/// Returns where the page of a cursor begins in a list.
pub(crate) fn page_start<T>(items: &[T], cursor: u64, key: &impl Fn(&T) -> String) -> usize {
    let position = usize::try_from(cursor_position(cursor)).unwrap_or(usize::MAX);
    let bits = cursor >> POSITION_BITS;
    if bits == 0 {
        return position;
    }
    let expected = position.saturating_sub(1);
    let is_last = |at: &usize| items.get(*at).is_some_and(|item| key_bits(&key(item)) == bits);
    let nearest = || (0..items.len()).filter(is_last).min_by_key(|at| at.abs_diff(expected));
    // If the item is gone, the next one has taken its place.
    Some(expected).filter(is_last).or_else(nearest).map_or(expected, |at| at + 1)
}

/// Returns the items of the page at `cursor`, which begins after the item that the cursor names by its key.
pub(crate) fn keyed_page<T>(
    items: Vec<T>,
    limit: Option<u64>,
    cursor: Option<u64>,
    key: impl Fn(&T) -> String,
) -> Result<(Vec<T>, PagePosition), ProblemDetails> {
    keyed_page_within(items, limit, cursor, (DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS), key)
}

/// Returns the items of the page at `cursor`, with this many on a page: if the client doesn't say, and at most.
pub(crate) fn keyed_page_within<T>(
    items: Vec<T>,
    limit: Option<u64>,
    cursor: Option<u64>,
    (default, max): (u64, u64),
    key: impl Fn(&T) -> String,
) -> Result<(Vec<T>, PagePosition), ProblemDetails> {
    let limit = usize::try_from(page_limit(limit, default, max)?).unwrap_or(usize::MAX);
    let start = page_start(&items, page_cursor(cursor)?, &key);
    let total = items.len() as u64;
    let page: Vec<T> = items.into_iter().skip(start).take(limit).collect();
    let end = (start as u64).saturating_add(page.len() as u64);
    let next_cursor = page.last().filter(|_| end < total).map(|last| cursor_after(end, &key(last)));
    Ok((page, PagePosition { total, next_cursor }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_to_the_list() {
        let all: Vec<u32> = (0..7).collect();
        let (mut cursor, mut joined) = (None, Vec::new());
        loop {
            let (page, position) = keyed_page(all.clone(), Some(3), cursor, u32::to_string).expect("a page");
            assert_eq!((position.total, position.items_before(page.len())), (7, joined.len() as u64));
            joined.extend(page);
            cursor = position.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(joined, all);
        assert!(keyed_page(all, Some(0), None, u32::to_string).is_err());
    }

    fn keyed(items: &[u32], limit: u64, cursor: Option<u64>) -> (Vec<u32>, Option<u64>) {
        let (page, position) = keyed_page(items.to_vec(), Some(limit), cursor, u32::to_string).expect("a page");
        assert_eq!(position.total, items.len() as u64);
        (page, position.next_cursor)
    }

    #[test]
    fn a_page_begins_after_the_same_item_whatever_was_added_or_removed() {
        let (page, cursor) = keyed(&[1, 2, 3, 4, 5], 2, None);
        assert_eq!(page, [1, 2]);
        assert!(cursor.is_some_and(|cursor| cursor < 1 << 53 && cursor > MAX_POSITION));
        assert_eq!(keyed(&[1, 2, 3, 4, 5], 2, cursor).0, [3, 4]);
        // Before, after and in place of what was read.
        assert_eq!(keyed(&[9, 8, 1, 2, 3, 4, 5], 2, cursor).0, [3, 4]);
        assert_eq!(keyed(&[2, 3, 4, 5], 2, cursor).0, [3, 4]);
        assert_eq!(keyed(&[1, 3, 4, 5], 2, cursor).0, [3, 4]);
        // Of several with the key, the nearest counts.
        assert_eq!(keyed(&[2, 6, 7, 2], 1, cursor).0, [6]);
        assert_eq!(keyed(&[1, 2], 2, None).1, None);
        assert_eq!(keyed(&[1, 2], 2, cursor), (Vec::new(), None));
        // Numbers that are positions.
        assert_eq!(keyed(&[1, 2, 3], 2, Some(2)), (vec![3], None));
        assert_eq!(keyed(&[1, 2, 3], 2, Some(MAX_POSITION)), (Vec::new(), None));
        keyed(&[1, 2, 3], 2, Some(u64::MAX >> 1));
        assert!(keyed_page(vec![1], None, Some(u64::MAX), u32::to_string).is_err());
    }
}
