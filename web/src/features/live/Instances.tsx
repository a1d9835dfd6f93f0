import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";
import { Badge } from "@/components/Badge";
import { Ago } from "@/components/Time";
import type { Configuration, LiveInstance, LiveStatus } from "@/lib/api/client";
import { useNow } from "@/lib/clock";
import { formatValue } from "@/lib/format";
import { Guards } from "./Guards";
import { phaseText, sourceOf, stateText, whyText } from "./texts";
import styles from "./live.module.css";

// eslint-disable-next-line lingui/no-unlocalized-strings -- names of tones
const TONES = { idle: "soft", running: "accent", kept: "good", stuck: "bad", stopped: "warn" } as const;
// Milliseconds after which an agent counts as silent: it reports each second while settings of a trial may be in force.
const SILENT = 15_000;

interface Props {
  status: LiveStatus;
  link: (number: number, text: string) => ReactNode;
}

/** Show what is in force on each instance, and why, with its guards. */
export function Instances({ status, link }: Props) {
  if (status.instances.length === 0) return <NotSwitched status={status} />;
  return (
    <ul className={styles.instances}>
      {status.instances.map((one) => (
        <Instance key={`${one.agent} ${one.component} ${one.instance}`} instance={one} status={status} link={link} />
      ))}
    </ul>
  );
}

function Instance({ instance, status, link }: { instance: LiveInstance } & Props) {
  const { state, settings } = instance;
  const trial = sourceOf(instance, status.kept);
  const isInForce = state === "running" || state === "kept";
  const phase = state === "running" ? phaseText(instance) : "";
  const text = whyText(instance, status);
  const shown = Object.keys(settings).length > 0 ? settings : state === "idle" ? status.original : settings;
  return (
    <li className={state === "stuck" ? `${styles.instance} ${styles.stuck}` : styles.instance}>
      <header>
        <h3>{instance.instance}</h3>
        <Badge tone={TONES[state]} alive={state === "running"}>
          {instance.candidate && state === "running" ? t`candidate in force` : stateText(state)}
        </Badge>
        {trial === null ? null : <span className={styles.soft}>{link(trial, t`Trial ${String(trial)}`)}</span>}
      </header>
      <p>{text}</p>
      {phase === "" ? null : <p className={styles.soft}>{t`Now: ${phase}.`}</p>}
      {instance.revert_at === null ? null : <Wanted instance={instance} />}
      <Settings values={shown} original={status.original} />
      {instance.guards.length === 0 ? null : <Guards guards={instance.guards} />}
      {isInForce ? <Report instance={instance} /> : null}
    </li>
  );
}

/** Show settings; those that differ from the original ones are marked and say what was there before. */
function Settings({ values, original }: { values: Configuration; original: Configuration }) {
  const names = Object.keys(values);
  if (names.length === 0) return null;
  return (
    <dl className={styles.settings} aria-label={t`Settings in force`}>
      {names.map((name) => {
        const [now, before] = [formatValue(values[name]), formatValue(original[name])];
        return (
          <div key={name} className={now === before ? undefined : styles.changed}>
            <dt>{name}</dt>
            <dd>
              {now}
              {now === before ? null : <span className={styles.soft}> {t`(originally ${before})`}</span>}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function Wanted({ instance }: { instance: LiveInstance }) {
  const { agent, revert_at: at } = instance;
  return (
    <p className={styles.wanted} role="status">
      {at === null ? null : (
        <Trans>
          The old settings were asked for <Ago at={at} />. Agent {agent} puts them back when it answers next.
        </Trans>
      )}
    </p>
  );
}

function Report({ instance: { agent, seen_at: at } }: { instance: LiveInstance }) {
  const silent = useNow(2000).getTime() - Date.parse(at) > SILENT;
  return silent ? (
    <p className={styles.wanted}>
      <Trans>
        Agent {agent} was heard of <Ago at={at} />, so this may be out of date. Without the service, guards go on. On its machine: <code>trimtab-agent live revert</code>
      </Trans>
    </p>
  ) : (
    <p className={styles.soft}>{t`Reported by agent ${agent} each second.`}</p>
  );
}

function NotSwitched({ status }: { status: LiveStatus }) {
  const ofJobs = status.jobs !== null && status.jobs !== undefined;
  return (
    <div className={styles.single}>
      <p>{ofJobs ? t`Jobs that match the record get these settings. One job of each pair gets the candidate.` : t`No trial has switched an instance yet. Agents report what is in force from the first trial on.`}</p>
      <Settings values={status.in_force} original={status.in_force} />
      {status.known || ofJobs ? null : <p className={styles.soft}>{t`These are the component’s defaults: no trial has read the settings yet.`}</p>}
    </div>
  );
}
