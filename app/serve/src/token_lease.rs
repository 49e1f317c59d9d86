//! For how long an MCP client is served over HTTP: until its token is revoked or expires.

use crate::access_tokens::TokenStore;
use crate::clock::unix_millis;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often the token of a client that has open streams is looked up.
const TOKEN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The right of a client to be served.
pub(crate) struct TokenLease {
    tokens: TokenStore,
    /// Id of the client's token.
    token: String,
    has_ended: watch::Sender<bool>,
}

impl TokenLease {
    pub(crate) fn new(tokens: TokenStore, token: String) -> Arc<TokenLease> {
        Arc::new(TokenLease { tokens, token, has_ended: watch::Sender::new(false) })
    }

    /// Returns whether the token still holds. Nothing may be sent to the client if it doesn't.
    pub(crate) fn holds(&self) -> bool {
        let has_ended = *self.has_ended.borrow();
        !has_ended && self.tokens.holds(&self.token, unix_millis())
    }

    /// Waits until [`TokenLease::follow_token`] has seen that the token no longer holds.
    pub(crate) async fn ended(&self) {
        let mut ended = self.has_ended.subscribe();
        // The sender lives as long as this lease.
        let _ = ended.wait_for(|has_ended| *has_ended).await;
    }

    /// Looks up the token until it no longer holds, and ends the lease.
    pub(crate) async fn follow_token(&self) {
        while self.holds() {
            tokio::time::sleep(TOKEN_CHECK_INTERVAL).await;
        }
        self.has_ended.send_replace(true);
    }
}

/// Returns whether a client may be served. One on standard input and output always may.
pub(crate) fn holds(lease: Option<&TokenLease>) -> bool {
    lease.is_none_or(TokenLease::holds)
}

/// Waits until a client may no longer be served.
pub(crate) async fn ended(lease: Option<&TokenLease>) {
    match lease {
        Some(lease) => lease.ended().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_tokens::{TokenGrant, TokenScope};

    #[tokio::test]
    async fn a_lease_ends_with_its_token() {
        let folder = std::env::temp_dir().join(format!("token-lease-{:016x}", rand::random::<u64>()));
        std::fs::create_dir(&folder).expect("made");
        let store = TokenStore::new(&folder);
        let grant =
            TokenGrant { name: "phone".to_owned(), scopes: vec![TokenScope::Read], volume: None, lifetime: None };
        let (about, _) = store.create(grant, unix_millis()).expect("created");
        let lease = TokenLease::new(store.clone(), about.id);
        assert!(lease.holds() && holds(None));
        let follower = tokio::spawn({
            let lease = lease.clone();
            async move { lease.follow_token().await }
        });
        assert!(tokio::time::timeout(TOKEN_CHECK_INTERVAL / 10, lease.ended()).await.is_err());
        store.revoke("phone").expect("revoked");
        assert!(!lease.holds());
        tokio::time::timeout(3 * TOKEN_CHECK_INTERVAL, ended(Some(&lease))).await.expect("it has ended");
        follower.await.expect("done");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
