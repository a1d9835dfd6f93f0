import { plural, t } from "@lingui/core/macro";
import { Card } from "@/components/Card";
import { SelectField } from "@/components/Field";
import type { Component, Plan } from "@/lib/api/client";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import { textOf } from "@/lib/values";
import type { Draft } from "./useDraft";

interface Props {
  draft: Draft;
  components: readonly Component[];
  agents: Plan["agents"] | undefined;
  /** What follows from another component: its parameters and metrics are others. */
  onComponent: (name: string) => void;
}

/** What is tuned: a component that agents offer, with one of its applications, or something that a script measures. */
export function What({ draft, components, agents, onComponent }: Props) {
  const component = textOf(draft.file.component);
  const chosen = components.find(({ name }) => name === component);
  const versions = chosen?.versions ?? [];
  const digest = textOf(draft.file.digest);
  const applications = [...new Set(versions.filter((one) => digest === "" || one.digest === digest).flatMap((one) => one.applications))];
  const application = textOf(draft.file.application);
  return (
    <Card title={t`What is tuned`}>
      <div className={styles.stack}>
        <div className={styles.grid}>
          <FaultAt at="component">
            {(error) => (
              <SelectField label={t`Component`} value={component} error={error} onChange={(event) => onComponent(event.target.value)}>
                <option value="">{t`none: a script asks and tells`}</option>
                {components
                  .filter(({ versions: offered }) => offered.length > 0)
                  .map(({ name }) => (
                    <option key={name}>{name}</option>
                  ))}
                {component !== "" && versions.length === 0 ? <option value={component}>{t`${component} (no agent offers it)`}</option> : null}
              </SelectField>
            )}
          </FaultAt>
          {component === "" ? null : (
            <>
              <FaultAt at="application">
                {(error) => (
                  <SelectField
                    label={t`Application`}
                    value={application}
                    error={error}
                    onChange={(event) => draft.set(["application"], event.target.value || undefined)}
                  >
                    <option value="">{applications[0] === undefined ? t`its first` : t`its first, ${applications[0]}`}</option>
                    {applications.map((name) => (
                      <option key={name}>{name}</option>
                    ))}
                    {application === "" || applications.includes(application) ? null : <option>{application}</option>}
                  </SelectField>
                )}
              </FaultAt>
              <FaultAt at="digest">
                {(error) => (
                  <SelectField
                    label={t`Version`}
                    value={digest}
                    error={error}
                    onChange={(event) => draft.set(["digest"], event.target.value || undefined)}
                  >
                    <option value="">{t`whichever an agent has`}</option>
                    {versions.map((version) => (
                      <option key={version.digest} value={version.digest}>
                        {version.digest.slice(0, 12)} ({version.agents.map(({ name }) => name).join(", ")})
                      </option>
                    ))}
                  </SelectField>
                )}
              </FaultAt>
            </>
          )}
        </div>
        {versions[0]?.description ? <p className={styles.soft}>{versions[0].description}</p> : null}
        {component === "" ? (
          <p className={styles.soft}>{t`Your script asks for configurations, measures them itself and tells the results. It needs no agent.`}</p>
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
          ? t`No agent can run it now: its trials would wait until one can.`
          : plural(able.length, { one: "# agent can run it.", other: "# agents can run it." })}
      </p>
      <ul className={styles.agents}>
        {agents.map(({ agent_id, name, obstacle, free }) => (
          <li key={agent_id}>
            <b>{name}</b>{" "}
            {obstacle === "" ? (
              <span className={styles.good}>{plural(free, { one: "can, # slot is free", other: "can, # slots are free" })}</span>
            ) : (
              <span className={styles.soft}>{obstacle}</span>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
