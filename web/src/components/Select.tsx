import { useId } from "react";
import styles from "./Select.module.css";

interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; text: string }[];
  onChange: (value: T) => void;
  /** Whether the label is visible, and not only for screen readers. */
  labelled?: boolean;
}

/** A drop-down list. */
export function Select<T extends string>({ label, value, options, onChange, labelled = false }: Props<T>) {
  const id = useId();
  return (
    <span className={styles.select}>
      <label htmlFor={id} className={labelled ? styles.label : "visually-hidden"}>
        {label}
      </label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value as T)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </span>
  );
}
