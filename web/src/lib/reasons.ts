import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import { decisionText } from "./decisions";
import { changeText, intervalText } from "./effects";
import { formatGain, formatGainInterval, formatNumber, formatPercent, formatTime, unbroken } from "./format";
import { conditionText, type Condition } from "./verdicts";

/** The code of a reason and its values, as the service sends them with the sentence. */
export interface ReasonData {
  code: string;
  values: Record<string, unknown>;
}

/** Return a reason in the language of the console. English readers, and readers of a reason without a known code, see the service's sentence. */
export function reasonText(text: string, data: ReasonData | null): string {
  if (i18n.locale === "en" || data === null) return unbroken(text);
  const sentence = sentenceFor(data);
  // The code stands for the first line. Output of the application may follow it.
  return sentence === null ? text : [sentence, ...text.split("\n").slice(1)].join("\n");
}

/** Return the sentence for a code; null for a code that only a newer service has. */
function sentenceFor({ code, values }: ReasonData): string | null {
  const number = (name: string) => formatNumber(Number(values[name]));
  const word = (name: string) => {
    const value = values[name];
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  };
  switch (code) {
    case "joined": {
      const parts = (values.parts as ReasonData[]).map(sentenceFor);
      return parts.includes(null) ? null : parts.join(" ");
    }
    // Why trials wait.
    case "no_agent_online":
      return t`Waits for an agent: none is online.`;
    case "agents_drained":
      return t`Waits for an agent: the online agents are being drained and take no more trials.`;
    case "no_agent_with_component":
      return t`Waits for an agent with component ${word("component")}. The online agents offer: ${listed(values.offered)}.`;
    case "no_agent_with_digest":
      return t`Waits for an agent with digest ${word("digest")} of component ${word("component")}. The online agents have: ${listed(values.offered)}. The files of the component have changed: restore them, or create a new study.`;
    case "no_agent_with_application":
      return t`Waits for an agent whose component ${word("component")} has application ${word("application")}. The online agents have: ${listed(values.offered)}.`;
    case "agents_busy": {
      const agents = (values.agents as Busy[]).map(busy).join("; ");
      const more = Number(values.more);
      return more === 0 ? t`Waits for its turn: ${agents}.` : t`Waits for its turn: ${agents}; ${plural(more, { one: "# further agent is busy", other: "# further agents are busy" })}.`;
    }
    case "waits_for_times":
      return t`The last stage goes on at ${formatTime(new Date(word("at")))}: it is measured at another time.`;
    case "place_in_queue":
      return t`Its place in the queue is ${number("place")}.`;
    case "live_approval_waiting":
      return Number(values.approved) > 0
        ? t`This live trial waits until a second administrator approves its plan.`
        : t`This live trial waits until ${plural(Number(values.missing), { one: "an administrator approves", other: "# administrators approve" })} its plan.`;
    case "live_window_closed":
      return values.window === "window"
        ? t`This live trial waits: its change window opens at ${word("opens_at")}.`
        : t`This live trial waits: the window for restarts opens at ${word("opens_at")}.`;
    case "live_budget_used":
      return t`This live trial waits: budget ${word("budget")} allows ${number("limit")} ${word("metric")}, ${number("spent")} are used, and a trial that fails totally costs ${number("worst")}. The next period begins at ${word("until")}.`;
    case "live_job_budget_used":
      return t`This live trial waits: budget ${word("budget")} allows ${number("limit")} ${word("metric")}, ${number("spent")} are used, and a trial that fails totally costs ${number("worst")}. More jobs make room.`;
    case "live_next_job":
      return t`This live trial waits for jobs of its record on a submission host whose policy has matching.explore.`;
    case "live_few_jobs":
      return t`This live trial waits: record ${word("record")} has had ${number("jobs")} jobs in ${number("days")} days, and ${number("needed")} are needed at the present share of jobs.`;
    case "live_paused_few_jobs":
      return t`The study is paused: record ${word("record")} has had ${number("jobs")} jobs in ${number("days")} days, and ${number("needed")} are needed at the present share of jobs.`;
    case "live_declined":
      return values.reason === "" ? t`Its plan was declined.` : t`Its plan was declined: ${word("reason")}`;
    case "live_expired":
      return t`Its plan has expired: ${quoted(values)}`;
    case "plan_too_old":
      return t`It was valid for ${number("hours")} hours.`;
    case "plan_superseded":
      return t`Other settings have come into force.`;
    // Notices about live studies.
    case "live_of_trial":
      return values.reason === "" ? t`Trial ${number("trial")}.` : t`Trial ${number("trial")}: ${quoted(values)}`;
    case "live_would_change":
      return t`Trial ${number("trial")} would change ${listed(values.parameters)}.`;
    case "live_ratio":
      // eslint-disable-next-line lingui/no-unlocalized-strings -- marks alone
      return values.settings === "" ? `${ratioText(values)}.` : `${ratioText(values)}: ${word("settings")}.`;
    case "live_taken_back":
      return values.reason === "" ? t`Kept settings were taken back.` : t`Kept settings were taken back: ${word("reason")}`;
    case "live_instance_stuck":
      return t`The old settings could not be put back on ${word("instance")}: ${word("reason")}`;
    case "rollout_trial_ended":
      return t`Trial ${number("trial")} of the roll-out has ended: ${decisionText(word("decision"))}.`;
    // Notices about proven gains.
    case "gain_proven":
      return [`${t`better by ${formatGain(Number(values.gain))}`}${endsOf(values)}`, ...(values.conditions as Condition[]).map(conditionText)].join("; ");
    case "hypervolume_proven":
      return `${t`better in every objective: hypervolume ${formatGain(Number(values.gain))}`}${endsOf(values)}`;
    case "gains_of_contexts":
      return (values.parts as (ReasonData & { context: string })[]).map((part) => `${part.context}: ${sentenceFor(part) ?? ""}`).join("; ");
    case "channel_test":
      return t`${word("actor")} tests the channel to ${word("target")}.`;
    case "live_frozen":
      return t`${number("broken")} of ${number("settled")} live trials broke a guard, which is more than the study allows. Look at these trials, make the step smaller or a guard's time longer, and resume the study.`;
    case "live_watching":
      return t`The search is over. The kept settings are still rolled out or watched.`;
    case "rollout_over":
      return t`The roll-out of the kept settings is over.`;
    case "live_rolled_back":
      return t`The kept settings are no longer in force on all instances.`;
    case "live_exhausted":
      return t`Nothing new near the settings in force is safe enough.`;
    case "live_no_pair":
      return t`The trial has ended before its first pair of blocks.`;
    case "live_kept":
      return t`Settings of an earlier trial are kept on this system. Take them back with trimtab-agent live revert first.`;
    case "live_no_objective":
      return t`The objective has no reading above 0. A live study compares ratios.`;
    case "live_not_stored":
      return t`The supervisor of the trial could not write to its disk.`;
    case "live_unequal":
      return t`The instances have different settings, but a trial compares instances with equal settings.`;
    case "live_window":
      return t`The change window has ended before the trial could begin.`;
    case "policy_refuses":
      return t`The policy of an agent refuses the jobs: ${word("reason")} Change the policy or the study, and resume the study.`;
    case "live_old_agent":
      return t`The agent has sent no pairs of blocks: it is older than live studies. Install a newer one.`;
    case "live_no_value":
      return t`The agent has sent no readings of the metric ${word("metric")} in both blocks of a pair.`;
    // Why trials have no result.
    case "agent_silent":
      return t`Agent ${word("agent")} has stopped sending heartbeats.`;
    case "client_silent":
      return t`Client ${word("client")} has reported no result and has stopped sending heartbeats.`;
    case "client_too_slow":
      return t`Client ${word("client")} has reported no result within ${number("seconds")} s, the limit of a trial.`;
    case "study_ended":
      return values.state === "ABORTED" ? t`The study was aborted.` : t`The study was completed.`;
    case "search_over":
      return t`The search was over before the trial ran.`;
    case "not_needed":
      return t`The final check no longer needs the trial: its round is void, or enough was measured.`;
    case "round_agent_gone":
      return t`The agent that has begun the trial's round of the final check is gone.`;
    case "metric_not_finite":
      if (values.value === "NaN") return t`The metric ${word("metric")} is NaN.`;
      return values.value === "infinite" ? t`The metric ${word("metric")} is infinite.` : t`The metric ${word("metric")} is negative infinite.`;
    case "outside_new_ranges":
      return t`The ranges of the study were changed before the trial ran, and the trial lies outside the new ranges.`;
    case "application_failed":
      return t`The application ${ending(values.exit_code)}.`;
    case "listed_exit_code":
      return t`The application ended with exit code ${word("exit_code")}, by which the component reports a fault of the machine.`;
    case "killed":
      return t`A process of the trial was killed, and no limit of the trial explains it.`;
    case "failed_again": {
      const cause = reasonText(values.reason as string, values.cause as ReasonData | null);
      return t`Failed ${number("failures")} times, on machines where other configurations work: ${cause}`;
    }
    case "application_too_slow":
      return t`The application did not end within ${word("seconds")} s.`;
    case "build_failed":
      return t`Build: ${word("program")} ${ending(values.exit_code)}.`;
    case "build_too_slow":
      return t`The build did not end within ${word("seconds")} s.`;
    case "header_failed":
      return t`Preparation: ${word("program")} ${ending(values.exit_code)}.`;
    case "header_too_slow":
      return t`Preparation: ${word("program")} did not end within the trial's ${word("seconds")} s.`;
    case "out_of_memory":
      return t`Out of memory: a trial on this agent may use ${word("mebibytes")} MiB.`;
    // Trials of live systems.
    case "live_job_failed":
      return t`A job has failed with the candidate, and the other one of its pair has not.`;
    case "live_guard_broken":
      return guardText(values, word);
    case "live_guard_broken_before":
      return t`Already under the old settings: ${guardText(values, word)}`;
    case "live_not_applied":
      return t`The settings could not be applied; the old ones are in force.`;
    case "live_not_verified":
      return t`The settings in force could not be read, so nothing was changed.`;
    case "live_no_agent":
      return t`The agent or the trial's supervisor ended or did not answer; the old settings are in force.`;
    case "live_no_service":
      return t`The service was away for too long; the old settings are in force.`;
    case "live_stopped":
      return t`An administrator has stopped live trials on this instance.`;
    case "live_stuck":
      return t`The old settings could not be put back. Run trimtab-agent live status on the machine of the agent.`;
    // Why trials were pruned.
    case "ran_too_long":
      return t`It ran for longer than ${number("seconds")} s.`;
    case "ran_longer_than_default":
      return t`It ran for longer than the default's ${number("seconds")} s.`;
    case "ran_longer_than_estimate":
      return t`It ran for longer than ${number("seconds")} s, the estimate (${word("estimator")}) over earlier trials.`;
    case "worse_than_median":
      return t`At step ${number("step")} it was worse than the median of ${number("trials")} other trials.`;
    case "not_among_best":
      return t`At step ${number("step")} it was not among the best 1 in ${number("reduction")}.`;
    case "worse_than_best":
      return t`It is worse than the best trial over ${plural(Number(values.steps), { one: "# step", other: "# steps" })} (p = ${formatNumber(Number(values.p), 2)}).`;
    // Why searches ended, or studies are held up.
    case "budget_done":
      return t`All ${number("trials")} trials of the budget are done.`;
    case "time_over":
      return t`The time budget of ${number("seconds")} s is over.`;
    case "exhausted":
      return t`Every configuration of the space has been measured.`;
    case "nothing_measured":
      return t`Nothing was measured.`;
    case "trials_done":
      return plural(Number(values.trials), { one: "# trial is done.", other: "# trials are done." });
    case "seconds_passed":
      return t`${number("seconds")} s have passed.`;
    case "node_hours_used":
      return t`${number("hours")} node-hours are used.`;
    case "reference_reached":
      return t`The reference of ${number("value")} is reached.`;
    case "better_than_default":
      return t`The best is at least ${number("percent")} % better than the default.`;
    case "hardly_improves":
      if (values.of === "best") return t`The best has improved by less than ${number("percent")} % over ${number("trials")} trials.`;
      if (values.of === "median") return t`The median has improved by less than ${number("percent")} % over ${number("trials")} trials.`;
      return t`The average has improved by less than ${number("percent")} % over ${number("trials")} trials.`;
    case "few_configurations":
      return t`The last ${number("trials")} trials had ${plural(Number(values.configurations), { one: "# configuration", other: "# different configurations" })}.`;
    case "trials_are_close":
      return t`The last ${number("trials")} trials are close to each other.`;
    case "repeats_follow":
      return t`Before the search ends, the best are measured again.`;
    case "gain_below_noise":
      return t`The expected remaining gain is less than the noise of a measurement.`;
    case "no_room":
      return t`Fewer trials run at once than could: the tenant's limits leave no room for more.`;
    case "no_suggestion":
      return t`No suggestion could be computed: ${word("message")}`;
    case "drift":
      return t`The system has changed with ${word("context")} before trial ${number("trial")}: it is measured again.`;
    // Why a trial measures a configuration again.
    case "repeat_runs":
      return t`The resampling policy wants ${number("wanted")} runs of this configuration, which has ${number("runs")} so far.`;
    case "repeat_default":
      return t`The search ends with repeats: more runs of the default make the gain more certain.`;
    case "repeat_best":
      return t`The search ends with repeats: luck may have helped the best configuration, so it is measured again.`;
    case "repeat_worth":
      return t`The resampling policy expects more of another run of this configuration than of a new one.`;
    case "repeat_failed":
      return t`Trial ${number("trial")} of this configuration has failed, perhaps by a fault of the machine: it is tried again.`;
    case "repeat_exhausted":
      return t`All ${number("size")} configurations have been measured, this one first in trial ${number("trial")}. Only repeats are left.`;
    case "repeat_drawn":
      return t`${word("algorithm")} draws without regard to earlier trials, and has drawn the one of trial ${number("trial")} again.`;
    case "repeat_chosen":
      return t`${word("algorithm")} expects more of another run of the configuration of trial ${number("trial")} than of a new one.`;
    case "failures_in_row": {
      const cause = reasonText(values.reason as string, values.cause as ReasonData | null);
      return values.state === "INFEASIBLE"
        ? t`${number("trials")} trials in a row are infeasible for the same reason: ${cause} Remove the cause or exclude such configurations, and resume the study.`
        : t`${number("trials")} trials in a row have failed for the same reason: ${cause} Remove the cause or exclude such configurations, and resume the study.`;
    }
    // Why jobs get settings, or do not.
    case "record_proven":
      return t`Study ${word("study")} has proven the gain.`;
    case "record_for_its_user":
      return t`Until an administrator approves it, only jobs of its own user get the settings.`;
    case "record_needs_approval":
      return t`An administrator has to approve it.`;
    case "record_of_other":
      return t`It is for jobs of ${word("user")}, and ${word("owner")} has created the study.`;
    case "record_not_proven":
      return t`The verdict on study ${word("study")} no longer proves a gain.`;
    case "record_study_deleted":
      return t`Study ${word("study")} was deleted.`;
    case "record_approved_by":
      return t`${word("actor")} has approved it.`;
    case "record_withdrawn_by":
      return t`${word("actor")} has withdrawn it.`;
    case "record_restored_by":
      return t`${word("actor")} has restored it.`;
    case "record_kept":
      return t`Trial ${number("trial")} of live study ${word("study")} has kept its settings: ${ratioText(values)}.`;
    case "record_jobs_slower": {
      const share = (name: string) => formatPercent(Number(values[name]), 1);
      return t`Jobs with its settings took ${share("change")} longer than the controls (95 %: ${share("low")} to ${share("high")}; ${number("applied")} jobs with the settings, ${number("control")} controls, of ${plural(Number(values.users), { one: "# user", other: "# users" })}).`;
    }
    // Why other people's jobs do not get settings by themselves.
    case "record_disturbed":
      return t`Other processes disturbed ${number("disturbed")} of ${number("rounds")} rounds of the final check.`;
    case "record_injected":
      return t`The gain was measured under injected ${word("text")}.`;
    case "record_not_by_agents":
      return t`Not all of its runs were measured by agents.`;
    case "record_edited":
      return t`Its runs were made before an edit of the space, with other values than its own.`;
    case "record_check_stopped":
      return plural(Number(values.stopped), { one: "People have stopped # run of the final check.", other: "People have stopped # runs of the final check." });
    case "record_on_several_machines":
      return plural(Number(values.machines), { one: "Its runs were measured on # kind of machine.", other: "Its runs were measured on # kinds of machines." });
    // Why auto has chosen an algorithm: clauses without a full stop.
    case "grid_fits":
      return plural(Number(values.configurations), {
        one: "without noise, the budget is enough to measure the one configuration",
        other: "without noise, the budget is enough to measure each of # configurations once",
      });
    case "model_saves":
      return t`with ${plural(Number(values.objectives), { one: "one objective", other: "# objectives" })} and ${values.trials === null ? t`an unknown budget` : t`a budget of ${number("trials")} trials`}, a model of the measurements saves most of them`;
    case "model_saves_time":
      return t`with one objective and a budget of time, a model of the measurements saves most trials and prefers quick ones`;
    case "model_slow":
      return t`for ${size(values)}, a model of ${number("objectives")} objectives is too slow`;
    case "ga_depends":
      return t`for ${size(values)}, a model would cost more time than it saves; a genetic algorithm suits parameters that depend on others`;
    case "ga_at_once":
      return t`for ${size(values)}, a model would cost more time than it saves; a genetic algorithm learns from each trial at once`;
    case "cmaes_averages":
      return t`for ${size(values)}, a model would cost more time than it saves; CMA-ES averages noise over whole generations`;
    case "cmaes_adapts":
      return t`for ${size(values)}, a model would cost more time than it saves; CMA-ES adapts to the shape of the objective`;
    default:
      return null;
  }
}

/** A sentence that is part of another one. */
function quoted({ reason, cause }: Record<string, unknown>): string {
  return reasonText(reason as string, (cause ?? null) as ReasonData | null);
}

/** The interval of a gain, in brackets; empty if it is unknown. */
function endsOf(values: Record<string, unknown>): string {
  const interval = formatGainInterval(values as { low: number | null; high: number | null });
  return interval === null ? "" : ` (${t`interval: ${interval}`})`;
}

/** The ratio of the objective under the candidate and under the settings before, from pairs of blocks. */
function ratioText(values: Record<string, unknown>): string {
  const { effect, low, high, pairs } = values as { effect: number | null; low: number | null; high: number | null; pairs: number };
  if (effect === null) return t`nothing was measured`;
  const interval = intervalText(low, high);
  const change = interval === null ? changeText(effect) : t`${changeText(effect)} (95 %: ${interval})`;
  return plural(pairs, { one: `${change} in # pair`, other: `${change} in # pairs` });
}

interface Busy {
  agent: string;
  studies: string;
  more: number;
}

function busy({ agent, studies, more }: Busy): string {
  return more === 0 ? t`${agent} is busy with ${studies}` : t`${agent} is busy with ${studies} and ${more} more`;
}

function listed(names: unknown): string {
  return (names as string[]).join(", ") || t`nothing`;
}

/** Return a reason of several sentences without its first one; null for any other reason. */
export function withoutFirst(data: ReasonData | null): ReasonData | null {
  const parts = data?.code === "joined" ? (data.values.parts as ReasonData[]).slice(1) : [];
  // eslint-disable-next-line lingui/no-unlocalized-strings -- a code
  return parts.length === 0 ? null : { code: "joined", values: { parts } };
}

/** A negative exit code is the number of a signal. */
function ending(code: unknown): string {
  const value = Number(code);
  return value < 0 ? t`was ended by signal ${-value}` : t`ended with exit code ${value}`;
}

function size({ trials, at_once: parallel }: Record<string, unknown>): string {
  const long = typeof trials === "number" ? t`a budget of ${formatNumber(trials)} trials` : null;
  const wide = typeof parallel === "number" ? t`${formatNumber(parallel)} trials at once` : null;
  return long !== null && wide !== null ? t`${long} and ${wide}` : (long ?? wide ?? "");
}

/** A broken guard of a live system: its reading is missing, or was beyond the limit for some seconds. */
function guardText(values: Record<string, unknown>, word: (name: string) => string): string {
  if (values.value === "none") return t`Guard ${word("guard")}: ${word("metric")} had no reading.`;
  return t`Guard ${word("guard")}: ${word("metric")} was ${word("value")} for ${word("seconds")} s, and its limit is ${word("limit")}.`;
}
