import { t } from "@lingui/core/macro";
import type { Configuration } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import { titled, type Units } from "@/lib/units";
import compact from "./CompactTable.module.css";
import styles from "./ConfigurationTable.module.css";
import { Wide } from "./Wide";

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
