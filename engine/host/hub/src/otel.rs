//! Export of the hub's spans to an OpenTelemetry collector. Only with the feature `otel`, and only if the standard
//! variable `OTEL_EXPORTER_OTLP_ENDPOINT` (or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`) names one.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::sync::OnceLock;
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

/// Service name that a collector shows, unless `OTEL_SERVICE_NAME` overrides it.
const SERVICE_NAME: &str = "tracebook-hub";
/// Environment variables that name a collector; any of them is enough.
const ENDPOINT_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// The provider that exports spans, once there is a collector.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Returns the layer that sends spans to the collector named in the environment. `None`: none is named, or export has
/// started already.
///
/// # Errors
/// Returns an error if the collector's address can't be used.
pub fn export_layer<S>() -> Result<Option<OpenTelemetryLayer<S, SdkTracer>>, ExporterBuildError>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    if ENDPOINT_VARIABLES.iter().all(|name| std::env::var_os(name).is_none_or(|value| value.is_empty())) {
        return Ok(None);
    }
    let provider = provider(SpanExporter::builder().with_http().build()?);
    let tracer = provider.tracer(SERVICE_NAME);
    let is_first = PROVIDER.set(provider).is_ok();
    Ok(is_first.then(|| tracing_opentelemetry::layer().with_tracer(tracer)))
}

/// Exports pending spans before the program ends.
pub fn shut_down() {
    if let Some(Err(error)) = PROVIDER.get().map(SdkTracerProvider::shutdown) {
        tracing::warn!(%error, "the last spans were not exported");
    }
}

fn provider(exporter: SpanExporter) -> SdkTracerProvider {
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(SERVICE_NAME);
    }
    SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_otlp::WithExportConfig;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn a_span_reaches_the_collector() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}/v1/traces", listener.local_addr().expect("an address"));
        let collector = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a call");
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            let has = |request: &[u8], words: &str| request.windows(words.len()).any(|at| at == words.as_bytes());
            while !has(&request, "sync_connection") {
                match stream.read(&mut buffer).expect("a request") {
                    0 => break,
                    read => request.extend(&buffer[..read]),
                }
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").expect("answered");
            (has(&request, "POST /v1/traces"), has(&request, "sync_connection"), has(&request, SERVICE_NAME))
        });
        let exporter = SpanExporter::builder().with_http().with_endpoint(endpoint).build().expect("an exporter");
        let provider = provider(exporter);
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(SERVICE_NAME));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            drop(tracing::info_span!("sync_connection", number = 7));
        });
        provider.shutdown().expect("sent");
        assert_eq!(collector.join().expect("a collector"), (true, true, true));
    }
}
