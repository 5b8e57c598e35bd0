//! The dashboard in a real browser: it follows the breakers live, overrides them, asks no other host, and reports no error.
//!
//! With `DASHBOARD_PICTURES=FOLDER`, the test that takes pictures writes them there (`make pictures`).

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use circuit_registry::{BreakersConfig, Override, Verdict};
use osint_tests::{browser::Browser, test_env::TestEnv};
use osint_worker::{
    admin::local_token,
    error::CliError,
    run::{Breakers, Settings, run_until},
};

/// 50 breakers, as many as fit a desktop without scrolling.
fn breakers(fail_max: u32) -> String {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../breakers.yaml");
    let shipped = BreakersConfig::load(&shipped).expect("the shipped thresholds");
    let names: Vec<&str> = shipped.service_names().take(50).collect();
    let more = (names.len()..50).map(|n| format!("source_{n}"));
    let all = names.iter().map(|name| (*name).to_owned()).chain(more);
    let services: String = all.map(|name| format!("  {name}: {{}}\n")).collect();
    format!("defaults: {{ fail_max: {fail_max}, reset_timeout: 3s }}\nservices:\n{services}")
}

/// Runs a worker with these breakers and a browser that shows its dashboard.
async fn with_dashboard(
    fail_max: u32,
    test: impl AsyncFnOnce(&Breakers, SocketAddr, &mut Browser) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let env = TestEnv::start().await?;
    let breakers = Breakers::open(BreakersConfig::from_yaml(&breakers(fail_max))?, "memory")?;
    let (client, activities) = env.parts(&breakers.registry).await?;
    let settings = Settings {
        task_queue: "dashboard".to_owned(),
        admin: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        journal: breakers.journal.clone(),
        ..Settings::default()
    };
    let mut browser = Browser::start().await?;
    let registry = breakers.registry.clone();
    run_until(client, registry, activities, settings, async |admin| {
        let admin = admin.expect("an admin server was asked for");
        test(&breakers, admin, &mut browser).await.map_err(CliError::failure)
    })
    .await?;
    env.stop().await;
    Ok(())
}

/// A quarter of a minute of calls, for the sparklines of the pictures.
async fn traffic(breakers: &Breakers) {
    for step in 0..150_u32 {
        for (n, view) in breakers.registry.views().iter().enumerate().filter(|(n, _)| n % 3 != 0) {
            let bad = step % 50 > 25 && n % 7 == 1 && step % 3 != 0;
            let verdict = if bad { Verdict::Failure } else { Verdict::Success };
            if let Ok(permit) = breakers.registry.breaker(&view.service).try_acquire() {
                permit.settle(verdict);
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn tile(service: &str) -> String {
    format!("document.querySelector('[data-service=\"{service}\"] button')")
}

/// Fails if the page logged an error, broke its content security policy, or asked another host.
fn check_clean(browser: &Browser, admin: SocketAddr) -> anyhow::Result<()> {
    let requests = browser.events("Network.requestWillBeSent");
    anyhow::ensure!(requests.len() >= 4, "page, style, script and events: {}", requests.len());
    for request in requests {
        let url = request["request"]["url"].as_str().unwrap_or_default();
        let own = url.starts_with(&format!("http://{admin}/")) || url == "data:,";
        anyhow::ensure!(own, "a request to another host: {url}");
    }
    let logged = browser.events("Log.entryAdded");
    anyhow::ensure!(logged.is_empty(), "the log: {logged:?}");
    let thrown = browser.events("Runtime.exceptionThrown");
    anyhow::ensure!(thrown.is_empty(), "exceptions: {thrown:?}");
    let printed = browser.events("Runtime.consoleAPICalled");
    anyhow::ensure!(printed.is_empty(), "the console: {printed:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_follows_the_breakers_live() -> anyhow::Result<()> {
    with_dashboard(1, async |breakers, admin, browser| {
        browser.window(1440, 900, false).await?;
        browser.open(&format!("http://{admin}/")).await?;
        browser.until("document.querySelectorAll('#breakers li').length === 50").await?;
        browser.until("document.getElementById('summary').textContent === '50 closed'").await?;
        let bottom = "Math.max(...[...document.querySelectorAll('.tile')].map((t) => t.getBoundingClientRect().bottom))";
        let bottom = browser.eval(bottom).await?.as_f64().unwrap_or(f64::MAX);
        anyhow::ensure!(bottom <= 900.0, "50 breakers need {bottom} of 900 pixels");

        // It opens, counts down, lets a probe through, and closes; nothing is loaded again.
        browser.eval("window.mark = 'same page'").await?;
        breakers.registry.breaker("tavily").try_acquire()?.settle(Verdict::Failure);
        let tavily = tile("tavily");
        browser.until(&format!("{tavily}.dataset.state === 'open'")).await?;
        browser.until(&format!("/next probe in [123] s/.test({tavily}.innerText)")).await?;
        browser.until(&format!("{tavily}.innerText.includes('1 consecutive failures')")).await?;
        browser.until(&format!("/since \\d/.test({tavily}.innerText)")).await?;
        browser.until("document.title.startsWith('(1 open)')").await?;
        browser.until(&format!("{tavily}.innerText.includes('probe due')")).await?;
        breakers.registry.breaker("tavily").try_acquire()?.settle(Verdict::Success);
        browser.until(&format!("{tavily}.dataset.state === 'closed'")).await?;
        browser.until("document.querySelector('#changes').innerText.includes('tavily: closed, because')").await?;
        browser.until("document.querySelectorAll('#timeline rect.open').length === 1").await?;
        anyhow::ensure!(browser.eval("window.mark").await? == "same page");

        // Without the token nothing changes, with it the override is there.
        browser.eval(&format!("{}.click()", tile("gleif"))).await?;
        browser.until("document.getElementById('detail').open").await?;
        browser.until("document.getElementById('thresholds').innerText.includes('reset_timeout')").await?;
        let fill = |name: &str, value: &str| {
            format!("document.getElementById('override').elements['{name}'].value = '{value}'")
        };
        let token = local_token(admin.port()).expect("a token file");
        for (name, value) in [("who", "alice"), ("why", "maintenance"), ("minutes", "60"), ("token", token.secret())] {
            browser.eval(&fill(name, value)).await?;
        }
        browser.eval("document.getElementById('override').requestSubmit()").await?;
        browser.until("document.getElementById('answer').textContent.startsWith('Done: in force in this process')").await?;
        browser.until(&format!("{}.innerText.includes('FORCED')", tile("gleif"))).await?;
        browser.until(&format!("/ends in 59 min|ends in 1 h|ends in 60 min/.test({}.innerText)", tile("gleif"))).await?;
        let view = breakers.registry.breaker("gleif").view();
        anyhow::ensure!(view.overrides.len() == 1 && view.overrides[0].who == "alice", "{view:?}");

        // The keyboard: Escape closes the dialog, the filter finds, a tile is a button with a name.
        browser.eval("document.getElementById('close').click()").await?;
        browser.eval("{ const f = document.getElementById('filter'); f.value = 'glei'; f.dispatchEvent(new Event('input')); }").await?;
        browser.until("document.querySelectorAll('#breakers li').length === 1").await?;
        let label = browser.eval(&format!("{}.getAttribute('aria-label')", tile("gleif"))).await?;
        anyhow::ensure!(label.as_str().is_some_and(|label| label.starts_with("gleif, FORCED, ")), "{label}");
        check_clean(browser, admin)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_is_readable_in_every_size_and_scheme() -> anyhow::Result<()> {
    let folder = std::env::var_os("DASHBOARD_PICTURES").map(PathBuf::from);
    with_dashboard(3, async |breakers, admin, browser| {
        if folder.is_some() {
            traffic(breakers).await;
        }
        for service in ["tavily", "vies", "tavily", "vies", "tavily", "vies"] {
            breakers.registry.breaker(service).try_acquire()?.settle(Verdict::Failure);
        }
        let order = Override::new("alice", "announced maintenance").lasting(Duration::from_secs(7200));
        breakers.registry.breaker("northdata").force_open(order);
        for (name, width, height, dark) in
            [("desktop-light", 1440, 900, false), ("desktop-dark", 1440, 900, true), ("phone-light", 400, 860, false)]
        {
            browser.window(width, height, dark).await?;
            browser.open(&format!("http://{admin}/")).await?;
            browser.until("document.querySelectorAll('#breakers li').length === 50").await?;
            browser.until("document.querySelector('#changes').innerText.includes('northdata')").await?;
            let wide = browser.eval("document.documentElement.scrollWidth").await?;
            anyhow::ensure!(wide.as_u64().is_some_and(|wide| wide <= u64::from(width)), "{name}: {wide} pixels wide");
            let page = browser.eval("getComputedStyle(document.body).backgroundColor").await?;
            let is_dark = page.as_str().is_some_and(|colour| colour.starts_with("rgb(13,"));
            anyhow::ensure!(is_dark == dark, "{name}: {page}");
            let picture = browser.picture().await?;
            anyhow::ensure!(picture.len() > 10_000, "{name} is almost empty");
            if let Some(folder) = &folder {
                fs::write(folder.join(format!("dashboard-{name}.png")), picture)?;
            }
        }
        check_clean(browser, admin)
    })
    .await
}
