import { t } from "@lingui/core/macro";
import { SelectField } from "@/components/Field";
import type { Method } from "@/lib/api/client";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import { textOf } from "@/lib/values";
import { ValueField } from "./Fields";

interface Props {
  label: string;
  field: string;
  /** The value in the file: a name, or a name with options. */
  value: unknown;
  methods: readonly Method[];
  /** The text for an empty choice. */
  none: string;
  several: boolean;
  onChange: (value: unknown) => void;
}

/** Choose an algorithm or a policy by name, and its options. */
export function Policy({ label, field, value, methods, none, several, onChange }: Props) {
  const name = nameOf(value);
  const options = optionsOf(value);
  const method = methods.find((one) => one.name === name);
  const write = (key: string, given: unknown) => {
    const next = Object.fromEntries(Object.entries({ ...options, [key]: given }).filter(([, one]) => one !== undefined));
    onChange(Object.keys(next).length === 0 ? name : { name, options: next });
  };
  return (
    <div className={styles.stack}>
      <FaultAt at={`${field}.name`} just={[field]}>
        {(error) => (
          <SelectField
            label={label}
            value={name}
            error={error}
            hint={method?.doc}
            onChange={(event) => onChange(event.target.value || undefined)}
          >
            <option value="">{none}</option>
            {methods.map((one) => (
              <option key={one.name} value={one.name} disabled={several && !one.several}>
                {several && !one.several ? t`${one.name} (one objective only)` : one.name}
              </option>
            ))}
          </SelectField>
        )}
      </FaultAt>
      {method === undefined || method.options.length === 0 ? null : (
        <details>
          <summary>{t`Options of ${name}`}</summary>
          <div className={styles.grid}>
            {method.options.map((option) => (
              <FaultAt key={option.name} at={`${field}.options.${option.name}`}>
                {(error) =>
                  option.choices.length > 0 || option.type === "bool" ? (
                    <SelectField
                      label={option.name}
                      value={textOf(options[option.name])}
                      hint={option.doc}
                      error={error}
                      onChange={(event) => write(option.name, event.target.value === "" ? undefined : option.type === "bool" ? event.target.value === "true" : event.target.value)}
                    >
                      <option value="">{option.default === null ? t`auto` : textOf(option.default)}</option>
                      {(option.type === "bool" ? ["true", "false"] : option.choices).map((choice) => (
                        <option key={choice}>{choice}</option>
                      ))}
                    </SelectField>
                  ) : (
                    <ValueField
                      label={option.name}
                      value={options[option.name]}
                      placeholder={option.default === null ? t`auto` : textOf(option.default)}
                      hint={option.doc}
                      error={error}
                      onChange={(given) => write(option.name, given)}
                    />
                  )
                }
              </FaultAt>
            ))}
          </div>
        </details>
      )}
    </div>
  );
}

function nameOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null && "name" in value ? textOf(value.name) : "";
}

function optionsOf(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || !("options" in value)) return {};
  const { options } = value;
  return typeof options === "object" && options !== null ? (options as Record<string, unknown>) : {};
}
