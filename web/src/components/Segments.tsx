import { ToggleGroup } from "radix-ui";
import styles from "./Segments.module.css";

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
