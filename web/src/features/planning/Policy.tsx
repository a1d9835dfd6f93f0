import { SelectField } from "@/components/Field";
import type { Method } from "@/lib/api/client";
import { messageFor, type Fault } from "./faults";
import styles from "./planning.module.css";
import { textOf } from "./values";
import { ValueField } from "./ValueField";

interface Props {
  label: string;
  field: string;
  /** As it stands in the file: a name, or a name with options. */
  value: unknown;
  methods: readonly Method[];
  /** What no choice stands for. */
  none: string;
  several: boolean;
  fault: Fault | null;
  onChange: (value: unknown) => void;
}

/** A designer or a policy by name, with its options. */
export function Policy({ label, field, value, methods, none, several, fault, onChange }: Props) {
  const name = nameOf(value);
  const options = optionsOf(value);
  const method = methods.find((one) => one.name === name);
  const write = (key: string, given: unknown) => {
    const next = Object.fromEntries(Object.entries({ ...options, [key]: given }).filter(([, one]) => one !== undefined));
    onChange(Object.keys(next).length === 0 ? name : { name, options: next });
  };
  return (
    <div className={styles.stack}>
      <SelectField
        label={label}
        value={name}
        error={messageFor(fault, `${field}.name`) ?? (fault?.field === field ? fault.message : undefined)}
        hint={method?.doc}
        onChange={(event) => onChange(event.target.value || undefined)}
      >
        <option value="">{none}</option>
        {methods.map((one) => (
          <option key={one.name} value={one.name} disabled={several && !one.several}>
            {one.name}
            {several && !one.several ? " (one objective only)" : ""}
          </option>
        ))}
      </SelectField>
      {method === undefined || method.options.length === 0 ? null : (
        <details>
          <summary>Options of {name}</summary>
          <div className={styles.grid}>
            {method.options.map((option) =>
              option.choices.length > 0 || option.type === "bool" ? (
                <SelectField
                  key={option.name}
                  label={option.name}
                  value={textOf(options[option.name])}
                  hint={option.doc}
                  error={messageFor(fault, `${field}.options.${option.name}`)}
                  onChange={(event) => write(option.name, event.target.value === "" ? undefined : option.type === "bool" ? event.target.value === "true" : event.target.value)}
                >
                  <option value="">{option.default === null ? "whatever suits" : textOf(option.default)}</option>
                  {(option.type === "bool" ? ["true", "false"] : option.choices).map((choice) => (
                    <option key={choice}>{choice}</option>
                  ))}
                </SelectField>
              ) : (
                <ValueField
                  key={option.name}
                  label={option.name}
                  value={options[option.name]}
                  placeholder={option.default === null ? "whatever suits" : textOf(option.default)}
                  hint={option.doc}
                  error={messageFor(fault, `${field}.options.${option.name}`)}
                  onChange={(given) => write(option.name, given)}
                />
              ),
            )}
          </div>
        </details>
      )}
    </div>
  );
}

export function nameOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null && "name" in value ? textOf(value.name) : "";
}

function optionsOf(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || !("options" in value)) return {};
  const { options } = value;
  return typeof options === "object" && options !== null ? (options as Record<string, unknown>) : {};
}
