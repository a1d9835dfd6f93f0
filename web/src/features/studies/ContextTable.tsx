import { t } from "@lingui/core/macro";
import { Card } from "@/components/Card";
import compact from "@/components/CompactTable.module.css";
import { CopyButton } from "@/components/Button";
import type { Analysis, StudySpec } from "@/lib/api/client";
import { formatMetric, formatValue, unitOf } from "@/lib/format";
import { changesText, conditionText, verdictText } from "@/lib/verdicts";
import styles from "./Effects.module.css";

type Row = Analysis["contexts"][number];

/** Show the settings to use in each context, with the verdict on the best ones. Only a proven gain is green. */
export function ContextTable({ rows, spec }: { rows: readonly Row[]; spec: StudySpec }) {
  const first = rows[0];
  if (first === undefined) return null;
  const unit = spec.objectives[0] === undefined ? "" : unitOf(spec.objectives[0]);
  const measured = (value: number | null | undefined) => (value === null || value === undefined ? "—" : formatMetric(value, unit));
  const contexts = Object.keys(first.context);
  const settings = spec.space.parameters.map(({ name }) => name).filter((name) => !contexts.includes(name) && rows.some((row) => name in row.settings));
  return (
    <Card title={t`Settings by context`} flush>
      <div className={compact.scroll}>
        <table className={`${compact.table} ${styles.table}`}>
          <thead>
            <tr>
              {[...contexts, ...settings].map((name) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
              <th scope="col">{t`Value`}</th>
              <th scope="col">{t`Default`}</th>
              <th scope="col">{t`Verdict`}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={JSON.stringify(row.context)}>
                {contexts.map((name) => (
                  <th scope="row" key={name}>
                    {shown(row.context[name])}
                  </th>
                ))}
                {settings.map((name) => (
                  <td key={name}>{shown(row.settings[name])}</td>
                ))}
                <td>{measured(row.is_default ? row.verdict?.default : row.verdict?.value)}</td>
                <td>{measured(row.verdict?.default)}</td>
                <td className={row.is_default ? styles.soft : styles.good}>
                  {row.verdict === null ? t`not measured yet` : verdictText(row.verdict)}
                  {row.verdict?.conditions.map((condition) => (
                    <span key={condition.text} className={styles.condition}>
                      {conditionText(condition)}
                    </span>
                  ))}
                  {row.is_default && row.best !== null ? <span className={styles.condition}>{t`found so far: ${changesText(row.best, { ...row.default, ...row.context })}`}</span> : null}
                </td>
                <td>
                  <CopyButton label={t`Copy as JSON`} text={JSON.stringify(row.settings, null, 2)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className={styles.note}>{t`The settings are the default where no gain is proven. Each interval holds for its own context.`}</p>
    </Card>
  );
}

function shown(value: Row["settings"][string] | undefined): string {
  return value === undefined ? "" : formatValue(value);
}
