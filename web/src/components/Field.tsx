import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes } from "react";
import styles from "./Field.module.css";

interface Frame {
  label: string;
  /** What stands below, for those who do not know it. */
  hint?: ReactNode;
  /** What is wrong with it; the service's words. */
  error?: string | undefined;
  /** The label is read out but not shown. */
  bare?: boolean;
}

function Framed({ label, hint, error, bare = false, id, children }: Frame & { id: string; children: ReactNode }) {
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={bare ? "visually-hidden" : styles.label}>
        {label}
      </label>
      {children}
      {error === undefined ? null : (
        <p id={`${id}-error`} className={styles.error}>
          {error}
        </p>
      )}
      {hint === undefined ? null : <p className={styles.hint}>{hint}</p>}
    </div>
  );
}

/** A line to write in, with its label, and what is wrong with it beside it. */
export function TextField({ label, hint, error, bare, className = "", ...rest }: Frame & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <Framed label={label} hint={hint} error={error} bare={bare ?? false} id={id}>
      <input
        id={id}
        className={`${styles.input} ${className}`}
        aria-invalid={error === undefined ? undefined : true}
        aria-describedby={error === undefined ? undefined : `${id}-error`}
        {...rest}
      />
    </Framed>
  );
}

/** A choice of several. */
export function SelectField({ label, hint, error, bare, children, ...rest }: Frame & SelectHTMLAttributes<HTMLSelectElement>) {
  const id = useId();
  return (
    <Framed label={label} hint={hint} error={error} bare={bare ?? false} id={id}>
      <select
        id={id}
        className={styles.input}
        aria-invalid={error === undefined ? undefined : true}
        aria-describedby={error === undefined ? undefined : `${id}-error`}
        {...rest}
      >
        {children}
      </select>
    </Framed>
  );
}

/** A switch with its words behind it. */
export function CheckField({ label, hint, ...rest }: Frame & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <div className={styles.field}>
      <span className={styles.check}>
        <input id={id} type="checkbox" {...rest} />
        <label htmlFor={id}>{label}</label>
      </span>
      {hint === undefined ? null : <p className={styles.hint}>{hint}</p>}
    </div>
  );
}
