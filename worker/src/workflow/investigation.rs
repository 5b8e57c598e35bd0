//! The investigation of one company. It asks all applicable questions at once; one that fails does not stop the others.

#![allow(missing_docs, reason = "the SDK's macros make constants that cannot be documented")]

use std::time::{Duration, SystemTime};

use osint_activities::model::{Finding, Job, Query, Status, Subject};
use temporalio_common::{
    ActivityCloseTimeouts, ActivityDefinition, RetryPolicy,
    error::{ActivityExecutionError, ApplicationFailure},
    protos::temporal::api::failure::v1::failure::FailureInfo,
};
use temporalio_sdk::{
    ActivityOptions, LocalActivityOptions, TimerResult, WorkflowContext, WorkflowContextView, WorkflowResult,
    WorkflowTermination, workflows::join_all,
};
use temporalio_workflow::{workflow, workflow_methods};

use super::{
    attributes::{DEGRADED_BY, VERDICT, degraded_by, word},
    degraded::{CANCELLED, Span, degraded},
    input::InvestigationInput,
    planning::{BreakerFilter, FirstRound, PlanningActivities},
};
use crate::report::{Plan, Question, Report, Step, insight::Verdict};

/// Time for one attempt. It is longer than every upstream's own timeout, so the breaker judges a slow upstream first.
const ATTEMPT: Duration = Duration::from_secs(60);

/// Time for one question with all its attempts and waits. After that the report goes out without the answer.
const QUESTION: Duration = Duration::from_secs(150);

/// Attempts per question before the workflow gives a failing source up. Its breaker may end them earlier.
const TRIES: u32 = 3;

/// Attempts in all, refusals included. A source with a rate limit may refuse often while many investigations ask it. A
/// refusal by our own limit is free, and `QUESTION` bounds the time.
const ATTEMPTS: u32 = 100;

/// Time in all to wait for a job that a source is still working on. After that the question stays pending in the report,
/// with the job's id and the time at which to ask for the result.
const JOBS: Duration = Duration::from_secs(180);

/// The least time between two polls of a job, even if the clocks of the worker and the server differ.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Planning takes milliseconds. This limit only ends a worker that hangs.
const PLANNING: Duration = Duration::from_secs(10);

/// Investigates a company and reports. Fails only for a subject that cannot be investigated at all.
#[workflow]
#[derive(Default)]
pub struct InvestigationWorkflow {
    steps: Vec<Step>,
    /// All questions so far.
    plan: Option<Plan>,
    /// Their findings, in the order of the questions. `None` until there is one.
    findings: Vec<Option<Finding>>,
}

#[workflow_methods]
impl InvestigationWorkflow {
    /// Plans, asks everything that applies, plans again with what the registers answered, asks the rest, and reports. The
    /// findings keep the order of the plans. A cancelled investigation ends as cancelled, with the report so far as its
    /// details.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>, input: InvestigationInput) -> WorkflowResult<Report> {
        let InvestigationInput { subject, earlier } = input;
        let planned = ctx.execute_local_activity(PlanningActivities::plan, subject, planning_options(3)).await;
        let mut plan = planned.map_err(|error| refused(&error))?;
        let mut findings = ask_all(ctx, &plan, &plan, &earlier).await;
        let cancelled = |findings: &[Finding]| {
            let cut = findings.iter().any(|finding| finding.reason.as_deref() == Some(CANCELLED));
            // Older investigations went on after a cancellation. Their histories replay as they were.
            cut && ctx.cancellation_token().is_cancelled() && ctx.patched("cancellation-ends-it")
        };
        if cancelled(&findings) {
            return Err(cut_short(ctx, plan, findings));
        }
        if !plan.deferred.is_empty() {
            let first = FirstRound { plan: plan.clone(), findings: findings.clone() };
            // Without a second plan the deferred questions stay unasked, and the report says so.
            if let Ok(further) =
                ctx.execute_local_activity(PlanningActivities::replan, first, planning_options(3)).await
            {
                plan.questions.extend(further.questions.iter().cloned());
                plan = Plan { questions: plan.questions, ..further.clone() };
                findings.extend(ask_all(ctx, &further, &plan, &earlier).await);
            }
        }
        if cancelled(&findings) {
            return Err(cut_short(ctx, plan, findings));
        }
        let filter = BreakerFilter::of(&plan);
        // The report is useful without the breakers' states.
        let breakers = ctx.execute_local_activity(PlanningActivities::read_breakers, filter, planning_options(1)).await;
        let report = Report::new(ctx.workflow_id(), plan, findings, breakers.unwrap_or_default());
        index(ctx, &report);
        Ok(report)
    }

    /// Live progress, question by question.
    #[query]
    pub fn progress(&self, _ctx: &WorkflowContextView) -> Vec<Step> {
        self.steps.clone()
    }

    /// The report with the answers so far. Questions without one are pending. `None` before there is a plan.
    #[query]
    pub fn report_so_far(&self, ctx: &WorkflowContextView) -> Option<Report> {
        let plan = self.plan.clone()?;
        let findings = plan.questions.iter().zip(&self.findings).map(|(question, finding)| {
            let waiting = || Finding::new(&question.source, &question.operation, Status::Pending);
            finding.clone().unwrap_or_else(|| waiting().because("not answered yet"))
        });
        let findings = findings.collect();
        Some(Report::new(ctx.workflow_id(), plan, findings, Vec::new()))
    }
}

/// Asks all questions of `round` at once, or takes an earlier answer over. `plan` has the questions of all rounds.
async fn ask_all(
    ctx: &WorkflowContext<InvestigationWorkflow>,
    round: &Plan,
    plan: &Plan,
    earlier: &[Finding],
) -> Vec<Finding> {
    let before = ctx.state_mut(|state| {
        let before = state.steps.len();
        state.steps.extend(round.questions.iter().map(Step::asking));
        state.findings.resize(state.steps.len(), None);
        state.plan = Some(plan.clone());
        before
    });
    let questions = round.questions.iter().enumerate();
    let asked = questions.map(|(n, question)| async move {
        let known = earlier.iter().find(|finding| finding.operation == question.operation);
        let finding = match known {
            Some(finding) if finding.status != Status::Pending => finding.clone(),
            // A job that was paid for is collected, not started again.
            pending => ask(ctx, question, &round.subject, pending.and_then(|finding| finding.job.clone())).await,
        };
        ctx.state_mut(|state| {
            state.steps[before + n].settle(&finding);
            state.findings[before + n] = Some(finding.clone());
        });
        finding
    });
    join_all(asked).await
}

/// The end of a cancelled investigation, with what was learnt until then.
fn cut_short(ctx: &WorkflowContext<InvestigationWorkflow>, plan: Plan, findings: Vec<Finding>) -> WorkflowTermination {
    let report = Report::new(ctx.workflow_id(), plan, findings, Vec::new());
    index(ctx, &report);
    WorkflowTermination::cancelled_with_details(report)
}

/// Makes the investigation findable by its verdict, if the server knows the attributes.
fn index(ctx: &WorkflowContext<InvestigationWorkflow>, report: &Report) {
    if ctx.search_attributes().get(&VERDICT).is_some() {
        let verdict = word(Verdict::of(&report.coverage).word).to_owned();
        ctx.upsert_search_attributes([VERDICT.value_set(verdict), DEGRADED_BY.value_set(degraded_by(report))]);
    }
}

/// Asks one question and waits for its outcome. Every error becomes a finding.
async fn ask(
    ctx: &WorkflowContext<InvestigationWorkflow>,
    question: &Question,
    subject: &Subject,
    job: Option<Job>,
) -> Finding {
    let from = ctx.workflow_time();
    let mut what = Query { tries: Some(TRIES), job, ..Query::from(subject.clone()) };
    loop {
        let call = OperationActivity(question.operation.clone());
        let asked = ctx.execute_activity(call, what.clone(), question_options(question)).await;
        let to = ctx.workflow_time();
        let mut finding = asked.unwrap_or_else(|error| degraded(question, &error, Span { from, to }));
        // The job is paid for. If the report has no result, its reader needs the job's id to fetch it.
        let earlier = what.job.take().filter(|_| finding.status.is_gap() && finding.data.is_none());
        finding.job = finding.job.or(earlier);
        let Some(pause) = next_poll(&finding, Span { from, to }) else { return finding };
        if matches!(ctx.timer(pause).await, TimerResult::Cancelled) {
            return finding.because(CANCELLED);
        }
        what.job = finding.job;
    }
}

/// How long to wait before the next poll of a job; `None` if there is no job or no time left.
fn next_poll(finding: &Finding, span: Span) -> Option<Duration> {
    let (Status::Pending, Some(_), Some(retry_at)) = (finding.status, &finding.job, finding.retry_at) else {
        return None;
    };
    let (from, to) = (span.from?, span.to?);
    let pause = SystemTime::from(retry_at).duration_since(to).unwrap_or_default().max(POLL_INTERVAL);
    (to.duration_since(from).unwrap_or_default() + pause <= JOBS).then_some(pause)
}

/// An operation by the name in the plan. The worker's catalog may no longer have it.
struct OperationActivity(String);

impl ActivityDefinition for OperationActivity {
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

fn planning_options(attempts: u32) -> LocalActivityOptions {
    let retries = RetryPolicy::builder().maximum_attempts(attempts).build();
    LocalActivityOptions::builder().retry_policy(retries).schedule_to_close_timeout(PLANNING).build()
}

/// The failure of an investigation whose subject was refused. The starter reads the reason from it.
fn refused(error: &ActivityExecutionError) -> ApplicationFailure {
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

    use super::*;

    #[test]
    fn a_job_is_polled_until_its_time_is_up() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let pending = |retry_at: u64| Finding {
            job: Some(Job { id: "s_1".into(), started_at: at(0).try_into().expect("a time"), polls: 1 }),
            retry_at: Some(at(retry_at).try_into().expect("a time")),
            ..Finding::new("x", "x.y", Status::Pending)
        };
        let wait = |finding: &Finding, now: u64| next_poll(finding, Span { from: Some(at(0)), to: Some(at(now)) });
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(wait(&pending(10), 3), seconds(7));
        assert_eq!(wait(&pending(10), 30), Some(POLL_INTERVAL), "a time that has passed");
        assert_eq!(wait(&pending(180), 175), seconds(5));
        assert_eq!(wait(&pending(181), 175), None, "the report is due");
        assert_eq!(wait(&Finding { job: None, ..pending(10) }, 3), None);
        assert_eq!(wait(&Finding { retry_at: None, ..pending(10) }, 3), None);
        assert_eq!(wait(&Finding { status: Status::Complete, ..pending(10) }, 3), None);
    }
}
