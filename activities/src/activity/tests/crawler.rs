//! Where the crawler is not sent, and what it brings back.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::*;

fn of_website(website: &str) -> Subject {
    Subject { website: Some(website.to_owned()), ..equinor() }
}

#[tokio::test]
async fn no_visit_leads_into_a_private_network() {
    let bench = Bench::new().await;
    for website in
        ["http://127.0.0.1/", "169.254.169.254", "http://2130706433/", "https://a:b@example.com", "localhost"]
    {
        let finding = bench.run("crawl4ai.website", &of_website(website)).await.expect("a finding");
        assert_eq!((finding.status, finding.data), (Status::NeedsReview, None), "{website}");
        assert!(finding.reason.is_some_and(|reason| !reason.contains(website)), "{website}");
    }

    struct Inside;
    impl Resolve for Inside {
        fn resolve(&self, _: Name) -> Resolving {
            let inside: [SocketAddr; 1] = [([10, 0, 0, 1], 0).into()];
            Box::pin(async move { Ok(Box::new(inside.into_iter()) as Addrs) })
        }
    }
    let settings = bench.activities.client.settings().clone();
    let client = Client::with_names(settings, Names::new(Inside)).expect("a client");
    let activities = Activities::new(bench.registry.clone(), client);
    let (entry, query) = (catalog::operation("crawl4ai.website").expect("a row"), Query::from(equinor()));
    let finding = activities.investigate(entry, &query, ONLY, None).await.expect("a finding");
    assert_eq!(finding.status, Status::NeedsReview);
    assert_eq!(bench.calls("crawl4ai"), 0);
}

#[tokio::test]
async fn a_redirect_into_a_private_network_is_not_believed() {
    let bench = Bench::new().await;
    bench.fault("crawl4ai", "led_inside").await;
    let finding = bench.run("crawl4ai.website", &equinor()).await.expect("a finding");
    assert_eq!((finding.status, finding.data), (Status::NeedsReview, None));
}

#[tokio::test]
async fn the_legal_notice_is_read_too_where_there_is_one() {
    let bench = Bench::new().await;
    let finding = bench.run("crawl4ai.website", &equinor()).await.expect("a finding");
    let pages = |finding: &Finding| finding.data.as_ref().map_or(0, |facts| facts.pages.len());
    assert_eq!((finding.status, pages(&finding)), (Status::Complete, 2));
    let nokia = Subject { website: Some("www.nokia.com".into()), ..subject("FI", "0112038-9", "Nokia Oyj") };
    let finding = bench.run("crawl4ai.website", &nokia).await.expect("a finding");
    assert_eq!((finding.status, pages(&finding)), (Status::Complete, 1));
}
