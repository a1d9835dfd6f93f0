import { t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { ApiError } from "@/lib/api/client";
import { Button } from "./Button";
import styles from "./Message.module.css";

/** Explain why a list is empty and what to do first. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <p className={styles.title}>{title}</p>
      {children}
    </div>
  );
}

/** Show an error, with a button that tries again. */
export function Problem({ error, again }: { error: Error; again?: () => void }) {
  return (
    <div className={styles.problem} role="alert">
      <p>
        {error.message}
        {error instanceof ApiError && error.docs !== undefined ? (
          <>
            {" "}
            <a href={error.docs} target="_blank" rel="noreferrer">
              {t`Documentation`}
            </a>
          </>
        ) : null}
      </p>
      {again === undefined ? null : (
        <Button small onClick={again}>
          {t`Try again`}
        </Button>
      )}
    </div>
  );
}

/** Show that something is loading. It appears after a short delay, so that quick answers do not flicker. */
export function Loading({ what }: { what: string }) {
  return (
    <p className={styles.loading} role="status">
      {t`Loading ${what} …`}
    </p>
  );
}

/** Show a command or a few lines of code to copy. */
export function Code({ children }: { children: string }) {
  return (
    // A scrollable region must be reachable by the keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className={styles.code} tabIndex={0}>
      <code>{children}</code>
    </pre>
  );
}
