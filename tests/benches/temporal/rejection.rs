//! From an activity's arrival in the worker to its completion, when an open breaker refuses it.
//!
//! The figure is the SDK's own: core starts its clock when it hands the activity to the worker, and stops it when the worker hands
//! back the completion. The refusal lies in between, so this is more than the time from the refusal to the completion.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use osint_tests::load::{Size, fan_out, with_worker};
use temporalio_client::Client;
use temporalio_common::telemetry::{
    HistogramBucketOverrides, PrometheusExporterOptions, TelemetryOptions, metrics::CoreMeter,
    start_prometheus_metric_exporter,
};
use temporalio_sdk::{Runtime, runtime::RuntimeOptions};

use crate::Figure;

const WORKFLOWS: u32 = 10;
const REFUSALS: u32 = 150;

/// Bounds of the histogram, in seconds.
const BOUNDS: [f64; 13] =
    [0.000_05, 0.000_1, 0.000_2, 0.000_3, 0.000_5, 0.000_75, 0.001, 0.001_5, 0.002, 0.003, 0.005, 0.01, 0.1];
const MOST: f64 = 0.002;

const METRIC: &str = "activity_execution_latency";

pub async fn measure(client: &Client) -> anyhow::Result<Figure> {
    let overrides = HistogramBucketOverrides { overrides: HashMap::from([(METRIC.to_owned(), BOUNDS.to_vec())]) };
    let options = PrometheusExporterOptions::builder()
        .socket_addr(SocketAddr::from(([127, 0, 0, 1], 0)))
        .use_seconds_for_durations(true)
        .histogram_bucket_overrides(overrides)
        .build();
    let exporter = start_prometheus_metric_exporter(options)?;
    let meter: Arc<dyn CoreMeter> = exporter.meter;
    let telemetry = TelemetryOptions::builder().metrics(meter).build();
    let runtime = RuntimeOptions::builder().telemetry_options(telemetry).build().map_err(anyhow::Error::msg)?;
    let runtime = Runtime::from_current_tokio(runtime)?;

    let size = Size { branches: REFUSALS, in_turn: true, refused_every: 1 };
    let script = async {
        for n in 0..WORKFLOWS {
            fan_out(client, "refusals", &format!("refusals-{n}"), size).await?;
        }
        Ok(())
    };
    with_worker(&runtime, client, "refusals", 100, script).await?;
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
    let page = http.get(format!("http://{}/metrics", exporter.bound_addr)).send().await?.text().await?;
    exporter.abort_handle.abort();

    let buckets = buckets(&page);
    let total = buckets.last().map_or(0, |(_, count)| *count);
    anyhow::ensure!(total >= u64::from(WORKFLOWS * REFUSALS), "only {total} refusals were counted:\n{page}");
    println!("\n## {total} refused activities, from arrival to completion in the worker\n");
    println!("| within | of them |\n|---:|---:|");
    for (bound, count) in &buckets {
        println!("| {} ms | {:.2} % |", bound * 1e3, share(*count, total) * 100.0);
    }
    let p99 = buckets.iter().find(|(_, count)| share(*count, total) >= 0.99).map_or(f64::INFINITY, |(bound, _)| *bound);
    Ok(Figure {
        what: "a refused activity, from arrival to completion in the worker, 99 %".to_owned(),
        measured: format!("≤ {} ms", p99 * 1e3),
        promised: "< 2 ms",
        kept: p99 <= MOST,
    })
}

/// Upper bounds and how many lie below, summed over the labels.
fn buckets(page: &str) -> Vec<(f64, u64)> {
    let mut buckets: Vec<(f64, u64)> = BOUNDS.into_iter().chain([f64::INFINITY]).map(|bound| (bound, 0)).collect();
    let lines =
        page.lines().filter(|line| line.contains(METRIC) && line.contains("_bucket{") && !line.contains("local_"));
    for line in lines {
        let bound = line.split("le=\"").nth(1).and_then(|rest| rest.split('"').next());
        let bound = bound.and_then(|text| text.replace("+Inf", "inf").parse::<f64>().ok());
        let count = line.rsplit(' ').next().and_then(|text| text.parse::<u64>().ok());
        if let (Some(bound), Some(count)) = (bound, count)
            && let Some(bucket) = buckets.iter_mut().find(|(known, _)| *known == bound)
        {
            bucket.1 += count;
        }
    }
    buckets
}

#[expect(clippy::cast_precision_loss, reason = "counts of some thousands")]
fn share(count: u64, total: u64) -> f64 {
    count as f64 / total as f64
}
