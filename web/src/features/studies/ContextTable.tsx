import { t } from "@lingui/core/macro";
import { Card } from "@/components/Card";
import compact from "@/components/CompactTable.module.css";
import { CopyButton } from "@/components/Button";
import type { Analysis, StudySpec } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import { verdictText } from "@/lib/verdicts";
import styles from "./Effects.module.css";

type Row = Analysis["contexts"][number];

/** Show the settings to use in each context, with the verdict on the best ones. Only a proven gain is green. */
export function ContextTable({ rows, spec }: { rows: readonly Row[]; spec: StudySpec }) {
  const first = rows[0];
  if (first === undefined) return null;
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
                <td className={row.is_default ? styles.soft : styles.good}>{row.verdict === null ? t`not measured yet` : verdictText(row.verdict)}</td>
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
