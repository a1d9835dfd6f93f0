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
  /** Called when another component is chosen, which has other parameters and metrics. */
  onComponent: (name: string) => void;
}

/** Choose a component that agents offer and one of its applications, or measurement by the user's own script. */
export function What({ draft, components, agents, onComponent }: Props) {
  const component = textOf(draft.file.component);
  const chosen = components.find(({ name }) => name === component);
  const versions = chosen?.versions ?? [];
  const digest = textOf(draft.file.digest);
  const applications = [...new Set(versions.filter((one) => digest === "" || one.digest === digest).flatMap((one) => one.applications))];
  const application = textOf(draft.file.application);
  return (
    <Card title={t`Component and application`}>
      <div className={styles.stack}>
        <div className={styles.grid}>
          <FaultAt at="component">
            {(error) => (
              <SelectField label={t`Component`} value={component} error={error} onChange={(event) => onComponent(event.target.value)}>
                <option value="">{t`none (your own script measures)`}</option>
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
                    <option value="">{applications[0] === undefined ? t`first application` : t`first application: ${applications[0]}`}</option>
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
                    <option value="">{t`any version`}</option>
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
          <p className={styles.soft}>{t`Your script requests configurations, measures them and reports the results. It needs no agent.`}</p>
        ) : (
          <Able agents={agents} />
        )}
      </div>
    </Card>
  );
}

/** Show which agents can run the trials, and why the others cannot. */
export function Able({ agents }: { agents: Plan["agents"] | undefined }) {
  if (agents === undefined) return null;
  const able = agents.filter(({ obstacle }) => obstacle === "");
  return (
    <div className={styles.stack}>
      <p className={able.length === 0 ? styles.error : undefined}>
        {able.length === 0
          ? t`No agent can run this study now. Its trials will wait until one can.`
          : plural(able.length, { one: "# agent can run this study.", other: "# agents can run this study." })}
      </p>
      <ul className={styles.agents}>
        {agents.map(({ agent_id, name, obstacle, free }) => (
          <li key={agent_id}>
            <b>{name}</b>{" "}
            {obstacle === "" ? (
              <span className={styles.good}>{plural(free, { one: "available, # free slot", other: "available, # free slots" })}</span>
            ) : (
              <span className={styles.soft}>{obstacle}</span>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
