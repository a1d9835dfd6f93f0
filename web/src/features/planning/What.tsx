import { Card } from "@/components/Card";
import { SelectField } from "@/components/Field";
import type { Component, Plan } from "@/lib/api/client";
import type { Fault } from "./faults";
import { messageFor } from "./faults";
import styles from "./planning.module.css";
import { textOf } from "./values";
import type { Draft } from "./useDraft";

interface Props {
  draft: Draft;
  components: readonly Component[];
  agents: Plan["agents"] | undefined;
  fault: Fault | null;
  /** What follows from another component: its parameters and metrics are others. */
  onComponent: (name: string) => void;
}

/** What is tuned: a component that agents offer, with one of its applications, or something that a script measures. */
export function What({ draft, components, agents, fault, onComponent }: Props) {
  const component = textOf(draft.file.component);
  const chosen = components.find(({ name }) => name === component);
  const versions = chosen?.versions ?? [];
  const digest = textOf(draft.file.digest);
  const applications = [...new Set(versions.filter((one) => digest === "" || one.digest === digest).flatMap((one) => one.applications))];
  const application = textOf(draft.file.application);
  return (
    <Card title="What is tuned">
      <div className={styles.stack}>
        <div className={styles.grid}>
          <SelectField label="Component" value={component} error={messageFor(fault, "component")} onChange={(event) => onComponent(event.target.value)}>
            <option value="">none: a script asks and tells</option>
            {components
              .filter(({ versions: offered }) => offered.length > 0)
              .map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            {component !== "" && versions.length === 0 ? <option value={component}>{component} (no agent offers it)</option> : null}
          </SelectField>
          {component === "" ? null : (
            <>
              <SelectField
                label="Application"
                value={application}
                error={messageFor(fault, "application")}
                onChange={(event) => draft.set(["application"], event.target.value || undefined)}
              >
                <option value="">{applications[0] === undefined ? "its first" : `its first, ${applications[0]}`}</option>
                {applications.map((name) => (
                  <option key={name}>{name}</option>
                ))}
                {application === "" || applications.includes(application) ? null : <option>{application}</option>}
              </SelectField>
              <SelectField
                label="Version"
                value={digest}
                error={messageFor(fault, "digest")}
                onChange={(event) => draft.set(["digest"], event.target.value || undefined)}
              >
                <option value="">whichever an agent has</option>
                {versions.map((version) => (
                  <option key={version.digest} value={version.digest}>
                    {version.digest.slice(0, 12)} ({version.agents.map(({ name }) => name).join(", ")})
                  </option>
                ))}
              </SelectField>
            </>
          )}
        </div>
        {versions[0]?.description ? <p className={styles.soft}>{versions[0].description}</p> : null}
        {component === "" ? (
          <p className={styles.soft}>Your script asks for configurations, measures them itself and tells the results. It needs no agent.</p>
        ) : (
          <Able agents={agents} />
        )}
      </div>
    </Card>
  );
}

/** Which agents can run the trials, and why the others cannot. */
export function Able({ agents }: { agents: Plan["agents"] | undefined }) {
  if (agents === undefined) return null;
  const able = agents.filter(({ obstacle }) => obstacle === "");
  return (
    <div className={styles.stack}>
      <p className={able.length === 0 ? styles.error : undefined}>
        {able.length === 0
          ? "No agent can run it now: its trials would wait until one can."
          : `${able.length === 1 ? "1 agent" : `${able.length} agents`} can run it.`}
      </p>
      <ul className={styles.agents}>
        {agents.map(({ agent_id, name, obstacle, free }) => (
          <li key={agent_id}>
            <b>{name}</b>{" "}
            {obstacle === "" ? (
              <span className={styles.good}>
                can, {free} {free === 1 ? "slot is" : "slots are"} free
              </span>
            ) : (
              <span className={styles.soft}>{obstacle}</span>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
