import { t } from "@lingui/core/macro";
import { Button } from "@/components/Button";
import { SelectField } from "@/components/Field";
import type { Methods } from "@/lib/api/client";
import { textOf } from "@/lib/values";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import { partsOf, withAnother, without, withPart, wordOf, type Rule } from "./rules";
import { ValueField } from "./Fields";

interface Props {
  value: unknown;
  methods: Methods["stopping"];
  onChange: (value: Rule | undefined) => void;
}

/** Choose the stopping rule: a single rule, or a combination of several. */
export function Stopping({ value, methods, onChange }: Props) {
  const rule = typeof value === "object" && value !== null ? (value as Rule) : undefined;
  if (rule !== undefined && wordOf(rule) !== null) {
    return (
      <Group label={t`Stopping rules`} where="stopping" rule={rule} methods={methods} onChange={onChange} />
    );
  }
  return (
    <div className={styles.stack}>
      <Single
        label={t`Stopping rule`}
        none={t`never`}
        where="stopping"
        rule={rule}
        methods={methods}
        onChange={onChange}
      />
      {rule === undefined ? null : (
        <div>
          <Button small onClick={() => onChange(withAnother(rule))}>
            {t`Add a stopping rule`}
          </Button>
        </div>
      )}
    </div>
  );
}

interface PartProps {
  label: string;
  /** The path in the file. */
  where: string;
  methods: Methods["stopping"];
  onChange: (value: Rule | undefined) => void;
}

function Single({ label, none, where, rule, methods, onChange }: PartProps & { none: string; rule: Rule | undefined }) {
  const name = textOf(rule?.rule);
  const method = methods.find((one) => one.name === name);
  return (
    <>
      <FaultAt at={`${where}.rule`} just={[where]}>
        {(error) => (
          <SelectField
            label={label}
            value={name}
            hint={method?.doc}
            error={error}
            onChange={(event) => onChange(event.target.value === "" ? undefined : { rule: event.target.value })}
          >
            <option value="">{none}</option>
            {methods.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </SelectField>
        )}
      </FaultAt>
      {method === undefined ? null : (
        <div className={styles.grid}>
          {method.options.map((option) => (
            <FaultAt key={option.name} at={`${where}.${option.name}`}>
              {(error) => (
                <ValueField
                  label={option.name}
                  value={rule?.[option.name]}
                  placeholder={option.default === null ? "" : textOf(option.default)}
                  hint={option.doc}
                  error={error}
                  onChange={(given) => onChange(Object.fromEntries(Object.entries({ ...rule, [option.name]: given }).filter(([, one]) => one !== undefined)))}
                />
              )}
            </FaultAt>
          ))}
        </div>
      )}
    </>
  );
}

/** A combination of rules by any or all. */
function Group({ label, where, rule, methods, onChange }: PartProps & { rule: Rule }) {
  const word = wordOf(rule) ?? "any";
  const parts = partsOf(rule);
  const path = `${where}.${word}`;
  return (
    <fieldset className={styles.group}>
      <legend>{label}</legend>
      <FaultAt just={[path, where]}>
        {(error) => (
          <SelectField
            label={t`Stop the search when`}
            value={word}
            error={error}
            onChange={(event) => onChange({ [event.target.value]: parts })}
          >
            <option value="any">{t`any rule applies`}</option>
            <option value="all">{t`all rules apply`}</option>
          </SelectField>
        )}
      </FaultAt>
      <ol className={styles.members}>
        {parts.map((part, place) => {
          const own = `${path}[${place}]`;
          const change = (next: Rule | undefined) => onChange(next === undefined ? without(rule, place) : withPart(rule, place, next));
          const shared = { where: own, methods, onChange: change };
          return (
            <li key={place}>
              {wordOf(part) === null ? (
                <Single
                  {...shared}
                  label={t`Rule ${place + 1}`}
                  none={t`choose a rule`}
                  rule={part}
                  onChange={(next) => onChange(withPart(rule, place, next ?? { rule: "" }))}
                />
              ) : (
                <Group {...shared} label={t`Rules ${place + 1}`} rule={part} />
              )}
              <div className={styles.row}>
                {wordOf(part) === null ? (
                  <Button small kind="quiet" aria-label={t`Combine rule ${place + 1} with another`} onClick={() => change(withAnother(part))}>
                    {t`Combine with another`}
                  </Button>
                ) : null}
                <Button small kind="quiet" aria-label={t`Remove rule ${place + 1}`} onClick={() => change(undefined)}>
                  {t`Remove`}
                </Button>
              </div>
            </li>
          );
        })}
      </ol>
      <div>
        <Button small onClick={() => onChange(withAnother(rule))}>
          {t`Add a stopping rule`}
        </Button>
      </div>
    </fieldset>
  );
}
