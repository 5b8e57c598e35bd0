//! How an answer goes out: whole, late, in pieces, in part, or never.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use futures::{StreamExt, stream};
use tokio::time::sleep;

use crate::answer::Answer;
use crate::fault::Effect;
use crate::port::{Connection, DropConnection};

/// How long a reset waits for the half of the body to be on the wire.
const RESET_AFTER: Duration = Duration::from_millis(20);
/// How many pieces a dripping body comes in, at most.
const DRIPS: usize = 64;

/// The status that the call log records: 0 for a call without a complete answer.
pub(crate) fn status(answer: &Answer, effect: &Effect) -> u16 {
    match effect {
        Effect::Hang | Effect::Reset | Effect::DropConnection => 0,
        Effect::Reply(reply) => reply.status(),
        _ => answer.status(),
    }
}

/// The response to send for this answer under this effect of a fault.
pub(crate) async fn deliver(answer: Answer, effect: Effect, connection: Option<&Connection>) -> Response<Body> {
    match effect {
        Effect::Answer | Effect::NotFound => answer.into_response(),
        Effect::Reply(reply) => reply.into_response(),
        Effect::Delay(delay) => {
            sleep(delay).await;
            answer.into_response()
        }
        Effect::Drip(pause) => drip(answer, pause),
        Effect::Truncate => {
            let half = answer.body().len() / 2;
            let body = answer.body()[..half].to_vec();
            answer.with_body(body).into_response()
        }
        // When the client gives up, its connection task is dropped, and this future with it.
        Effect::Hang => std::future::pending().await,
        Effect::DropConnection => {
            let mut response = Response::new(Body::empty());
            response.extensions_mut().insert(DropConnection);
            response
        }
        Effect::Reset => reset(answer, connection),
    }
}

fn drip(answer: Answer, pause: Duration) -> Response<Body> {
    let size = (answer.body().len() / DRIPS).max(1);
    let pieces: Vec<_> = answer.body().chunks(size).map(Bytes::copy_from_slice).collect();
    let slowly = stream::iter(pieces).then(move |piece| async move {
        sleep(pause).await;
        Ok::<_, Infallible>(piece)
    });
    answer.into_response_with(Body::from_stream(slowly))
}

fn reset(answer: Answer, connection: Option<&Connection>) -> Response<Body> {
    if let Some(connection) = connection {
        connection.reset_on_close();
    }
    let half = Bytes::copy_from_slice(&answer.body()[..answer.body().len() / 2]);
    let broken = stream::iter([Ok(half)]).chain(stream::once(async {
        sleep(RESET_AFTER).await;
        Err(std::io::Error::other("reset on purpose"))
    }));
    answer.into_response_with(Body::from_stream(broken))
}
