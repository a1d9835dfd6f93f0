import { Ago } from "@/components/Time";
import type { Agent } from "@/lib/api/client";
import styles from "./AgentList.module.css";

/** Agents: those that are there, and those that were. */
export function AgentList({ agents }: { agents: Agent[] }) {
  return (
    <ul className={styles.list}>
      {agents.map((agent) => (
        <li key={agent.agent_id} className={styles.agent}>
          <div className={styles.head}>
            <h2>{agent.name}</h2>
            <span className={agent.online ? styles.online : styles.offline}>
              <span className={styles.dot} aria-hidden="true" />
              {agent.online ? "online" : "offline"}
            </span>
          </div>
          <Slots agent={agent} />
          <dl className={styles.facts}>
            <div>
              <dt>Components</dt>
              <dd>{agent.components.length === 0 ? "none" : agent.components.join(", ")}</dd>
            </div>
            {Object.entries(agent.labels).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
            <div>
              <dt>Last heard of</dt>
              <dd>
                <Ago at={agent.last_seen_at} />
              </dd>
            </div>
            <div>
              <dt>Version</dt>
              <dd>{agent.version || "—"}</dd>
            </div>
          </dl>
        </li>
      ))}
    </ul>
  );
}

function Slots({ agent: { busy, slots } }: { agent: Agent }) {
  return (
    <p className={styles.slots}>
      <span className={styles.squares} aria-hidden="true">
        {slots <= 32 ? Array.from({ length: slots }, (_, index) => <span key={index} className={index < busy ? styles.busy : styles.free} />) : null}
      </span>
      {busy} of {slots} {slots === 1 ? "slot" : "slots"} in use
    </p>
  );
}
