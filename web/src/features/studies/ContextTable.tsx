import { t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { Card } from "@/components/Card";
import { CopyButton } from "@/components/Button";
import { IntervalBar } from "@/components/IntervalBar";
import type { Analysis, Configuration, StudySpec } from "@/lib/api/client";
import { formatGain, formatMetric, formatValue, levelText, unitOf } from "@/lib/format";
import { conditionText, verdictText } from "@/lib/verdicts";
import styles from "./ContextTable.module.css";

type Row = Analysis["contexts"][number];

interface Props {
  rows: readonly Row[];
  spec: StudySpec;
  /** The button that runs the final check; `isPrimary`: it is the next step. */
  check?: ((isPrimary: boolean) => ReactNode) | undefined;
}

/** Show for each context the settings that were found, the default, the gain and how sure it is. Only a proven gain is green. */
export function ContextTable({ rows, spec, check }: Props) {
  const first = rows[0];
  if (first === undefined) return null;
  const unit = spec.objectives[0] === undefined ? "" : unitOf(spec.objectives[0]);
  const contexts = Object.keys(first.context);
  const isOpen = rows.some((row) => row.verdict !== null && row.verdict.level !== "proven" && foundSettings(row, contexts) !== null);
  return (
    <Card title={t`Settings by context`} flush actions={check?.(isOpen)}>
      <table className={styles.table}>
        <thead>
          <tr>
            {contexts.map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
            <th scope="col">{t`Found settings`}</th>
            <th scope="col" className={styles.number}>{t`Found`}</th>
            <th scope="col" className={styles.number}>{t`Default`}</th>
            <th scope="col">{t`Gain`}</th>
            <th scope="col">{t`Certainty`}</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Line key={JSON.stringify(row.context)} row={row} contexts={contexts} unit={unit} />
          ))}
        </tbody>
      </table>
      <p className={styles.note}>{isOpen && check !== undefined
          ? t`Where a gain is not proven, keep the default for now: the final check measures the found settings of each context and its default alternately. Each interval holds for its own context.`
          : t`Where a gain is not proven, keep the default for now. Each interval holds for its own context.`}</p>
    </Card>
  );
}

function Line({ row, contexts, unit }: { row: Row; contexts: readonly string[]; unit: string }) {
  const { verdict } = row;
  const found = foundSettings(row, contexts);
  const measured = (value: number | null | undefined) => (value === null || value === undefined ? "—" : formatMetric(value, unit));
  const isProven = verdict?.level === "proven";
  const none = verdict === null || found === null || verdict.level === "no measurable gain";
  return (
    <tr>
      {contexts.map((name) => (
        <th scope="row" key={name} className={styles.context} data-label={name}>
          {formatValue(row.context[name])}
        </th>
      ))}
      <td className={styles.settings}>{found === null ? <span className={styles.soft}>{t`the default`}</span> : <Changes found={found} standard={row.default} />}</td>
      <td className={`${styles.number} ${styles.value}`} data-label={t`Found`}>
        {measured(verdict?.value)}
      </td>
      <td className={`${styles.number} ${styles.value}`} data-label={t`Default`}>
        {measured(verdict?.default)}
      </td>
      <td className={styles.gain}>
        {verdict === null || verdict.gain === null ? (
          "—"
        ) : none ? (
          <span className={styles.soft}>{levelText("no measurable gain")}</span>
        ) : (
          <>
            <b className={isProven ? styles.good : undefined}>{formatGain(verdict.gain)}</b>
            <IntervalBar gain={verdict.gain} low={verdict.low} high={verdict.high} isProven={isProven} />
          </>
        )}
      </td>
      <td className={isProven ? `${styles.certainty} ${styles.good}` : `${styles.certainty} ${styles.soft}`}>
        {verdict === null ? t`not measured yet` : <span title={verdictText(verdict)}>{levelText(verdict.level)}</span>}
        {verdict?.conditions.map((condition) => (
          <span key={condition.text} className={styles.condition}>
            {conditionText(condition)}
          </span>
        ))}
      </td>
      <td className={styles.copy}>{found === null ? null : <CopyButton label={t`Copy as JSON`} text={JSON.stringify(found, null, 2)} />}</td>
    </tr>
  );
}

/** Return the settings that are the best known ones of a context, without its variables; null if nothing is known to be better than the default. */
export function foundSettings({ best, default: standard, verdict }: Row, contexts: readonly string[]): Configuration | null {
  if (best === null || verdict?.level === "no measurable gain") return null;
  const found = Object.fromEntries(Object.entries(best).filter(([name]) => !contexts.includes(name)));
  return Object.entries(found).every(([name, value]) => standard[name] === value) ? null : found;
}

/** Show what differs from the default: "threads 4 → 23". */
function Changes({ found, standard }: { found: Configuration; standard: Configuration }) {
  const changed = Object.entries(found).filter(([name, value]) => standard[name] !== value);
  return (
    <ul className={styles.changes}>
      {changed.map(([name, value]) => (
        <li key={name}>
          <code>{name}</code> <span className={styles.soft}>{formatValue(standard[name])} →</span> <b>{formatValue(value)}</b>
        </li>
      ))}
    </ul>
  );
}
