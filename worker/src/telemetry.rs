//! The log, and one page of metrics.
//!
//! The SDK exports its metrics through its own HTTP server; it accepts no registry of ours. The server gets a free port on the
//! loopback interface. The admin server reads that page and appends it to our own metrics. No metric is in both pages: the
//! SDK's names begin with `temporal_`, ours with `circuit_breaker_`.

use std::{
    io::IsTerminal,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use circuit_registry::CircuitRegistry;
use prometheus::{Registry, TextEncoder};
use temporalio_common::telemetry::{
    PrometheusExporterOptions, TelemetryOptions, metrics::CoreMeter, start_prometheus_metric_exporter,
};
use temporalio_sdk::{Runtime, runtime::RuntimeOptions};
use tokio::task::AbortHandle;
use tracing_subscriber::EnvFilter;

use crate::error::CliError;

/// How to write the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// One line of text per event.
    #[default]
    Text,
    /// One JSON object per event.
    Json,
}

/// Libraries that log page texts and addresses, which may name people. They log warnings only, at every level.
const PERSONAL: [&str; 4] = ["html5ever", "markup5ever", "selectors", "reqwest"];

/// The filter without the log lines that may name people.
fn without_personal_data(filter: EnvFilter) -> EnvFilter {
    let directives = PERSONAL.iter().filter_map(|library| format!("{library}=warn").parse().ok());
    directives.fold(filter, EnvFilter::add_directive)
}

/// Starts the log on standard error. `RUST_LOG` wins over `default`; both have `tracing-subscriber`'s filter syntax. Neither
/// makes the log name people.
pub fn init_log(default: &str, format: LogFormat) {
    let filter = without_personal_data(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default)));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call in the same process keeps the first log. Tests rely on it.
    let _ = match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// Our metrics and the SDK's.
#[derive(Debug)]
pub struct Metrics {
    ours: Registry,
    sdk: SocketAddr,
    exporter: AbortHandle,
    http: reqwest::Client,
}

impl Metrics {
    /// Registers the breakers' metrics and starts the SDK's exporter. All workers of this process share the runtime.
    ///
    /// # Errors
    /// When the exporter finds no port, or the SDK refuses its options.
    pub fn start(registry: &CircuitRegistry) -> Result<(Self, Runtime), CliError> {
        let failed =
            |what: &str, error: &dyn std::fmt::Display| CliError::failure(format!("cannot start {what}: {error}"));
        let ours = Registry::new();
        circuit_registry::prometheus::register(registry, &ours)
            .map_err(|error| failed("the breakers' metrics", &error))?;

        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = PrometheusExporterOptions::builder().socket_addr(address).counters_total_suffix(true).build();
        let server = start_prometheus_metric_exporter(options).map_err(|error| failed("the SDK's metrics", &error))?;
        let meter: Arc<dyn CoreMeter> = server.meter;
        let telemetry = TelemetryOptions::builder().metrics(meter).build();
        let options = RuntimeOptions::builder().telemetry_options(telemetry).build();
        let options = options.map_err(|error| failed("the Temporal SDK", &error))?;
        let runtime = Runtime::from_current_tokio(options).map_err(|error| failed("the Temporal SDK", &error))?;
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build();
        let http = http.map_err(|error| failed("an HTTP client", &error))?;
        Ok((Self { ours, sdk: server.bound_addr, exporter: server.abort_handle, http }, runtime))
    }

    /// The page for Prometheus.
    ///
    /// # Errors
    /// When either half cannot be read. Half a page would look as if metrics had disappeared.
    pub async fn page(&self) -> Result<String, String> {
        let mut page = TextEncoder::new().encode_to_string(&self.ours.gather()).map_err(|error| error.to_string())?;
        page.push_str(&self.sdk_page().await?);
        Ok(page)
    }

    /// How many polls for tasks of this kind (`workflow_task`, `activity_task`) the SDK has under way.
    pub async fn polls(&self, kind: &str) -> Result<u64, String> {
        Ok(polls(&self.sdk_page().await?, kind))
    }

    async fn sdk_page(&self) -> Result<String, String> {
        let answer = self.http.get(format!("http://{}/metrics", self.sdk)).send().await;
        let text = match answer.and_then(reqwest::Response::error_for_status) {
            Ok(answer) => answer.text().await,
            Err(error) => Err(error),
        };
        text.map_err(|error| format!("the SDK's metrics cannot be read: {error}"))
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.exporter.abort();
    }
}

/// Sums the gauge of polls over the task queues, sticky ones included.
fn polls(page: &str, kind: &str) -> u64 {
    let of_kind = |line: &&str| line.starts_with("temporal_num_pollers{") && line.contains(kind);
    let values = page.lines().filter(of_kind).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count, never negative")]
    values.map(|value| value.max(0.0) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_summed_by_kind() {
        let page = "# TYPE temporal_num_pollers gauge\n\
            temporal_num_pollers{poller_type=\"sticky_workflow_task\"} 4\n\
            temporal_num_pollers{poller_type=\"workflow_task\"} 1\n\
            temporal_num_pollers{poller_type=\"activity_task\"} 5\n\
            temporal_other{poller_type=\"activity_task\"} 9\n";
        assert_eq!((polls(page, "workflow_task"), polls(page, "activity_task"), polls(page, "nexus_task")), (5, 5, 0));
        assert_eq!(polls("", "activity_task"), 0);
    }

    #[test]
    fn no_log_level_lets_personal_data_through() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let filter = without_personal_data(EnvFilter::new("trace"));
        let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Arc::new(writer));
        tracing::subscriber::with_default(builder.finish(), || {
            tracing::debug!(target: "html5ever::tree_builder", "processing Jane Example");
            tracing::debug!(target: "reqwest::redirect", "redirecting to /companies/Jane");
            tracing::warn!(target: "reqwest::connect", "something is wrong");
            tracing::trace!(target: "osint_activities", "asked");
        });
        let log = std::io::read_to_string(&mut reader).expect("text");
        assert!(!log.contains("Jane") && log.contains("something is wrong") && log.contains("asked"), "{log}");
    }
}
