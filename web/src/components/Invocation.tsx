import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { CopyButton } from "./Button";
import type { Invocation as Data } from "@/lib/api/client";
import { quoted } from "@/lib/words";
import styles from "./Invocation.module.css";

const STEPS: Record<string, MessageDescriptor> = { build: msg`Build`, header: msg`Before each run`, command: msg`Command line` };

function titleOf(step: string): string {
  return STEPS[step] === undefined ? step : i18n._(STEPS[step]);
}

/** Show the commands that an agent renders for a configuration, in their order, each with its environment variables. */
export function Invocation({ invocation }: { invocation: Data }) {
  return (
    <div className={styles.steps}>
      {invocation.commands.map(({ step, argv, environment }, index) => (
        <div key={index} role="group" aria-label={titleOf(step)} className={styles.step}>
          <header className={styles.head}>
            <h3>{titleOf(step)}</h3>
            <CopyButton label={t`Copy`} text={argv.map(quoted).join(" ")} />
          </header>
          <CommandLine argv={argv} />
          <Environment variables={environment} />
        </div>
      ))}
      {invocation.scheduler_options.length === 0 ? null : (
        <div role="group" aria-label={t`Scheduler options`} className={styles.step}>
          <h3>{t`Scheduler options`}</h3>
          <CommandLine argv={invocation.scheduler_options} />
        </div>
      )}
      {invocation.script === "" ? null : (
        <details className={styles.script}>
          <summary>{t`Batch script`}</summary>
          <pre>{invocation.script}</pre>
        </details>
      )}
    </div>
  );
}

/** Show a command line. Lines break between arguments, and within an argument only if it is longer than a line. */
function CommandLine({ argv }: { argv: readonly string[] }) {
  return (
    <code className={styles.line}>
      {argv.map((argument, index) => (
        <span key={index}>{quoted(argument)} </span>
      ))}
    </code>
  );
}

function Environment({ variables }: { variables: Record<string, string> }) {
  const entries = Object.entries(variables);
  if (entries.length === 0) return null;
  return (
    <>
      <p className={styles.label}>{t`Environment variables`}</p>
      <dl className={styles.environment}>
        {entries.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value === "" ? <i>{t`empty`}</i> : value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
