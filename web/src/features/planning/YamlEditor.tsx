import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useId } from "react";
import { CopyButton } from "@/components/Button";
import type { Methods } from "@/lib/api/client";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";

/** An editor for the study file that `trimtab tune` reads. It changes with the form, and the form with it. */
export function YamlEditor({ draft, keys }: { draft: Draft; keys: Methods["file_keys"] }) {
  const id = useId();
  const { unreadable } = draft;
  return (
    <div className={styles.aside}>
      <div className={styles.buttons}>
        <label htmlFor={id}>
          <b>{t`Study file (YAML)`}</b>
        </label>
        <CopyButton text={draft.text} label={t`Copy`} />
      </div>
      <textarea
        id={id}
        className={styles.yaml}
        spellCheck={false}
        autoCapitalize="off"
        value={draft.text}
        aria-invalid={unreadable === null ? undefined : true}
        aria-describedby={`${id}-note`}
        onChange={(event) => draft.setText(event.target.value)}
      />
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
