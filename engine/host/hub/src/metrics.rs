//! Metrics of the hub, as Prometheus reads them at `/metrics`.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// All metrics of the hub. Any thread can update them.
#[derive(Clone, Debug)]
pub(crate) struct HubMetrics {
    pub(crate) connections: Gauge,
    pub(crate) connected: Counter,
    pub(crate) received: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sent: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) stored: Counter,
    pub(crate) stored_bytes: Counter,
    pub(crate) store_seconds: Histogram,
    pub(crate) refused: Counter,
    pub(crate) ended: Counter,
    pub(crate) slowed: Counter,
    pub(crate) documents: Gauge,
}

impl HubMetrics {
    /// Creates the metrics at zero, with their registry.
    pub(crate) fn new() -> (HubMetrics, Registry) {
        let metrics = HubMetrics {
            connections: Gauge::default(),
            connected: Counter::default(),
            received: Counter::default(),
            received_bytes: Counter::default(),
            sent: Counter::default(),
            sent_bytes: Counter::default(),
            stored: Counter::default(),
            stored_bytes: Counter::default(),
            store_seconds: Histogram::new([0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0]),
            refused: Counter::default(),
            ended: Counter::default(),
            slowed: Counter::default(),
            documents: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("tracebook_hub");
        let m = metrics.clone();
        registry.register("connections", "Connections now", m.connections);
        registry.register("connected", "Connections so far", m.connected);
        registry.register("received", "Messages received", m.received);
        registry.register("received_bytes", "Bytes received in messages", m.received_bytes);
        registry.register("sent", "Messages sent", m.sent);
        registry.register("sent_bytes", "Bytes sent in messages", m.sent_bytes);
        registry.register("stored", "Batches of changes made durable", m.stored);
        registry.register("stored_bytes", "Bytes made durable", m.stored_bytes);
        registry.register("store_seconds", "Seconds until changes were durable", m.store_seconds);
        registry.register("refused", "Calls and wishes that were refused", m.refused);
        registry.register("ended", "Connections ended for breaking the protocol", m.ended);
        registry.register("slowed", "Times that a connection was slowed down", m.slowed);
        registry.register("documents", "Documents stored", m.documents);
        (metrics, registry)
    }
}

/// Renders the page for Prometheus.
pub(crate) fn render_page(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string doesn't fail.
    let _ = encode(&mut text, registry);
    text
}
