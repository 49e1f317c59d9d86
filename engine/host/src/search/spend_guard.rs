//! Budget check for paid embedding endpoints: before each call, the session is asked whether the month's budget has
//! money left, and it gets the cost afterwards.

use crate::clock::unix_now;
use crate::mailbox::{Mailbox, MailboxMessage};
use crate::maintenance::configuration;
use agent::config::{AgentConfig, ModelPrice, is_local};
use agent::model_call::{ModelEndpoint, WireProtocol};
use anyhow::{anyhow, bail};
use engine::{EmbeddingCost, Event};
use models::{EmbedderChoice, EmbeddingSpendGuard, SpendRefusal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time limit for the session's answer, which takes a frame; a program that is closing never answers.
const SPEND_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the session for permission before search spends money.
pub(super) struct SpendGuard {
    folder: PathBuf,
    inbox: Mailbox,
    /// Number of pending calls, and their estimated tokens.
    under_way: Mutex<(usize, u64)>,
    closing: AtomicBool,
}

/// Returns an endpoint's price per million tokens; `None` if unknown.
fn endpoint_price(config: &AgentConfig, url: &str, model: &str) -> Option<ModelPrice> {
    if let Some(input) = config.budget.embeddings {
        return Some(ModelPrice { input, output: 0.0 });
    }
    providers::input_only_price(&ModelEndpoint {
        provider: String::new(),
        wire: WireProtocol::OpenAi,
        base_url: Some(url.to_owned()),
        model: model.to_owned(),
        key: None,
        local: is_local(url),
    })
}

impl SpendGuard {
    pub(super) fn new(folder: PathBuf, inbox: Mailbox) -> SpendGuard {
        SpendGuard { folder, inbox, under_way: Mutex::default(), closing: AtomicBool::new(false) }
    }

    fn calls_in_flight(&self) -> MutexGuard<'_, (usize, u64)> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops paid calls. Returns whether a call is still pending that must be reported to the session.
    pub(super) fn stop_calls(&self) -> bool {
        self.closing.store(true, Ordering::Relaxed);
        self.calls_in_flight().0 > 0
    }

    fn check_budget(&self, url: &str, model: &str, tokens: u64) -> anyhow::Result<()> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(super::closing_error());
        }
        // Read each time, since the user may have edited it.
        let config =
            configuration::load_config(&self.folder).map_err(|why| anyhow!("what may be spent is not known: {why}"))?;
        let price = endpoint_price(&config, url, model);
        let free = price.is_some_and(|price| price.input == 0.0);
        if free || config.budget.month.is_none() {
            return Ok(());
        }
        let more = price.map_or(0.0, |price| price.of(tokens, 0));
        let (answer, wait) = channel();
        self.inbox.send(MailboxMessage::Read(Box::new(move |session| {
            // If the receiver is gone, the answer isn't needed.
            let _ = answer.send(session.over_search_budget_reason(&config.budget, unix_now(), more));
        })));
        match wait.recv_timeout(SPEND_ANSWER_TIMEOUT).map_err(|_| super::closing_error())? {
            Some(why) => bail!(why),
            None => Ok(()),
        }
    }
}

impl EmbeddingSpendGuard for SpendGuard {
    fn begin_call(&self, endpoint: &EmbedderChoice, tokens: u64) -> Result<(), SpendRefusal> {
        let EmbedderChoice::Endpoint { url, model } = endpoint else { return Ok(()) };
        let all = {
            let mut under_way = self.calls_in_flight();
            *under_way = (under_way.0 + 1, under_way.1.saturating_add(tokens));
            under_way.1
        };
        let checked = self.check_budget(url, model, all);
        if checked.is_err() {
            self.finish_call(endpoint, tokens, None);
        }
        checked.map_err(|why| SpendRefusal(why.to_string()))
    }

    fn finish_call(&self, endpoint: &EmbedderChoice, tokens: u64, read: Option<u64>) {
        let EmbedderChoice::Endpoint { url, model } = endpoint else { return };
        if let Some(tokens) = read {
            let config = configuration::load_config(&self.folder).ok();
            let cost = config.and_then(|config| endpoint_price(&config, url, model)).map(|price| price.of(tokens, 0));
            self.inbox.send_event(Event::Spent(EmbeddingCost {
                what: endpoint.to_string(),
                calls: 1,
                tokens,
                cost: cost.unwrap_or(0.0),
                unknown: u64::from(cost.is_none()),
                at: unix_now().0,
            }));
        }
        let mut under_way = self.calls_in_flight();
        *under_way = (under_way.0.saturating_sub(1), under_way.1.saturating_sub(tokens));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_what_is_said_or_listed_or_unknown() {
        let config = AgentConfig::default();
        let of = |config: &AgentConfig, url, model| endpoint_price(config, url, model).map(|price| price.input);
        assert_eq!(of(&config, "http://localhost:8080/v1", "toy"), Some(0.0));
        assert_eq!(of(&config, "https://embeddings.example.com/v1", "toy"), None);
        assert!(of(&config, "https://api.openai.com/v1", "text-embedding-3-small").is_some_and(|price| price > 0.0));
        let mut said = config;
        said.budget.embeddings = Some(0.5);
        assert_eq!(of(&said, "http://localhost:8080/v1", "toy"), Some(0.5));
        assert_eq!(of(&said, "https://embeddings.example.com/v1", "toy"), Some(0.5));
    }
}
