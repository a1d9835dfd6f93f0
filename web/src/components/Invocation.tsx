import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { CopyButton } from "@/components/CopyButton";
import type { Invocation as Told } from "@/lib/api/client";
import { quoted } from "@/lib/shell";
import styles from "./Invocation.module.css";

const STEPS: Record<string, MessageDescriptor> = { build: msg`Build`, header: msg`Before each run`, command: msg`Command line` };

function titleOf(step: string): string {
  return STEPS[step] === undefined ? step : i18n._(STEPS[step]);
}

/** What an agent made of a configuration: its programs in their order, each with the variables that are set for it. */
export function Invocation({ told }: { told: Told }) {
  return (
    <div className={styles.steps}>
      {told.commands.map(({ step, argv, environment }, index) => (
        <div key={index} role="group" aria-label={titleOf(step)} className={styles.step}>
          <header className={styles.head}>
            <h3>{titleOf(step)}</h3>
            <CopyButton label={t`Copy`} text={argv.map(quoted).join(" ")} />
          </header>
          <CommandLine argv={argv} />
          <Environment variables={environment} />
        </div>
      ))}
      {told.scheduler_options.length === 0 ? null : (
        <div role="group" aria-label={t`Options for the scheduler`} className={styles.step}>
          <h3>{t`Options for the scheduler`}</h3>
          <CommandLine argv={told.scheduler_options} />
        </div>
      )}
      {told.script === "" ? null : (
        <details className={styles.script}>
          <summary>{t`Batch script`}</summary>
          <pre>{told.script}</pre>
        </details>
      )}
    </div>
  );
}

/** A line breaks between arguments; where one alone is longer than the line, inside of it. */
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
      <p className={styles.label}>{t`with these variables`}</p>
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
