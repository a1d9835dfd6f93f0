import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Invocation } from "@/components/Invocation";
import { Code, Loading, Problem } from "@/components/Message";
import type { Configuration, DryRun, StudySpec } from "@/lib/api/client";
import { useThrottled } from "@/lib/clock";
import { formatValue } from "@/lib/format";
import { quoted } from "@/lib/words";
import { textOf } from "@/lib/values";
import { dryRunQuery } from "./api";
import styles from "./planning.module.css";

interface Props {
  spec: StudySpec;
  name: string;
  configurations: readonly Configuration[];
}

/** Show the commands that an agent would run for the first trials. Only the agent knows them: the service knows values, never commands. */
export function WouldRun({ spec, name, configurations }: Props) {
  // The name is part of the question: an administrator may allow some studies and not others.
  const { data, error, refetch } = useQuery({ ...dryRunQuery(spec, useThrottled(name, 1500)), enabled: configurations.length > 0 });
  if (error !== null) return <Problem error={error} again={() => void refetch()} />;
  if (data === undefined) return null;
  if (data.state === "waiting") return <Loading what={t`command lines`} />;
  if (data.state === "answered") return <Answer answer={data} standard={standardOf(spec)} />;
  return <ByHand why={data.message} spec={spec} configurations={configurations} />;
}

function Answer({ answer: { agent, trials }, standard }: { answer: DryRun; standard: Configuration }) {
  return (
    <>
      <p className={styles.soft}>
        <Trans>
          Agent <b>{agent}</b> would run these commands. It has rendered its component file with these values, and has run nothing.
        </Trans>
      </p>
      {trials.map(({ params, invocation, refusal }, index) => (
        <details key={index} open={index === 0} className={styles.trial}>
          <summary>
            <b>{index + 1}</b> <Values configuration={params} standard={standard} />
          </summary>
          {invocation === null ? (
            <p className={styles.error}>{t`The agent would refuse this trial: ${refusal}`}</p>
          ) : (
            <>
              <p className={styles.soft}>
                <Trans>
                  In <code>{invocation.folder}</code> on {invocation.host}
                </Trans>
              </p>
              <Invocation invocation={invocation} />
            </>
          )}
        </details>
      ))}
    </>
  );
}

/** Without an agent that answers, show the command that gives its administrator the same information. */
function ByHand({ why, spec: { execution }, configurations }: { why: string; spec: StudySpec; configurations: readonly Configuration[] }) {
  return (
    <>
      <p className={styles.soft}>
        {why}{" "}
        {t`On a machine with the component, this command shows the exact command line, environment and scheduler options of each trial, and runs nothing:`}
      </p>
      {configurations.map((configuration, index) => (
        <Code key={index}>{tryCommand(execution?.component ?? "", execution?.application ?? "", configuration)}</Code>
      ))}
    </>
  );
}

/** Show a configuration in one line: the values that differ from `standard`, or all values without it. */
export function Values({ configuration, standard }: { configuration: Configuration; standard?: Configuration }) {
  const shown = Object.entries(configuration).filter(([name, value]) => standard?.[name] !== value);
  return shown.length === 0 ? t`Default configuration` : <code>{shown.map(([name, value]) => `${name} = ${formatValue(value)}`).join(", ")}</code>;
}

/** Return the default configuration of a plan's space. */
export function standardOf({ space }: StudySpec): Configuration {
  return Object.fromEntries(space.parameters.flatMap(({ name, default: value }) => (value == null ? [] : [[name, value]])));
}

/** Return the command that shows, on the agent's machine, how the agent would run a configuration. */
export function tryCommand(component: string, application: string, configuration: Configuration): string {
  const settings = Object.entries(configuration).map(([name, value]) => `    --set ${quoted(`${name}=${textOf(value)}`)}`);
  const named = application === "" ? [] : [`    --application ${quoted(application)}`];
  return [`trimtab-agent try ${quoted(component)} --dry-run --components ./components`, ...named, ...settings].join(" \\\n");
}
