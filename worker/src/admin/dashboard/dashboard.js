// The dashboard. It follows /events and draws what it hears. Text from the server only ever becomes text, never markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const HOUR = 3600e3;
const CHANGES = 60;
const STATES = { closed: "closed", open: "OPEN", half_open: "HALF-OPEN" };
const MODES = { force_open: "FORCED", force_closed: "forced closed", observe: "observing" };
const ORDER = { open: 0, half_open: 1, closed: 2 };

const at = (id) => document.getElementById(id);
const state = { breakers: new Map(), heard: 0, history: [], samples: {}, shown: null };

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "data") Object.assign(made.dataset, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

function drawing(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// ── words ──

const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });

function moment(time) {
  const date = new Date(time);
  const today = new Date().toDateString() === date.toDateString();
  return today ? clock(time) : `${date.toLocaleDateString()} ${clock(time)}`;
}

function span(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

const rejected = (calls) => Object.entries(calls).reduce((sum, [key, n]) => sum + (key.startsWith("rejected_") ? n : 0), 0);
const held = (breaker) => breaker.mode !== "enforce";

function label(breaker) {
  return held(breaker) ? (MODES[breaker.mode] ?? breaker.mode) : (STATES[breaker.state] ?? breaker.state);
}

const lastFailure = ({ last_failure: failure }) => (failure ? `${failure.kind}: ${failure.text}` : "");

function why(breaker) {
  return [breaker.reason, breaker.state === "closed" ? "" : lastFailure(breaker)].filter(Boolean).join("; ");
}

function due(breaker) {
  if (held(breaker)) {
    const override = breaker.overrides.find((one) => one.mode === breaker.mode);
    if (!override) return "by configuration";
    return override.ends_in_ms === null ? "until released" : `ends in ${span(override.ends_in_ms - (Date.now() - state.heard))}`;
  }
  if (breaker.retry_in_ms === null) return "";
  const left = breaker.retry_in_ms - (Date.now() - state.heard);
  return left > 0 ? `next probe in ${span(left)}` : "probe due";
}

function sentence(entry) {
  switch (entry.event) {
    case "transition":
      return `${entry.to === "open" ? "opened" : entry.to === "closed" ? "closed" : "half-opened"}, because ${entry.why}${entry.to === "open" && entry.last_failure ? ` (last failure ${entry.last_failure})` : ""}`;
    case "would_open": return `would have opened, because ${entry.why} (it only observes)`;
    case "override": return `${entry.who}: ${entry.mode.replace("_", " ")} (${entry.why})`;
    case "reconfigured": return "thresholds changed";
    case "reload_failed": return `new thresholds refused: ${entry.error}`;
    default: return entry.event;
  }
}

// ── tiles ──

function spark(samples) {
  const box = drawing("svg", { viewBox: "0 0 120 20", preserveAspectRatio: "none", "aria-hidden": "true" });
  box.append(drawing("line", { class: "spark-base", x1: 0, y1: 19, x2: 120, y2: 19 }));
  if (!samples?.length) return box;
  const points = samples.map(([calls, failures], n) => {
    const x = 120 - samples.length + n;
    return `${x},${(19 - 18 * (calls ? failures / calls : 0)).toFixed(1)}`;
  });
  box.append(drawing("polyline", { class: "spark", points: points.join(" ") }));
  return box;
}

function rate(samples) {
  const [calls, failures] = (samples ?? []).reduce(([c, f], [calls, failed]) => [c + calls, f + failed], [0, 0]);
  return calls ? `${Math.round((100 * failures) / calls)} % of ${calls} failed in 10 min` : "";
}

function tile(service) {
  const part = (name) => element("span", { className: name });
  const button = element("button", { className: "tile", type: "button" },
    part("name"), part("state"), part("wide why"), part("wide due"), part("wide since"), part("calls"), spark());
  button.addEventListener("click", () => show(service));
  return element("li", { data: { service } }, button);
}

function set(parent, name, text) {
  const place = parent.querySelector(`.${name}`);
  if (place.textContent !== text) {
    place.textContent = text;
    place.title = text;
  }
}

function fill(item, breaker) {
  const button = item.firstElementChild;
  button.dataset.state = breaker.state;
  button.dataset.held = String(held(breaker));
  set(button, "name", breaker.service);
  set(button, "state", label(breaker));
  set(button, "why", why(breaker) || (breaker.calls.failure ? `${breaker.calls.failure} failures so far` : ""));
  const since = breaker.state === "closed" && !held(breaker) ? "" : `since ${moment(breaker.since)}`;
  set(button, "due", due(breaker));
  set(button, "since", breaker.since ? since : "");
  const calls = breaker.calls;
  const total = calls.success + calls.failure + calls.throttled + calls.neutral;
  set(button, "calls", `${total} calls${rejected(calls) ? `, ${rejected(calls)} refused` : ""}`);
  const samples = state.samples[breaker.service];
  button.lastElementChild.replaceWith(spark(samples));
  button.setAttribute("aria-label", [breaker.service, label(breaker), why(breaker), due(breaker), since, rate(samples)].filter(Boolean).join(", "));
}

function draw() {
  const list = at("breakers");
  const wanted = at("filter").value.trim().toLowerCase();
  const all = [...state.breakers.values()];
  const rank = (breaker) => (held(breaker) ? 0 : ORDER[breaker.state] ?? 1);
  const sorted = all.filter((breaker) => breaker.service.toLowerCase().includes(wanted))
    .sort((a, b) => rank(a) - rank(b) || a.service.localeCompare(b.service));
  const known = new Map([...list.children].map((item) => [item.dataset.service, item]));
  const focused = document.activeElement;
  sorted.forEach((breaker, n) => {
    const item = known.get(breaker.service) ?? tile(breaker.service);
    known.delete(breaker.service);
    fill(item, breaker);
    if (list.children[n] !== item) list.insertBefore(item, list.children[n] ?? null);
  });
  for (const gone of known.values()) gone.remove();
  if (focused?.isConnected && focused !== document.activeElement) focused.focus();
  const count = (test) => all.filter(test).length;
  const words = [
    [count((b) => !held(b) && b.state === "open"), "open"],
    [count((b) => !held(b) && b.state === "half_open"), "half-open"],
    [count(held), "overridden"],
    [count((b) => !held(b) && b.state === "closed"), "closed"],
  ];
  const summary = `${words.filter(([n]) => n).map(([n, word]) => `${n} ${word}`).join(", ") || "none"}`;
  if (at("summary").textContent !== summary) at("summary").textContent = summary;
  document.title = words[0][0] ? `(${words[0][0]} open) Circuit breakers` : "Circuit breakers";
}

function tick() {
  for (const item of at("breakers").children) {
    const breaker = state.breakers.get(item.dataset.service);
    if (breaker && (breaker.retry_in_ms !== null || held(breaker))) {
      set(item.firstElementChild, "due", due(breaker));
    }
  }
}

// ── history ──

function change(entry, withService) {
  const when = element("time", { dateTime: entry.at, textContent: moment(entry.at) });
  const who = withService && entry.service ? `  ${entry.service}: ` : "  ";
  return element("li", {}, when, `${who}${sentence(entry)}`);
}

function drawHistory() {
  const changes = state.history.slice(-CHANGES).reverse().map((entry) => change(entry, true));
  at("changes").replaceChildren(...(changes.length ? changes : [element("li", { className: "none", textContent: "none yet" })]));
  const now = Date.now();
  const services = new Map();
  for (const entry of state.history.filter((entry) => entry.event === "transition")) {
    services.set(entry.service, [...(services.get(entry.service) ?? []), entry]);
  }
  const rows = [...services].filter(([, entries]) => entries.some((entry) => now - new Date(entry.at) < HOUR))
    .sort(([a], [b]) => a.localeCompare(b)).map(([service, entries]) => bar(service, entries, now));
  at("timeline").replaceChildren(...(rows.length ? rows : [element("li", { className: "none", textContent: "no changes" })]));
}

function bar(service, entries, now) {
  const words = entries.slice(-6).map((entry) => `${clock(entry.at)} ${sentence(entry)}`).join("; ");
  const box = drawing("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img", "aria-label": words });
  const title = drawing("title", {});
  title.textContent = words;
  box.append(title);
  const x = (time) => Math.max(0, Math.min(1000, 1000 * (1 - (now - time) / HOUR)));
  let [from, current] = [now - HOUR, entries[0].from];
  for (const entry of entries) {
    const time = new Date(entry.at).getTime();
    if (x(time) > 0) piece(box, x(from), x(time), current);
    [from, current] = [time, entry.to];
  }
  piece(box, x(from), 1000, current);
  return element("li", {}, element("span", { textContent: service }), box);
}

function piece(box, from, to, kind) {
  box.append(drawing("rect", { class: kind, x: from, y: 0, width: Math.max(1, to - from), height: 10 }));
}

function drawInvestigations(list) {
  const items = list.map((one) => {
    const bar = element("progress", { max: Math.max(1, one.asked), value: one.settled });
    const text = ` ${one.settled} of ${one.asked} questions have an outcome${one.gaps ? `, ${one.gaps} with a gap` : ""}`;
    bar.setAttribute("aria-label", text.trim());
    const when = one.started ? ` since ${moment(one.started)} ` : " ";
    return element("li", {}, element("code", { textContent: one.id }), when, bar, text);
  });
  at("investigations").replaceChildren(...(items.length ? items : [element("li", { className: "none", textContent: "none" })]));
}

// ── one breaker ──

function pairs(list) {
  return list.filter(([, text]) => text).flatMap(([name, text]) => [element("dt", { textContent: name }), element("dd", { textContent: text })]);
}

function facts() {
  const breaker = state.breakers.get(state.shown);
  if (!breaker) return;
  const overrides = breaker.overrides.map((one) =>
    [`${one.mode.replace("_", " ")} by ${one.who}`, `${one.why} (${one.ends_in_ms === null ? "until released" : `ends in ${span(one.ends_in_ms - (Date.now() - state.heard))}`})`]);
  at("facts").replaceChildren(...pairs([
    ["state", label(breaker)], ["since", breaker.since ? moment(breaker.since) : ""], ["why", why(breaker)],
    ["next", due(breaker)], ["last failure", lastFailure(breaker)], ["calls", rate(state.samples[breaker.service])],
    ["in flight", String(breaker.in_flight)], ...overrides,
  ]));
  const entries = state.history.filter((entry) => entry.service === state.shown).slice(-CHANGES).reverse();
  at("history").replaceChildren(...entries.map((entry) => change(entry, false)));
}

async function show(service) {
  state.shown = service;
  at("detail-title").textContent = service;
  at("answer").textContent = "";
  at("thresholds").replaceChildren();
  at("override").elements.token.value = token();
  facts();
  at("detail").showModal();
  const answer = await ask(`/breakers/${encodeURIComponent(service)}`);
  if (!answer.ok || state.shown !== service) return;
  const detail = await answer.json();
  at("thresholds").replaceChildren(...pairs(detail.policy.map((row) => [row.key, row.value && `${row.value}  (${row.from})`])));
}

async function apply(submitted) {
  submitted.preventDefault();
  const fields = at("override").elements;
  const order = { order: fields.order.value };
  if (order.order === "auto") {
    if (fields.who.value.trim()) order.who = fields.who.value.trim();
  } else {
    Object.assign(order, { who: fields.who.value.trim(), why: fields.why.value.trim() });
    if (fields.minutes.value) order.for_ms = Math.round(Number(fields.minutes.value) * 60e3);
  }
  keep(fields.token.value.trim());
  const body = JSON.stringify(order);
  const headers = { "content-type": "application/json" };
  let text, bad = true;
  try {
    const answer = await ask(`/breakers/${encodeURIComponent(state.shown)}`, { method: "POST", headers, body });
    const value = await answer.json().catch(async () => ({ error: `the worker answers ${answer.status}` }));
    bad = !answer.ok;
    text = answer.ok ? `Done: ${value.note}.` : value.error;
  } catch {
    text = "The worker does not answer.";
  }
  at("answer").dataset.bad = String(bad);
  at("answer").textContent = text;
}

// ── the connection ──

const token = () => sessionStorage.getItem("token") ?? "";
const keep = (text) => (text ? sessionStorage.setItem("token", text) : sessionStorage.removeItem("token"));

function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers.authorization = `Bearer ${token()}`;
  return fetch(path, { ...options, headers, cache: "no-store" });
}

function connection(name, text) {
  at("connection").dataset.state = name;
  at("connection").textContent = text;
  document.body.classList.toggle("lost", name === "lost");
}

const hear = {
  breakers(list) {
    state.heard = Date.now();
    state.breakers = new Map(list.map((breaker) => [breaker.service, breaker]));
    draw();
    facts();
  },
  history(list) { state.history = list; drawHistory(); },
  entry(entry) { state.history.push(entry); state.history.splice(0, state.history.length - 2000); drawHistory(); facts(); },
  samples(samples) { state.samples = samples; draw(); },
  investigations: drawInvestigations,
};

function message(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (data.length) hear[name]?.(JSON.parse(data.join("\n")));
}

async function follow() {
  const answer = await ask("/events");
  if (answer.status === 401) {
    at("sign-in").hidden = false;
    connection("lost", "needs the token");
    return false;
  }
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  at("sign-in").hidden = true;
  connection("live", "live");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return true;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    blocks.forEach(message);
  }
}

async function run() {
  for (let pause = 1000; ;) {
    const began = Date.now();
    let again = true;
    try { again = await follow(); } catch { /* said below */ }
    if (!again) return;
    if (Date.now() - began > 10e3) pause = 1000;
    connection("lost", `connection lost at ${clock(Date.now())}`);
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 15e3);
  }
}

at("filter").addEventListener("input", draw);
at("close").addEventListener("click", () => at("detail").close());
at("detail").addEventListener("close", () => { state.shown = null; });
at("override").addEventListener("submit", apply);
at("sign-in").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  keep(at("sign-in").elements.token.value.trim());
  run();
});
setInterval(tick, 500);
setInterval(drawHistory, 30e3);
run();
