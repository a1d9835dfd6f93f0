import { t } from "@lingui/core/macro";
import { ArrowDown, ArrowUp } from "lucide-react";
import type { ReactNode } from "react";
import type { Configuration } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import { titled, type Units } from "@/lib/space";
import compact from "./CompactTable.module.css";
import styles from "./ConfigurationTable.module.css";
import table from "./Table.module.css";

interface Props {
  /** The parameters that have a row. */
  names: readonly string[];
  columns: readonly { title: string; values: Configuration }[];
  standard: Configuration | undefined;
  units: Units;
}

/** Compare configurations side by side, with the default last. Values that differ from the default are marked. */
export function ConfigurationTable({ names, columns, standard, units }: Props) {
  return (
    <Wide label={t`Parameters`}>
      <table className={`${compact.table} ${styles.values}`}>
        <thead>
          <tr>
            <th scope="col">{t`Parameter`}</th>
            {columns.map(({ title }) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
            <th scope="col">{t`Default`}</th>
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">{titled(name, units[name])}</th>
              {columns.map(({ title, values }) => {
                const differs = standard !== undefined && values[name] !== standard[name];
                return (
                  <td key={title} className={differs ? styles.differs : undefined}>
                    {formatValue(values[name])}
                    {differs ? <span className="visually-hidden"> {t`(differs from the default)`}</span> : null}
                  </td>
                );
              })}
              <td className={styles.standard}>{formatValue(standard?.[name])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

/** A region with its own horizontal scrollbar, also for the keyboard, for content wider than the page. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the keyboard must reach a scrollable region
    <div className={styles.wide} role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

interface SortHeaderProps {
  text: string;
  /** The name of this order in the API. */
  by: string;
  /** The present order; a leading - means descending. */
  sort: string;
  /** Whether the first click sorts in descending order. */
  down?: boolean;
  number?: boolean;
  onSort: (sort: string) => void;
}

/** A column header that sorts by its column. A second click reverses the order. */
export function SortHeader({ text, by, sort, down = false, number = false, onSort }: SortHeaderProps) {
  const now = sort === by ? "ascending" : sort === `-${by}` ? "descending" : undefined;
  const next = now === undefined ? (down ? `-${by}` : by) : now === "ascending" ? `-${by}` : by;
  return (
    <th scope="col" aria-sort={now} className={number ? table.number : undefined}>
      <button type="button" className={table.sort} onClick={() => onSort(next)}>
        {text}
        {now === undefined ? null : now === "ascending" ? <ArrowUp /> : <ArrowDown />}
      </button>
    </th>
  );
}
