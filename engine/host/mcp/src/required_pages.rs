//! Pages that the user has to open before a server does what a call wants, and those with which the user has finished.

use agent::server_form::UserForm;
use rmcp::model::ErrorData;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// The error of the protocol for a call that needs pages to be opened first.
const URL_ELICITATION_REQUIRED: i32 = -32042;
/// The notification of the protocol that the user has finished with a page.
pub(crate) const PAGE_FINISHED_METHOD: &str = "notifications/elicitation/complete";
/// Maximum number of pages for a call.
const MAX_REQUIRED_PAGES: usize = 5;
/// Maximum number of pages that are known to be finished; older ones are forgotten.
const MAX_FINISHED_PAGES: usize = 100;
/// Maximum length of the id of a page in bytes.
const MAX_PAGE_ID_BYTES: usize = 256;

/// A page that the user has to open before a call.
pub(crate) struct RequiredPage {
    /// What the user is asked.
    pub(crate) form: UserForm,
    /// How the server calls the page when the user has finished; empty if it never says so.
    pub(crate) id: String,
}

/// Returns the pages that an error names; `None` if it's another error, or names a page that may not be opened.
pub(crate) fn required_pages(server: &str, error: &ErrorData) -> Option<Vec<RequiredPage>> {
    let data = error.data.as_ref().filter(|_| error.code.0 == URL_ELICITATION_REQUIRED)?;
    let page = |asked: &Value| {
        let text = |name: &str| asked[name].as_str().unwrap_or_default();
        let form = UserForm::for_page(server, text("message"), text("url")).ok()?;
        let id = Some(text("elicitationId")).filter(|id| id.len() <= MAX_PAGE_ID_BYTES).unwrap_or_default().to_owned();
        Some(RequiredPage { form, id })
    };
    let pages = data["elicitations"].as_array()?.iter().take(MAX_REQUIRED_PAGES).map(page);
    pages.collect::<Option<Vec<RequiredPage>>>().filter(|pages| !pages.is_empty())
}

/// Returns the addresses of pages, for people.
pub(crate) fn page_addresses(pages: &[RequiredPage]) -> Vec<String> {
    pages.iter().filter_map(|page| page.form.page.clone()).collect()
}

/// The ids of the pages with which the user has finished, newest last.
#[derive(Clone, Default)]
pub(crate) struct FinishedPages(Arc<watch::Sender<VecDeque<String>>>);

impl FinishedPages {
    /// Notes that the user has finished with a page.
    pub(crate) fn add(&self, id: &str) {
        if id.is_empty() || id.len() > MAX_PAGE_ID_BYTES {
            return;
        }
        self.0.send_modify(|ids| {
            ids.push_back(id.to_owned());
            if ids.len() > MAX_FINISHED_PAGES {
                ids.pop_front();
            }
        });
    }

    /// Waits until the user has finished with all these pages.
    pub(crate) async fn wait_for(&self, pages: &[RequiredPage]) {
        let mut finished = self.0.subscribe();
        // It fails only without a sender, which `self` has.
        let _ = finished.wait_for(|ids| pages.iter().all(|page| ids.contains(&page.id))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ErrorCode;
    use serde_json::json;

    fn required(code: i32, data: Value) -> Option<Vec<RequiredPage>> {
        required_pages("own", &ErrorData::new(ErrorCode(code), "Sign in first", Some(data)))
    }

    #[test]
    fn pages_are_those_that_may_be_opened() {
        let page = |url: &str| json!({"mode": "url", "elicitationId": "e1", "url": url, "message": "Sign in"});
        let asked = |pages: Value| json!({"elicitations": pages});
        let pages = required(-32042, asked(json!([page("https://example.com/in")]))).expect("pages");
        assert_eq!((page_addresses(&pages), pages[0].id.as_str()), (vec!["https://example.com/in".to_owned()], "e1"));
        for other in [
            required(-32602, asked(json!([page("https://example.com/")]))),
            required(-32042, asked(json!([page("https://example.com/"), page("javascript:alert(1)")]))),
            required(-32042, asked(json!([]))),
            required(-32042, json!("https://example.com/")),
        ] {
            assert!(other.is_none());
        }
        let many = required(-32042, asked(json!(vec![page("https://example.com/"); 100]))).expect("pages");
        assert_eq!(many.len(), MAX_REQUIRED_PAGES);
    }

    #[test]
    fn a_page_that_was_finished_early_is_not_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let finished = FinishedPages::default();
        (0..MAX_FINISHED_PAGES).for_each(|number| finished.add(&format!("old {number}")));
        finished.add("e1");
        finished.add(&"x".repeat(MAX_PAGE_ID_BYTES + 1));
        let known = finished.0.borrow().clone();
        assert_eq!((known.len(), known.back().map(String::as_str)), (MAX_FINISHED_PAGES, Some("e1")));
        let form = UserForm::for_page("own", "Sign in", "https://example.com/").expect("a page");
        runtime.block_on(finished.wait_for(&[RequiredPage { form, id: "e1".to_owned() }]));
    }
}
