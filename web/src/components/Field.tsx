import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes } from "react";
import styles from "./Field.module.css";

interface Frame {
  label: string;
  /** An explanation below the field. */
  hint?: ReactNode;
  /** The error message of the service. */
  error?: string | undefined;
  /** Whether the label is only for screen readers. */
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

/** A labelled text field with its error message. */
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

/** A labelled drop-down list with its error message. */
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

/** A checkbox with its label. */
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
