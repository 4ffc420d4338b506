//! The plan of a mission: its tasks are fired one after the other; one without a command is somebody's to do.

use super::{GoOutcome, GoStanding, MissionDriver, RoundStep};
use crate::base::{Result, text};
use crate::op::job::{JobView, MissionStep};
use crate::op::kernel::with_view;
use crate::op::mission::MissionEnd;
use crate::op::mission::plan::{FirePlannedRequest, fire_as};
use crate::policy::mission::{self, PLAN_STEP, TakeUp};
use crate::state::Entity;

impl MissionDriver<'_> {
    /// Refuses a mission that has neither a plan nor a runner.
    pub(super) fn check_has_work(&self, mission: &Entity) -> Result<()> {
        let has_plan = mission.as_mission().plan().next().is_some();
        if has_plan { Ok(()) } else { self.command(RoundStep::Run).map(drop) }
    }

    /// The task of the plan that failed in this round. One whose command never started has no result.
    pub(super) fn failed_step(&self, mission: &Entity) -> Result<Option<JobView>> {
        let failed = with_view(self.vault, |_, state| Ok(mission::failed_step(state, mission)))?;
        let failed = failed.map(|job| self.check_job(&job.subject)).transpose()?;
        match failed {
            Some(job) if self.never_started(&job)? => Ok(None),
            failed => Ok(failed),
        }
    }

    /// Whether the work needs a new round: the first one, or one after a job that its agent fired and that failed.
    pub(super) fn needs_round(&self, mission: &Entity) -> Result<bool> {
        with_view(self.vault, |_, state| {
            let is_step = mission::failed_step(state, mission).is_some();
            Ok(mission.as_mission().round() == 0 || mission::needs_round(state, mission) && !is_step)
        })
    }

    /// Ends the call if the next task of the plan cannot be fired.
    pub(super) fn hand_over(&self, task: &Entity) -> Result<Option<GoOutcome>> {
        let name = task.name();
        let take_up = with_view(self.vault, |_, state| Ok(mission::take_up(state, task)))?;
        let (standing, summary) = match take_up {
            TakeUp::Go | TakeUp::Fire => return Ok(None),
            TakeUp::Claim => (GoStanding::HandedOver, format!("{name} has no command; claim it")),
            TakeUp::Explain if mission::waits_for_approval(task) => {
                (GoStanding::WaitsForApproval, format!("{name} waits for approval"))
            }
            TakeUp::Show | TakeUp::Explain => (GoStanding::HandedOver, format!("{name} is {}", task.phase)),
        };
        self.outcome(standing, Some(summary), None).map(Some)
    }

    /// Fires the command of a task, as a step of this round.
    pub(super) fn fire_planned(&mut self, mission: &Entity, task: &Entity) -> Result<()> {
        let request = FirePlannedRequest { reference: task.subject.to_string() };
        let step = MissionStep { mission: mission.subject.id().to_owned(), step: PLAN_STEP };
        let warnings = fire_as(&self.ctx, request, Some(step)).map(|done| done.recorded.warnings);
        self.unless_over(warnings)
    }

    /// Whether the plan is all the work, because there is no runner.
    pub(super) fn is_plan_all(&self, mission: &Entity) -> Result<bool> {
        let has_plan = mission.as_mission().plan().next().is_some();
        Ok(has_plan && self.configured_command(RoundStep::Run)?.is_none())
    }

    /// Whether the work is done, as it is now.
    pub(super) fn may_pass(&self) -> Result<bool> {
        let mission = self.current()?;
        with_view(self.vault, |_, state| Ok(mission::check_may_pass(state, &mission).is_ok()))
    }

    /// Passes a mission whose plan is done. With the last task it did not pass, since there was a runner then.
    pub(super) fn finish_plan(&mut self, mission: &Entity) -> Result<()> {
        let count = text::count_noun(mission.as_mission().plan().count() as u64, "planned task");
        self.finish(mission, MissionEnd::Passed, format!("{count} succeeded"))
    }
}
