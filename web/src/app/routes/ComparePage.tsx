import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { SelectField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { comparisonQuery } from "@/features/studies/api";
import { ComparisonChart } from "@/features/studies/ComparisonChart";
import { formatMetric, formatNumber, unitOf } from "@/lib/format";
import { useTitle } from "@/lib/title";
import { compareRoute } from "../router";
import styles from "./pages.module.css";

export function ComparePage() {
  useTitle("Compare studies");
  const { study, metric } = compareRoute.useSearch();
  const navigate = compareRoute.useNavigate();
  const { data, error, refetch } = useQuery({ ...comparisonQuery(study, metric ?? ""), enabled: study.length > 0 });
  if (study.length === 0) {
    return (
      <Empty title="Nothing to compare">
        <p>
          Choose two or more <Link to="/studies">studies</Link> first.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <div className={styles.head}>
        <h1>Compare {study.length === 1 ? study[0] : `${study.length} studies`}</h1>
        {data !== undefined && data.metrics.length > 1 ? (
          <SelectField label="Metric" bare value={data.metric} onChange={(event) => void navigate({ search: { study, metric: event.target.value } })}>
            {data.metrics.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </SelectField>
        ) : null}
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="comparison" /> : null
      ) : (
        <>
          {data.curves.some(({ trials }) => trials > 0) ? (
            <ComparisonChart comparison={data} />
          ) : (
            <div className={styles.panel}>
              <Empty title="None of them has measured anything yet" />
            </div>
          )}
          <div className={styles.panel}>
            <table className={table.table}>
              <thead>
                <tr>
                  <th scope="col">Study</th>
                  <th scope="col" className={table.number}>
                    First
                  </th>
                  <th scope="col" className={table.number}>
                    Best measurement
                  </th>
                  <th scope="col" className={table.number}>
                    In trial
                  </th>
                  <th scope="col" className={table.number}>
                    Of
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.curves.map(({ study: name, unit, numbers, values, trials }) => {
                  const shown = (value: number | undefined) =>
                    value === undefined ? "—" : formatMetric(value, unitOf({ metric: data.metric, unit }));
                  return (
                    <tr key={name}>
                      <th scope="row">
                        <Link to="/studies/$name" params={{ name }}>
                          {name}
                        </Link>
                      </th>
                      <td data-label="First" className={table.number}>
                        {shown(values[0])}
                      </td>
                      <td data-label="Best measurement" className={table.number}>
                        {shown(values.at(-1))}
                      </td>
                      <td data-label="In trial" className={table.number}>
                        {numbers.at(-1) ?? "—"}
                      </td>
                      <td data-label="Of" className={table.number}>
                        {formatNumber(trials)} {trials === 1 ? "trial" : "trials"}
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          <p className={styles.soft}>
            Single measurements, with all the luck that is in them. What a study recommends, and how sure that is, stands on its own page.
          </p>
        </>
      )}
    </>
  );
}
