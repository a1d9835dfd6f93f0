import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { LiveInstance, LiveKept, LiveStatus } from "@/lib/api/client";
import { changeText } from "@/lib/effects";
import { formatDuration, formatNumber } from "@/lib/format";

const STATES: Record<LiveInstance["state"], MessageDescriptor> = {
  idle: msg`original settings`,
  running: msg`trial runs`,
  kept: msg`kept settings`,
  stuck: msg`stuck`,
  stopped: msg`stopped by hand`,
};

/** Name the state of an instance. */
export function stateText(state: LiveInstance["state"]): string {
  return i18n._(STATES[state]);
}

const PHASES: Record<string, MessageDescriptor> = {
  reading: msg`reads the settings in force`,
  control: msg`watches the settings before the trial`,
  switch: msg`switches settings`,
  warm_up: msg`warms up, nothing counts yet`,
  block: msg`measures a block`,
  revert: msg`puts the old settings back`,
};

/** Say what a running trial does now; empty if that is unknown. */
export function phaseText({ phase, left }: Pick<LiveInstance, "phase" | "left">): string {
  const known = PHASES[phase];
  if (known === undefined) return "";
  const text = i18n._(known);
  return left > 0 ? t`${text}, ${formatDuration(left)} left` : text;
}

/** Return the trial whose settings an instance has: the one that kept them, or the one that runs. The last trial on an instance may have ended without effect. */
export function sourceOf({ state, instance, trial }: LiveInstance, kept: readonly LiveKept[]): number | null {
  if (state !== "kept") return trial;
  return kept.findLast((one) => one.in_force && one.instances.includes(instance))?.trial ?? trial;
}

/** Say why the settings of an instance are in force. */
export function whyText(instance: LiveInstance, { kept, rollout, details }: Pick<LiveStatus, "kept" | "rollout" | "details">): string {
  const { state, candidate, pairs, reason } = instance;
  const source = sourceOf(instance, kept);
  const number = source === null ? "" : String(source);
  switch (state) {
    case "running": {
      const which = candidate ? t`Candidate of trial ${number}, on trial` : t`Settings before trial ${number}, in turns with its candidate`;
      return pairs === 0 ? `${which}.` : t`${which}: ${formatNumber(pairs)} of at most ${formatNumber(details.most_pairs)} pairs.`;
    }
    case "kept": {
      const own = kept.find((one) => one.trial === source);
      return own?.effect == null ? t`Kept after trial ${number}, under guards.` : t`Kept after trial ${number}, which showed ${changeText(own.effect)}. Its guards still hold.`;
    }
    case "stuck":
      return t`The old settings could not be put back: ${reason}. Put them back by hand, then run trimtab-agent live clear there.`;
    case "stopped":
      return t`Somebody has run trimtab-agent live stop there. No trial begins before trimtab-agent live clear.`;
    case "idle":
      if (rollout?.held_back.includes(instance.instance) === true) return t`Held back with the settings of the start, for comparison.`;
      return reason === "" ? t`No trial has settings in force.` : t`No trial has settings in force. The last kept ones were taken back: ${reason}`;
  }
}
