//! The published crates, each through its own cheapest documented way to guard a call, tripping on consecutive failures
//! where it can.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Form, Scene, Sick, Subject, once};
use crate::{awaited, repeat};

/// Long enough that nothing opened during a measurement becomes half-open.
const LONG: Duration = Duration::from_secs(86_400);
/// Consecutive failures that open, in crates that count them.
const FAIL_MAX: u32 = 5;

async fn work() -> Result<u64, Sick> {
    Ok(black_box(7))
}

fn work_now() -> Result<u64, Sick> {
    Ok(black_box(7))
}

/// The floors: a bare future, a bare closure, one atomic load, one reading of the clock.
pub fn floors() -> Vec<Subject> {
    let word = Arc::new(AtomicU64::new(7));
    vec![
        Subject::new("bare future", Form::Future, Scene::Closed, |n| awaited!(n, work())),
        Subject::new("bare closure", Form::Closure, Scene::Closed, |n| repeat!(n, black_box(work_now)())),
        Subject::new("one atomic load", Form::Closure, Scene::Closed, move |n| {
            repeat!(n, Ok::<_, Sick>(word.load(Ordering::Acquire)))
        }),
        Subject::new("one clock read", Form::Closure, Scene::Closed, |n| repeat!(n, Ok::<_, Sick>(Instant::now()))),
    ]
}

/// Every published crate in that scene.
pub fn rivals(scene: Scene) -> Vec<Subject> {
    vec![
        failsafe_future(scene),
        failsafe_closure(scene),
        recloser_future(scene),
        recloser_closure(scene),
        nobreak_future(scene),
        nobreak_closure(scene),
        circuitbreaker_rs_future(scene),
        circuitbreaker_rs_closure(scene),
        tower_resilience(scene),
        execution_policy(scene),
        secure_resilience(scene),
    ]
}

fn failsafe_breaker(
    scene: Scene,
) -> failsafe::StateMachine<failsafe::failure_policy::ConsecutiveFailures<failsafe::backoff::Constant>, ()> {
    let policy = failsafe::failure_policy::consecutive_failures(FAIL_MAX, failsafe::backoff::constant(LONG));
    let breaker = failsafe::Config::new().failure_policy(policy).build();
    if scene == Scene::Rejected {
        for _ in 0..FAIL_MAX {
            breaker.on_error();
        }
    }
    breaker
}

fn failsafe_future(scene: Scene) -> Subject {
    use failsafe::futures::CircuitBreaker;
    let breaker = failsafe_breaker(scene);
    Subject::new("failsafe 1.3.0", Form::Future, scene, move |n| awaited!(n, breaker.call(work())))
}

fn failsafe_closure(scene: Scene) -> Subject {
    use failsafe::CircuitBreaker;
    let breaker = failsafe_breaker(scene);
    Subject::new("failsafe 1.3.0", Form::Closure, scene, move |n| repeat!(n, breaker.call(work_now)))
}

fn recloser_breaker(scene: Scene) -> recloser::Recloser {
    // It knows a failure rate over a full ring only; a ring of five at 100 % is its nearest to five in a row.
    let breaker = recloser::Recloser::custom().error_rate(1.0).closed_len(FAIL_MAX as usize).open_wait(LONG).build();
    if scene == Scene::Rejected {
        for _ in 0..=FAIL_MAX {
            let _ = breaker.call(|| Err::<(), Sick>(Sick));
        }
    }
    breaker
}

fn recloser_future(scene: Scene) -> Subject {
    let breaker = recloser::AsyncRecloser::from(recloser_breaker(scene));
    Subject::new("recloser 1.4.0", Form::Future, scene, move |n| awaited!(n, breaker.call(work())))
}

fn recloser_closure(scene: Scene) -> Subject {
    let breaker = recloser_breaker(scene);
    Subject::new("recloser 1.4.0", Form::Closure, scene, move |n| repeat!(n, breaker.call(work_now)))
}

fn nobreak_breaker(scene: Scene) -> nobreak::CircuitBreaker {
    let breaker = nobreak::builder().with_failure_threshold(FAIL_MAX as usize).with_open_duration(LONG).build();
    if scene == Scene::Rejected {
        for _ in 0..FAIL_MAX {
            let _ = breaker.call(|| Err::<(), Sick>(Sick));
        }
    }
    breaker
}

fn nobreak_future(scene: Scene) -> Subject {
    let breaker = nobreak_breaker(scene);
    Subject::new("nobreak 0.1.0", Form::Future, scene, move |n| awaited!(n, breaker.call_async(work)))
}

fn nobreak_closure(scene: Scene) -> Subject {
    let breaker = nobreak_breaker(scene);
    Subject::new("nobreak 0.1.0", Form::Closure, scene, move |n| repeat!(n, breaker.call(work_now)))
}

fn circuitbreaker_rs_breaker(
    scene: Scene,
) -> circuitbreaker_rs::CircuitBreaker<circuitbreaker_rs::DefaultPolicy, Sick> {
    let breaker = circuitbreaker_rs::CircuitBreaker::<circuitbreaker_rs::DefaultPolicy, Sick>::builder()
        .consecutive_failures(u64::from(FAIL_MAX))
        .cooldown(LONG)
        .build();
    if scene == Scene::Rejected {
        breaker.force_open();
    }
    breaker
}

fn circuitbreaker_rs_future(scene: Scene) -> Subject {
    let breaker = circuitbreaker_rs_breaker(scene);
    Subject::new("circuitbreaker-rs 0.1.1", Form::Future, scene, move |n| awaited!(n, breaker.call_async(work)))
}

fn circuitbreaker_rs_closure(scene: Scene) -> Subject {
    let breaker = circuitbreaker_rs_breaker(scene);
    Subject::new("circuitbreaker-rs 0.1.1", Form::Closure, scene, move |n| repeat!(n, breaker.call(work_now)))
}

fn tower_resilience(scene: Scene) -> Subject {
    use tower::{Service, service_fn};
    let (layer, handle) = tower_resilience_circuitbreaker::CircuitBreakerLayer::builder()
        .consecutive_failures(FAIL_MAX as usize)
        .wait_duration_in_open(LONG)
        .build_with_handle()
        .expect("a valid configuration");
    if scene == Scene::Rejected {
        once(handle.force_open());
    }
    let service = layer.layer_fn(service_fn(|()| work()));
    let shared = std::sync::Mutex::new(service);
    // When two callers meet at an open breaker it sleeps a millisecond on tokio's timer, so there must be one.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime");
    Subject::new("tower-resilience-circuitbreaker 0.14.0", Form::Future, scene, move |n| {
        // A service is cloned per task, as tower means it; the circuit behind the clones is one.
        let _timer = runtime.enter();
        let mut service = shared.lock().expect("no panic under this lock").clone();
        awaited!(n, async {
            std::future::poll_fn(|cx| Service::<()>::poll_ready(&mut service, cx)).await?;
            service.call(()).await
        })
    })
}

fn execution_policy(scene: Scene) -> Subject {
    use execution_policy::{CircuitBreaker, ExecutionPolicyBuilder};
    let policy = ExecutionPolicyBuilder::<u64, Sick>::new()
        .circuit_breaker(CircuitBreaker::consecutive_failures(FAIL_MAX).open_for(LONG))
        .build();
    if scene == Scene::Rejected {
        for _ in 0..FAIL_MAX {
            let _ = once(policy.run(async || Err(Sick)));
        }
    }
    Subject::new("execution-policy 0.0.6", Form::Future, scene, move |n| awaited!(n, policy.run(work)))
}

fn secure_resilience(scene: Scene) -> Subject {
    use secure_resilience::{CircuitBreaker, CircuitBreakerPolicy};
    let breaker =
        CircuitBreaker::new(CircuitBreakerPolicy::new().with_failure_threshold(FAIL_MAX).with_open_duration(LONG));
    if scene == Scene::Rejected {
        for _ in 0..FAIL_MAX {
            let _ = breaker.call(|| Err::<(), Sick>(Sick));
        }
    }
    Subject::new("secure_resilience 0.4.0", Form::Closure, scene, move |n| repeat!(n, breaker.call(work_now)))
}
