import { plural, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { CopyButton } from "@/components/Button";
import { Code } from "@/components/Message";
import { useServer } from "@/lib/session";
import { inLanguage } from "./api";
import { commandsOf, evidenceText, gainText, keyOf, packagesText, type Entry } from "./entries";
import styles from "./Gallery.module.css";

interface Props {
  entries: readonly Entry[];
  /** The names of the agents online that offer a component. */
  offering: (component: string) => readonly string[];
  component: (name: string) => ReactNode;
  /** What installs a component on an agent; null: no agent allows it, or the user may not. */
  install: (component: string) => ReactNode;
  /** A link that begins the study of an entry. */
  start: (entry: Entry) => ReactNode;
}

/** Cards of systems that people run, each with its component, what was measured, and how to start. */
export function GalleryList({ entries, offering, component, install, start }: Props) {
  return (
    <ul className={styles.list}>
      {entries.map((entry) => {
        const agents = offering(entry.component);
        const evidence = evidenceText(entry);
        return (
          <li key={keyOf(entry)} className={styles.entry}>
            <h2>{inLanguage(entry.runs)}</h2>
            <div>
              <p className={entry.evidence === "proven" ? styles.proven : undefined}>{gainText(entry)}</p>
              {evidence === null ? null : <p className={styles.soft}>{evidence}</p>}
            </div>
            <dl className={styles.facts}>
              <div>
                <dt>{t`Component`}</dt>
                <dd>{agents.length === 0 ? entry.component : component(entry.component)}</dd>
              </div>
              <div>
                <dt>{t`Packages`}</dt>
                <dd>{packagesText(entry)}</dd>
              </div>
              {entry.minutes === null ? null : (
                <div>
                  <dt>{t`Study`}</dt>
                  <dd>{plural(entry.minutes, { one: "# minute", other: "# minutes" })}</dd>
                </div>
              )}
              {agents.length === 0 ? null : (
                <div>
                  <dt>{t`Offered by`}</dt>
                  <dd>{agents.length > 3 ? plural(agents.length, { one: "# agent", other: "# agents" }) : agents.join(", ")}</dd>
                </div>
              )}
            </dl>
            {agents.length > 0 ? (
              start(entry)
            ) : (
              <>
                {install(entry.component)}
                <Commands entry={entry} />
              </>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** What to run where no agent offers the component. The card offers its study as soon as one does. */
function Commands({ entry }: { entry: Entry }) {
  const commands = commandsOf(entry, useServer());
  return (
    <details className={styles.commands}>
      <summary>{t`How to start`}</summary>
      <div className={styles.steps}>
        <p>{t`No agent offers this component. On the machine where the agent is installed:`}</p>
        <Code>{commands}</Code>
        <CopyButton text={commands} label={t`Copy the commands`} />
        <p className={styles.soft}>{t`The first command says which packages are missing. The second runs one trial. The third offers the component, and then its study can start here.`}</p>
      </div>
    </details>
  );
}
