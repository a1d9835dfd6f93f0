import { plural, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { Tags } from "@/components/Badge";
import { Ago } from "@/components/Time";
import type { Agent } from "@/lib/api/client";
import { useNow } from "@/lib/clock";
import { formatDuration, formatNumber } from "@/lib/format";
import { AgentActions } from "./AgentActions";
import styles from "./AgentList.module.css";
import { Installables } from "./Installable";

interface Props {
  agents: Agent[];
  /** Whether the user may change agents. */
  mayChange: boolean;
  trial: (study: string, number: number) => ReactNode;
  component: (name: string) => ReactNode;
}

/** A list of agents, online and offline. */
export function AgentList({ agents, mayChange, trial, component }: Props) {
  return (
    <ul className={styles.list}>
      {agents.map((agent) => (
        <li key={agent.agent_id} className={styles.agent}>
          <div className={styles.head}>
            <h2>{agent.name}</h2>
            <State agent={agent} />
          </div>
          <Tags tags={Object.entries(agent.labels).map(([name, value]) => `${name}: ${value}`)} />
          <Slots agent={agent} />
          {agent.running.length === 0 ? null : <Running agent={agent} trial={trial} />}
          <dl className={styles.facts}>
            <div>
              <dt>{t`Components`}</dt>
              <dd>
                {agent.components.length === 0
                  ? t`none`
                  : agent.components.map((name, index) => (
                      <span key={name}>
                        {index > 0 ? ", " : ""}
                        {component(name)}
                      </span>
                    ))}
              </dd>
            </div>
            <div>
              <dt>{t`Policy`}</dt>
              <dd>
                <Policy policy={agent.policy} />
              </dd>
            </div>
            <div>
              <dt>{t`Last contact`}</dt>
              <dd>
                <Ago at={agent.last_seen_at} />
              </dd>
            </div>
            <div>
              <dt>{t`Registered`}</dt>
              <dd>
                <Ago at={agent.registered_at} />
              </dd>
            </div>
            <div>
              <dt>{t`Version`}</dt>
              <dd>{agent.version || "—"}</dd>
            </div>
          </dl>
          {mayChange && agent.installable.length > 0 ? <Installables agent={agent} /> : null}
          {mayChange ? <AgentActions agent={agent} /> : null}
        </li>
      ))}
    </ul>
  );
}

function State({ agent: { online, draining, busy } }: { agent: Agent }) {
  const text = !online ? t`offline` : !draining ? t`online` : busy === 0 ? t`drained` : t`draining`;
  return (
    <span className={!online ? styles.offline : draining ? styles.draining : styles.online}>
      <span className={styles.dot} aria-hidden="true" />
      {text}
    </span>
  );
}

function Slots({ agent: { busy, slots } }: { agent: Agent }) {
  return (
    <p className={styles.slots}>
      <span className={styles.squares} aria-hidden="true">
        {slots <= 32 ? Array.from({ length: slots }, (_, index) => <span key={index} className={index < busy ? styles.busy : styles.free} />) : null}
      </span>
      {t`${formatNumber(busy)} of ${plural(slots, { one: "# slot", other: "# slots" })} in use`}
    </p>
  );
}

function Running({ agent, trial }: Pick<Props, "trial"> & { agent: Agent }) {
  const now = useNow(1000);
  return (
    <ul className={styles.running} aria-label={t`Trials on ${agent.name}`}>
      {agent.running.map(({ study, number, node, attempt, granted_at, started_at }) => {
        const since = Math.max(0, Math.floor((now.getTime() - new Date(started_at ?? granted_at).getTime()) / 1000));
        return (
          <li key={`${study}/${number}`}>
            <span>{trial(study, number)}</span>
            <span className={styles.since}>
              {[
                node === "" || node === agent.name ? "" : t`on ${node}`,
                attempt > 1 ? t`attempt ${attempt}` : "",
                started_at === null ? t`preparing for ${formatDuration(since)}` : t`running for ${formatDuration(since)}`,
              ]
                .filter((part) => part !== "")
                .join(", ")}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** Show what the administrator of the machine allows the service to run, as the policy file states it. */
function Policy({ policy }: { policy: Record<string, string> }) {
  // Rules for the jobs of submission hosts do not limit trials; the page on matching shows them.
  const rules = Object.entries(policy).filter(([rule]) => !rule.startsWith("matching."));
  if (rules.length === 0) return <>{t`everything that it offers`}</>;
  return (
    <ul>
      {rules.map(([rule, allowed]) => (
        <li key={rule}>
          <code>{rule}</code> {allowed}
        </li>
      ))}
    </ul>
  );
}
