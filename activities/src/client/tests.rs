//! Against sockets of our own that say what no well-behaved server would.

use std::net::SocketAddr;

use circuit_registry::{Classify, Verdict};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};

use super::*;

static SOURCE: Source = Source {
    name: "example",
    base: Base { env: "TAVILY_BASE_URL", default: "http://127.0.0.1:1" },
    auth: Auth::Bearer("TAVILY_API_KEY"),
    ..Source::BLANK
};

/// Gives each connection the next of these answers, then closes it. What was asked arrives in the channel.
async fn server(answers: Vec<Vec<u8>>) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        for answer in answers {
            let Ok((mut socket, _)) = listener.accept().await else { return };
            let mut request = vec![0; 16_384];
            let length = socket.read(&mut request).await.unwrap_or_default();
            let _ = sender.send(String::from_utf8_lossy(&request[..length]).into_owned()).await;
            let _ = socket.write_all(&answer).await;
            let _ = socket.shutdown().await;
        }
        std::future::pending::<()>().await;
    });
    (addr, receiver)
}

fn client(addr: SocketAddr) -> Client {
    let base = format!("http://{addr}/base");
    let pairs =
        [("TAVILY_BASE_URL", base.as_str()), ("TAVILY_API_KEY", "secret-key"), ("OSINT_CONTACT", "ops@example.org")];
    Client::new(Settings::from_pairs(pairs).expect("settings")).expect("a client")
}

fn http(head: &str, body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

async fn ask(answers: Vec<Vec<u8>>, request: Request) -> Result<Reply, SourceError> {
    let (addr, _asked) = server(answers).await;
    client(addr).send(&SOURCE, request).await
}

#[tokio::test]
async fn a_request_introduces_and_authorises_itself() {
    let (addr, mut asked) = server(vec![http("200 OK", b"{}")]).await;
    let reply = client(addr).send(&SOURCE, Request::get("/x").query("q", "a b")).await.expect("an answer");
    assert_eq!((reply.status, reply.body.as_slice()), (200, &b"{}"[..]));
    let request = asked.recv().await.expect("a request").to_lowercase();
    assert!(request.starts_with("get /base/x?q=a+b http/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: bearer secret-key\r\n"));
    assert!(request.contains("(+ops@example.org)\r\n") && request.contains("accept: application/json\r\n"));
}

#[tokio::test]
async fn a_token_takes_the_place_of_the_credentials() {
    let (addr, mut asked) = server(vec![http("200 OK", b"{}")]).await;
    let request = Request::post("/x", &serde_json::json!({"a": 1})).token("fresh".to_owned().into());
    client(addr).send(&SOURCE, request).await.expect("an answer");
    let request = asked.recv().await.expect("a request").to_lowercase();
    assert!(request.contains("authorization: bearer fresh\r\n") && !request.contains("secret-key"));
    assert!(request.contains("content-type: application/json\r\n"));
}

#[tokio::test]
async fn any_status_is_an_answer() {
    for status in [404, 429, 500, 503] {
        let head = format!("{status} X\r\nretry-after: 7");
        let reply = ask(vec![http(&head, b"no")], Request::get("/x")).await.expect("an answer");
        assert_eq!((reply.status, reply.header("Retry-After")), (status, Some("7")));
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_cut() {
    let error = ask(vec![http("200 OK", &[b'x'; 2_001])], Request::get("/x").limit(2_000)).await.expect_err("too much");
    assert_eq!(error.class, Class::BadShape);
    assert!(ask(vec![http("200 OK", &[b'x'; 2_000])], Request::get("/x").limit(2_000)).await.is_ok());
}

#[tokio::test]
async fn a_bomb_is_cut_by_what_comes_out_of_it() {
    let bomb = include_bytes!("../../../simulator/fixtures/bomb.gz");
    let answer = http("200 OK\r\ncontent-encoding: gzip", bomb);
    let limit = bomb.len() * 20;
    let error = ask(vec![answer], Request::get("/x").limit(limit)).await.expect_err("a bomb");
    assert_eq!(error.class, Class::BadShape, "{error}");
}

#[tokio::test]
async fn redirects_stay_on_their_host_and_end() {
    let moved = http("302 Found\r\nlocation: /base/y", b"");
    let reply = ask(vec![moved.clone(), http("200 OK", b"{}")], Request::get("/x")).await.expect("an answer");
    assert_eq!(reply.status, 200);

    let away = http("302 Found\r\nlocation: http://localhost:1/steal", b"");
    assert_eq!(ask(vec![away], Request::get("/x")).await.expect("an answer").status, 302);

    let circle = vec![moved; REDIRECTS + 2];
    assert_eq!(ask(circle, Request::get("/x")).await.expect("an answer").status, 302);
}

#[tokio::test]
async fn a_broken_off_answer_is_an_outage() {
    let short = b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"a\":".to_vec();
    let nothing = Vec::new();
    let nonsense = b"\x16\x03\x01 what\r\n\r\n".to_vec();
    for answer in [short, nothing, nonsense] {
        let error = ask(vec![answer], Request::get("/x")).await.expect_err("no whole answer");
        assert_eq!((error.class, error.verdict(), error.uncharged), (Class::Unavailable, Verdict::Failure, false));
    }
}

#[tokio::test]
async fn no_listener_is_an_outage_without_a_charge() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    drop(listener);
    let request = Request::get("/x").segment("Jane Example").query("q", "secret question");
    let error = client(addr).send(&SOURCE, request).await.expect_err("no listener");
    assert_eq!((error.class, error.uncharged), (Class::Unavailable, true));
    let text = format!("{error} {error:?}");
    assert!(!text.contains("secret") && !text.contains("Jane"), "{text}");
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let (addr, _asked) = server(vec![]).await;
    let request = Request::get("/x").within(Duration::from_millis(100));
    let error = client(addr).send(&SOURCE, request).await.expect_err("silence");
    assert_eq!((error.class, error.verdict()), (Class::Timeout, Verdict::Failure));
}

/// A public source whose name stands for this machine, as after an attack on its domain.
#[tokio::test]
async fn a_public_name_with_an_inner_address_is_refused() {
    struct Here;
    impl Resolve for Here {
        fn resolve(&self, _: Name) -> Resolving {
            let here: [SocketAddr; 1] = [([127, 0, 0, 1], 0).into()];
            Box::pin(async move { Ok(Box::new(here.into_iter()) as Addrs) })
        }
    }
    let (addr, mut asked) = server(vec![http("200 OK", b"{}"), http("200 OK", b"{}")]).await;
    let address = format!("http://register.example:{}", addr.port());
    let base = Base { env: "TAVILY_BASE_URL", default: Box::leak(address.clone().into_boxed_str()) };
    let source = Source { base, ..SOURCE };
    let names = || guard::Names::new(Here);
    let client = Client::with_names(Settings::default(), names()).expect("a client");
    let error = client.send(&source, Request::get("/x")).await.expect_err("an inner address");
    assert_eq!((error.class, error.uncharged), (Class::Unavailable, true));
    assert!(asked.try_recv().is_err(), "it was asked all the same");

    // The operator may have a register of that name in the next room.
    let settings = Settings::from_pairs([("TAVILY_BASE_URL", address.as_str())]).expect("settings");
    let client = Client::with_names(settings, names()).expect("a client");
    assert_eq!(client.send(&source, Request::get("/x")).await.expect("an answer").status, 200);

    assert_eq!(client.vet("https://register.example/").await, Err(guard::Refusal::Private));
    assert_eq!(client.vet("http://127.0.0.1/").await, Err(guard::Refusal::Private));
}

#[tokio::test]
async fn a_link_leads_to_the_source_or_the_public_internet() {
    let (addr, mut asked) = server(vec![http("200 OK", b"{}")]).await;
    let request = Request::follow(format!("http://{addr}/other?page=2"));
    client(addr).send(&SOURCE, request).await.expect("an answer");
    let request = asked.recv().await.expect("a request").to_lowercase();
    assert!(
        request.starts_with("get /other?page=2 http/1.1\r\n") && request.contains("bearer secret-key"),
        "{request}"
    );

    let (inner, mut asked) = server(vec![http("200 OK", b"{}")]).await;
    for link in [format!("http://{inner}/"), format!("http://localhost:{}/", inner.port()), "nonsense".to_owned()] {
        let error = client(addr).send(&SOURCE, Request::follow(link)).await.expect_err("not followed");
        assert_eq!((error.class, error.uncharged), (Class::BadShape, true));
        assert!(!error.reason.contains("127."), "{error}");
    }
    assert!(asked.try_recv().is_err());
    let target =
        client(addr).target(&SOURCE, &Request::follow("https://example.com/feed.json")).map(|target| target.own);
    assert_eq!(target, Ok(false), "credentials stay at home");
}
