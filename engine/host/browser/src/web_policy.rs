//! The policy for pages, which is that of `fetch_url`: sites are approved one by one, and addresses outside of the
//! public internet are reached only where they were approved.

use crate::{
    BrowserAnswer, BrowserError, BrowserPool, BrowserRequest, BrowserSetup, DEFAULT_MEMORY_BYTES, PageOrigin,
    PagePolicy,
};
use agent::tool_job::{ToolJob, WebAccess};
use agent::web_address::{WebAddress, is_listed, special_range_name, unmap_ipv4};
use std::net::IpAddr;
use std::sync::Arc;

/// The policy for the pages of a run.
pub(crate) struct WebPagePolicy(pub(crate) WebAccess);

impl PagePolicy for WebPagePolicy {
    fn origin_of(&self, url: &str) -> Option<PageOrigin> {
        let site = WebAddress::read(url).ok()?.site;
        Some(PageOrigin { scheme: site.scheme, host: site.host, port: site.port })
    }

    fn is_public(&self, ip: IpAddr) -> bool {
        special_range_name(unmap_ipv4(ip)).is_none()
    }

    fn may_load_from(&self, host: &str) -> bool {
        !self.0.restricted || is_listed(host, &self.0.hosts)
    }

    fn listed_addresses(&self, origin: &PageOrigin) -> Option<Vec<IpAddr>> {
        // A listed name doesn't permit access to the local network; a listed IP address does.
        is_listed(&origin.host, &self.0.hosts).then(|| origin.host.parse().into_iter().collect())
    }
}

impl BrowserPool {
    /// Performs a job of a browser tool. `is_stopped` is asked often; a job ends within a second of it.
    ///
    /// # Errors
    /// Returns an error if there's no browser, the job fails, or it's one of another kind.
    pub fn perform_job(
        &self,
        job: &ToolJob,
        memory_bytes: Option<u64>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<BrowserAnswer, BrowserError> {
        let ToolJob::Browser { run, tool, arguments, inside, web, program } = job else {
            return Err(BrowserError::Missing("that is no call of a browser tool"));
        };
        let request = BrowserRequest::from_call(tool, arguments)?;
        let memory_bytes = memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES);
        let setup = BrowserSetup { program: program.clone(), memory_bytes };
        let inside: Vec<IpAddr> = inside.iter().filter_map(|ip| ip.parse().ok()).collect();
        self.call(*run, &request, &inside, (&setup, Arc::new(WebPagePolicy(web.clone()))), is_stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_hosts_count_for_pages_as_for_fetches() {
        let hosts = vec!["docs.rs".to_owned(), "127.0.0.1".to_owned(), "localhost".to_owned()];
        let policy = |restricted| WebPagePolicy(WebAccess { hosts: hosts.clone(), restricted });
        let origin = |url: &str| policy(false).origin_of(url);
        let listed = |url: &str| policy(false).listed_addresses(&origin(url).expect("an origin"));
        assert_eq!(listed("https://DOCS.rs/a"), Some(Vec::new()));
        assert_eq!(listed("http://localhost/"), Some(Vec::new()), "a name permits no private address");
        assert_eq!(listed("http://0x7f000001/"), Some(vec![IpAddr::from([127, 0, 0, 1])]));
        assert_eq!(listed("https://evil.docs.rs/"), None);
        for url in ["file:///etc/passwd", "about:blank", "chrome://version", "javascript:1", "http://a:b@c/"] {
            assert_eq!(origin(url), None, "{url}");
        }
        assert!(policy(false).may_load_from("any.example") && !policy(true).may_load_from("any.example"));
        assert!(policy(true).may_load_from("docs.rs"));
        for (ip, public) in [("1.1.1.1", true), ("::ffff:10.0.0.1", false), ("169.254.169.254", false), ("::1", false)]
        {
            assert_eq!(policy(false).is_public(ip.parse().expect("an address")), public, "{ip}");
        }
    }
}
