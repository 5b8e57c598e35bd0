//! The investigation of one company: every applicable question at once, each on its own.

#![allow(missing_docs, reason = "the SDK's macros make constants that cannot be documented")]

use std::time::{Duration, SystemTime};

use osint_activities::model::{Finding, Query, Status, Subject};
use serde::{Deserialize, Serialize};
use temporalio_common::{
    ActivityCloseTimeouts, ActivityDefinition, RetryPolicy,
    error::{ActivityExecutionError, ApplicationFailure},
    protos::temporal::api::failure::v1::failure::FailureInfo,
};
use temporalio_sdk::{
    ActivityOptions, LocalActivityOptions, WorkflowContext, WorkflowContextView, WorkflowResult, workflows::join_all,
};
use temporalio_workflow::{workflow, workflow_methods};

use super::{
    desk::{Concern, Desk, Round},
    finding::{Span, degraded},
    plan::{Plan, Question},
};
use crate::report::Report;

/// One attempt. Longer than any upstream's own timeout, so that it is the breaker that judges a slow upstream.
const ATTEMPT: Duration = Duration::from_secs(60);

/// One question, with all its attempts and waits. Past this the report is better off without the answer.
const QUESTION: Duration = Duration::from_secs(150);

/// Attempts per question after which a failing source is given up, unless its breaker ends them earlier.
const TRIES: u32 = 3;

/// Attempts in all. Most of them are for a source with a rate limit that many investigations want at the same time: being
/// refused by our own limit costs nobody anything, and is over when the question's time is.
const ATTEMPTS: u32 = 100;

/// Jobs that a source is still working on are waited for as long as this, in all. What is not done by then stays pending
/// in the report, with the id of the job and the time at which to ask for it.
const JOBS: Duration = Duration::from_secs(180);

/// The least time between two looks at a job, however the clocks of a worker and of the server differ.
const LOOK: Duration = Duration::from_secs(1);

/// Desk work takes no time; the limit only ends a worker that hangs.
const DESK: Duration = Duration::from_secs(10);

/// Investigates a company and reports. Fails only for a subject that cannot be investigated at all.
#[workflow]
#[derive(Default)]
pub struct InvestigationWorkflow {
    steps: Vec<Step>,
}

/// The progress of one question, as the query `progress` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the source.
    pub source: String,
    /// Name of the operation.
    pub operation: String,
    /// Its outcome; `None` while it is being asked.
    pub status: Option<Status>,
    /// Why it is not simply complete.
    pub reason: Option<String>,
    /// How long the last attempt took, in milliseconds.
    pub duration_ms: u64,
}

impl Step {
    fn asking(question: &Question) -> Self {
        let (source, operation) = (question.source.clone(), question.operation.clone());
        Self { source, operation, status: None, reason: None, duration_ms: 0 }
    }

    fn settle(&mut self, finding: &Finding) {
        self.status = Some(finding.status);
        self.reason.clone_from(&finding.reason);
        self.duration_ms = finding.duration_ms;
    }
}

#[workflow_methods]
impl InvestigationWorkflow {
    /// Plans, asks everything that applies at once, then what only applies to what has been learnt, and reports. The order
    /// of the findings is the order of the plans.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>, subject: Subject) -> WorkflowResult<Report> {
        let opened = ctx.execute_local_activity(Desk::open_file, subject, desk_options(3)).await;
        let mut plan = opened.map_err(|error| refusal(&error))?;
        let mut findings = ask_all(ctx, &plan).await;
        if !plan.wanting.is_empty() {
            let round = Round { plan: plan.clone(), findings: findings.clone() };
            // Without a second plan, what the first one was wanting stays unasked, and the report says so.
            if let Ok(further) = ctx.execute_local_activity(Desk::read_file, round, desk_options(3)).await {
                findings.extend(ask_all(ctx, &further).await);
                plan.questions.extend(further.questions);
                plan = Plan { questions: plan.questions, ..further };
            }
        }
        let concern = Concern::of(&plan);
        // A report without the breakers is still a report.
        let breakers = ctx.execute_local_activity(Desk::read_breakers, concern, desk_options(1)).await;
        Ok(Report::new(ctx.workflow_id(), plan, findings, breakers.unwrap_or_default()))
    }

    /// Live progress, question by question.
    #[query]
    pub fn progress(&self, _ctx: &WorkflowContextView) -> Vec<Step> {
        self.steps.clone()
    }
}

/// Puts the questions of a plan, all at once.
async fn ask_all(ctx: &WorkflowContext<InvestigationWorkflow>, plan: &Plan) -> Vec<Finding> {
    let before = ctx.state_mut(|state| {
        let before = state.steps.len();
        state.steps.extend(plan.questions.iter().map(Step::asking));
        before
    });
    let questions = plan.questions.iter().enumerate();
    join_all(questions.map(|(n, question)| ask(ctx, before + n, question, &plan.subject))).await
}

/// Puts one question and waits for what becomes of it. Whatever goes wrong, the result is a finding.
async fn ask(
    ctx: &WorkflowContext<InvestigationWorkflow>,
    index: usize,
    question: &Question,
    subject: &Subject,
) -> Finding {
    let from = ctx.workflow_time();
    let mut what = Query { tries: Some(TRIES), ..Query::from(subject.clone()) };
    let finding = loop {
        let call = Asked(question.operation.clone());
        let asked = ctx.execute_activity(call, what.clone(), question_options(question)).await;
        let to = ctx.workflow_time();
        let mut finding = asked.unwrap_or_else(|error| degraded(question, &error, Span { from, to }));
        // The job is paid for: whoever reads a report without its result must be able to find it.
        let earlier = what.job.take().filter(|_| finding.status.is_gap() && finding.data.is_none());
        finding.job = finding.job.or(earlier);
        match until(&finding, Span { from, to }) {
            Some(pause) => ctx.timer(pause).await,
            None => break finding,
        };
        what.job = finding.job;
    };
    ctx.state_mut(|state| state.steps[index].settle(&finding));
    finding
}

/// How long to wait before asking for the result of a job, if it is worth waiting for.
fn until(finding: &Finding, span: Span) -> Option<Duration> {
    let (Status::Pending, Some(_), Some(retry_at)) = (finding.status, &finding.job, finding.retry_at) else {
        return None;
    };
    let (from, to) = (span.from?, span.to?);
    let pause = SystemTime::from(retry_at).duration_since(to).unwrap_or_default().max(LOOK);
    (to.duration_since(from).unwrap_or_default() + pause <= JOBS).then_some(pause)
}

/// An operation by the name that the plan recorded, which the present catalog may no longer have.
struct Asked(String);

impl ActivityDefinition for Asked {
    type Input = Query;
    type Output = Finding;

    fn name(&self) -> &str {
        &self.0
    }
}

fn question_options(question: &Question) -> ActivityOptions {
    let timeouts =
        ActivityCloseTimeouts::ScheduleAndStartToClose { schedule_to_close: QUESTION, start_to_close: ATTEMPT };
    let retries = RetryPolicy::builder()
        .initial_interval(Duration::from_millis(500))
        .backoff_coefficient(2.0)
        .maximum_interval(Duration::from_secs(5))
        .maximum_attempts(ATTEMPTS)
        .build();
    ActivityOptions::with_close_timeouts(timeouts).retry_policy(retries).summary(question.answers.clone()).build()
}

fn desk_options(attempts: u32) -> LocalActivityOptions {
    let retries = RetryPolicy::builder().maximum_attempts(attempts).build();
    LocalActivityOptions::builder().retry_policy(retries).schedule_to_close_timeout(DESK).build()
}

/// The end of an investigation that never began, with the reason where the starter finds it.
fn refusal(error: &ActivityExecutionError) -> ApplicationFailure {
    let (type_name, message) = match error.failure() {
        Some(failure) => match &failure.failure_info {
            Some(FailureInfo::ApplicationFailureInfo(info)) => (info.r#type.clone(), failure.message.clone()),
            _ => (String::new(), failure.message.clone()),
        },
        None => (String::new(), error.to_string()),
    };
    let type_name = if type_name.is_empty() { "PlanningFailed".to_owned() } else { type_name };
    ApplicationFailure::builder(message).type_name(type_name).non_retryable(true).build()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use osint_activities::model::Job;

    use super::*;

    #[test]
    fn a_job_is_waited_for_as_long_as_there_is_time() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let pending = |retry_at: u64| Finding {
            job: Some(Job { id: "s_1".into(), started_at: at(0).try_into().expect("a time"), polls: 1 }),
            retry_at: Some(at(retry_at).try_into().expect("a time")),
            ..Finding::new("x", "x.y", Status::Pending)
        };
        let wait = |finding: &Finding, now: u64| until(finding, Span { from: Some(at(0)), to: Some(at(now)) });
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(wait(&pending(10), 3), seconds(7));
        assert_eq!(wait(&pending(10), 30), Some(LOOK), "a time that has passed");
        assert_eq!(wait(&pending(180), 175), seconds(5));
        assert_eq!(wait(&pending(181), 175), None, "the report is due");
        assert_eq!(wait(&Finding { job: None, ..pending(10) }, 3), None);
        assert_eq!(wait(&Finding { retry_at: None, ..pending(10) }, 3), None);
        assert_eq!(wait(&Finding { status: Status::Complete, ..pending(10) }, 3), None);
    }
}
