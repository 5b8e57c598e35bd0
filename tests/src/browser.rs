//! A headless Chromium that tests drive by its DevTools protocol, over a pipe: no port, no websocket.
//!
//! The browser reads commands from descriptor 3 and writes to descriptor 4, as JSON with a NUL after each. A line of shell maps
//! them to standard input and output.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, sleep, timeout},
};

/// Time for one answer of the browser.
const ANSWER: Duration = Duration::from_secs(30);

/// A browser with one page.
pub struct Browser {
    _child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    sent: u64,
    /// Events that were not asked for yet.
    events: VecDeque<Value>,
    _profile: tempfile::TempDir,
}

/// Where Chromium is: `CHROMIUM`, or what `scripts/tools` prints.
///
/// # Errors
/// When there is none and none can be fetched.
pub fn chromium() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("CHROMIUM") {
        return Ok(path.into());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace")?;
    let output = std::process::Command::new(root.join("scripts/tools")).arg("chromium-headless-shell").output()?;
    ensure!(output.status.success(), "scripts/tools: {}", String::from_utf8_lossy(&output.stderr));
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

impl Browser {
    /// Starts the browser with an empty page.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub async fn start() -> anyhow::Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#, "sh"])
            .arg(chromium()?)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-proxy-server"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let commands = child.stdin.take().context("piped")?;
        let answers = BufReader::new(child.stdout.take().context("piped")?);
        let events = VecDeque::new();
        let mut browser = Self { _child: child, commands, answers, session: None, sent: 0, events, _profile: profile };
        let target = browser.send("Target.createTarget", json!({ "url": "about:blank" })).await?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.send("Target.attachToTarget", attach).await?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.send(&format!("{domain}.enable"), json!({})).await?;
        }
        Ok(browser)
    }

    /// Sends a command and waits for its result.
    ///
    /// # Errors
    /// When the browser refuses it or does not answer.
    pub async fn send(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.sent += 1;
        let mut command = json!({ "id": self.sent, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&command)?;
        bytes.push(0);
        self.commands.write_all(&bytes).await?;
        loop {
            let message = timeout(ANSWER, self.read()).await.with_context(|| format!("{method}: no answer"))??;
            if message["id"] != self.sent {
                self.events.push_back(message);
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("{method}: {error}");
            }
            return Ok(message["result"].clone());
        }
    }

    async fn read(&mut self) -> anyhow::Result<Value> {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes).await?;
        ensure!(bytes.pop() == Some(0), "the browser has ended");
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Shows the page at `url`.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn open(&mut self, url: &str) -> anyhow::Result<()> {
        let loaded = self.send("Page.navigate", json!({ "url": url })).await?;
        ensure!(loaded.get("errorText").is_none(), "{url}: {loaded}");
        Ok(())
    }

    /// The window's size in CSS pixels, and whether the user prefers dark pages.
    ///
    /// # Errors
    /// As [`Browser::send`].
    pub async fn window(&mut self, width: u32, height: u32, dark: bool) -> anyhow::Result<()> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.send("Emulation.setDeviceMetricsOverride", metrics).await?;
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.send("Emulation.setEmulatedMedia", media).await.map(drop)
    }

    /// The value of a JavaScript expression in the page.
    ///
    /// # Errors
    /// When it throws.
    pub async fn eval(&mut self, expression: &str) -> anyhow::Result<Value> {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.send("Runtime.evaluate", params).await?;
        ensure!(result.get("exceptionDetails").is_none(), "{expression}: {}", result["exceptionDetails"]);
        Ok(result["result"]["value"].clone())
    }

    /// Waits until an expression is true in the page.
    ///
    /// # Errors
    /// When it does not become true in time.
    pub async fn until(&mut self, expression: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        // An element that is not there yet is no error.
        let safe = format!("(() => {{ try {{ return ({expression}) }} catch {{ return false }} }})()");
        while self.eval(&safe).await? != true {
            if began.elapsed() > ANSWER {
                let text = self.eval("document.body?.innerText ?? ''").await?;
                bail!("not true within {ANSWER:?}: {expression}\n{}", text.as_str().unwrap_or_default());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// A picture of what the window shows, as PNG.
    ///
    /// # Errors
    /// As [`Browser::send`].
    pub async fn picture(&mut self) -> anyhow::Result<Vec<u8>> {
        use base64::{Engine, prelude::BASE64_STANDARD};
        let picture = self.send("Page.captureScreenshot", json!({ "format": "png" })).await?;
        Ok(BASE64_STANDARD.decode(picture["data"].as_str().context("a picture")?)?)
    }

    /// The events of a kind so far, such as `Network.requestWillBeSent`: their parameters.
    #[must_use]
    pub fn events(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]).collect()
    }
}
