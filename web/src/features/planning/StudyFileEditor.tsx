import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { lazy, Suspense, useId, useMemo } from "react";
import { CopyButton } from "@/components/Button";
import { Code } from "@/components/Message";
import type { Methods } from "@/lib/api/client";
import { part } from "@/lib/chunks";
import type { Fault } from "./faults";
import { wordsOf } from "./fileWords";
import styles from "./planning.module.css";
import { lineOf } from "./studyFile";
import type { Draft } from "./useDraft";

// The editor is larger than the form.
const YamlEditor = lazy(() => part(() => import("@/components/YamlEditor")));

interface Props {
  draft: Draft;
  faults: readonly Fault[];
  methods: Methods | undefined;
  /** The names of the component's parameters. */
  parameters: readonly string[];
}

/** An editor for the study file that `trimtab tune` reads. It changes with the form, and the form with it. */
export function StudyFileEditor({ draft, faults, methods, parameters }: Props) {
  const id = useId();
  const keys = methods?.file_keys ?? [];
  const words = useMemo(() => wordsOf(methods, parameters), [methods, parameters]);
  const { text, unreadable } = draft;
  const problems = useMemo(() => {
    const placed = unreadable === null ? faults.map(({ field, message }) => ({ line: lineOf(text, field), message })) : [unreadable];
    return placed.flatMap(({ line, message }) => (line === undefined ? [] : [{ line, column: 1, length: 0, message }]));
  }, [faults, text, unreadable]);
  return (
    <div className={styles.aside}>
      <div className={styles.buttons}>
        <b>{t`Study file (YAML)`}</b>
        <CopyButton text={text} label={t`Copy`} />
      </div>
      <Suspense fallback={<Code>{text}</Code>}>
        <YamlEditor text={text} label={t`Study file (YAML)`} describedBy={`${id}-note`} problems={problems} words={words} onChange={draft.setText} />
      </Suspense>
      <p id={`${id}-note`} className={unreadable === null ? styles.soft : styles.error} aria-live="polite">
        {unreadable === null ? (
          <Trans>
            <code>trimtab tune study.yaml</code> creates the same study.
          </Trans>
        ) : (
          unreadable.message
        )}
      </p>
      {keys.length === 0 ? null : (
        <details>
          <summary>{t`Keys of the file`}</summary>
          <dl className={styles.soft}>
            {keys.map(({ path, doc }) => (
              <div key={path}>
                <dt>
                  <code>{path}</code>
                </dt>
                <dd>{doc}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </div>
  );
}
