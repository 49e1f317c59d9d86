//! What an MCP server knows about one client: the level of its log, and the resources that it watches.

#![expect(deprecated, reason = "clients of the protocol before 2026-07-28 have log levels and subscriptions")]

use crate::client_roots::ClientRoots;
use crate::event_feed::{EventFeed, FeedEvent};
use crate::mcp_resources::ServedResource;
use crate::token_lease::{self, TokenLease};
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ResourceUpdatedNotificationParam};
use rmcp::service::SubscriptionContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of resources that a client watches.
pub(crate) const MAX_WATCHED_RESOURCES: usize = 1_000;
/// How often a watcher looks whether its client is still there.
const CLOSED_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Under which name log messages are sent.
const LOGGER: &str = "tracebook";

/// What is known about one client.
#[derive(Default)]
pub(crate) struct McpSession {
    /// The least level that is sent; nothing is before the client has chosen one.
    level: Mutex<Option<LoggingLevel>>,
    /// Addresses of resources.
    watched: Mutex<BTreeSet<String>>,
    is_watching: AtomicBool,
    pub(crate) roots: ClientRoots,
}

/// Returns the addresses that an event is about; `None` if it may be any.
fn changed_uri(event: &FeedEvent) -> Option<String> {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    let (volume, path) = (data["project"].as_str()?, data["path"].as_str()?);
    Some(ServedResource::of_path(volume, path).uri())
}

/// Returns which of the watched resources an event is about.
fn touched(watched: &BTreeSet<String>, event: &FeedEvent) -> Vec<String> {
    match event.kind.as_str() {
        "FILE_CHANGED" => changed_uri(event).filter(|uri| watched.contains(uri)).into_iter().collect(),
        // Events are missing, so everything may have changed.
        "GAP" => watched.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

impl McpSession {
    fn watched(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Sends a log message if the client wants such.
    pub(crate) async fn log(&self, peer: &Peer<RoleServer>, level: LoggingLevel, words: &str) {
        let least = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        if least.is_some_and(|least| level as u8 >= least as u8) {
            let message = LoggingMessageNotificationParam::new(level, Value::from(words)).with_logger(LOGGER);
            // A client that doesn't read its log still gets results.
            let _ = peer.notify_logging_message(message).await;
        }
    }

    /// Watches a resource.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        feed: &Arc<EventFeed>,
        peer: &Peer<RoleServer>,
        lease: Option<&Arc<TokenLease>>,
        uri: String,
    ) -> Result<(), ErrorData> {
        if self.watched().len() >= MAX_WATCHED_RESOURCES && !self.watched().contains(&uri) {
            let why = format!("at most {MAX_WATCHED_RESOURCES} resources can be watched; unsubscribe from others");
            return Err(ErrorData::invalid_request(why, None));
        }
        feed.begin().await.map_err(|_| ErrorData::internal_error("changes can't be followed now; try again", None))?;
        self.watched().insert(uri);
        if !self.is_watching.swap(true, Ordering::Relaxed) {
            let (session, feed, peer, lease) = (self.clone(), feed.clone(), peer.clone(), lease.cloned());
            let number = feed.last_number();
            tokio::spawn(async move { session.tell_changes(&feed, &peer, lease.as_deref(), number).await });
        }
        Ok(())
    }

    /// Watches a resource no longer.
    pub(crate) fn unwatch(&self, uri: &str) {
        self.watched().remove(uri);
    }

    /// Tells a client about changes for as long as it's connected and may be served.
    async fn tell_changes(
        &self,
        feed: &EventFeed,
        peer: &Peer<RoleServer>,
        lease: Option<&TokenLease>,
        mut number: u64,
    ) {
        while !peer.is_transport_closed() {
            let next = tokio::time::timeout(CLOSED_CHECK_INTERVAL, feed.next_after(number)).await;
            if !token_lease::holds(lease) {
                return;
            }
            let Ok((event, has_gap)) = next else { continue };
            number = event.number;
            let uris =
                if has_gap { self.watched().iter().cloned().collect() } else { touched(&self.watched(), &event) };
            for uri in uris {
                if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Tells a client about changes until it ends its request to listen: how resources are watched from the protocol's
/// version 2026-07-28 on. It also ends when the client may no longer be served.
pub(crate) async fn tell_listener(
    feed: &Arc<EventFeed>,
    context: &SubscriptionContext,
    lease: Option<&TokenLease>,
) -> Result<(), ErrorData> {
    let watched: BTreeSet<String> = context.accepted().resource_subscriptions.iter().flatten().cloned().collect();
    if watched.is_empty() {
        tokio::select! { () = context.cancelled() => {}, () = token_lease::ended(lease) => {} }
        return Ok(());
    }
    feed.begin().await.map_err(|_| ErrorData::internal_error("changes can't be followed now; try again", None))?;
    let mut number = feed.last_number();
    loop {
        let (event, has_gap) = tokio::select! {
            () = context.cancelled() => return Ok(()),
            () = token_lease::ended(lease) => return Ok(()),
            next = feed.next_after(number) => next,
        };
        if !token_lease::holds(lease) {
            return Ok(());
        }
        number = event.number;
        let uris = if has_gap { watched.iter().cloned().collect() } else { touched(&watched, &event) };
        for uri in uris {
            if context.sink().notify_resource_updated(uri).await.is_err() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_touches_what_is_watched() {
        let watched: BTreeSet<String> = ["note://notes/Boat.md", "attachment://notes/a.png"].map(str::to_owned).into();
        let event = |kind: &str, path: &str| {
            let data = serde_json::json!({"kind": kind, "project": "notes", "path": path}).to_string();
            touched(&watched, &FeedEvent { number: 1, kind: kind.to_owned(), volume: None, data })
        };
        assert_eq!(event("FILE_CHANGED", "Boat.md"), ["note://notes/Boat.md"]);
        assert_eq!(event("FILE_CHANGED", "a.png"), ["attachment://notes/a.png"]);
        assert!(event("FILE_CHANGED", "Sail.md").is_empty() && event("TASK", "Boat.md").is_empty());
        assert_eq!(event("GAP", "").len(), 2);
    }
}
