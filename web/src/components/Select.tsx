import { ToggleGroup } from "radix-ui";
import { useId, type ReactNode } from "react";
import styles from "./Select.module.css";

interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; text: string; disabled?: boolean }[];
  onChange: (value: T) => void;
}

/** A choice of a few options, all visible. */
export function Segments<T extends string>({ label, value, options, onChange }: Props<T>) {
  return (
    <ToggleGroup.Root
      type="single"
      aria-label={label}
      className={styles.group}
      value={value}
      onValueChange={(chosen) => {
        // A click on the chosen option reports an empty value.
        if (chosen !== "") onChange(chosen as T);
      }}
    >
      {options.map((option) => (
        <ToggleGroup.Item key={option.value} value={option.value} disabled={option.disabled ?? false} className={styles.item}>
          {option.text}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}

interface SelectProps<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; text: string }[];
  onChange: (value: T) => void;
  /** Whether the label is visible, and not only for screen readers. */
  labelled?: boolean;
}

/** A drop-down list. */
export function Select<T extends string>({ label, value, options, onChange, labelled = false }: SelectProps<T>) {
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

/** Tabs of a page, each with its own address. The children are links; the present one has `aria-current`. */
export function Tabs({ label, children }: { label: string; children: ReactNode }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {children}
    </nav>
  );
}
