import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { SelectField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { comparisonQuery, MOST_COMPARED } from "@/features/studies/api";
import { ComparedStudies } from "@/features/studies/ComparedStudies";
import { ComparisonChart } from "@/features/studies/ComparisonChart";
import { ApiError, type Comparison } from "@/lib/api/client";
import { formatList, formatMetric, unitOf } from "@/lib/format";
import { useTitle } from "@/lib/title";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/compare");

export function ComparePage() {
  useTitle(t`Compare studies`);
  const { study, metric } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, refetch } = useQuery({ ...comparisonQuery(study, metric ?? ""), enabled: study.length > 0 && study.length <= MOST_COMPARED });
  const missing = missingOf(study, data, error);
  return (
    <>
      <div className={styles.head}>
        <h1>{study.length === 1 ? t`Compare ${study.join()}` : study.length === 0 ? t`Compare studies` : plural(study.length, { one: "Compare # study", other: "Compare # studies" })}</h1>
        {data !== undefined && data.metrics.length > 1 ? (
          <SelectField label={t`Metric`} bare value={data.metric} onChange={(event) => void navigate({ search: { study, metric: event.target.value } })}>
            {data.metrics.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </SelectField>
        ) : null}
      </div>
      <ComparedStudies studies={study} missing={missing} onChange={(next) => void navigate({ search: { study: next, metric }, resetScroll: false })} />
      {study.length === 0 ? (
        <Empty title={t`Nothing to compare`}>
          <p>{t`Add two or more studies, which have an objective in common.`}</p>
        </Empty>
      ) : study.length > MOST_COMPARED ? (
        <Empty title={t`Too many to compare`}>
          <p>{plural(study.length - MOST_COMPARED, { one: "Remove # of them.", other: "Remove # of them." })}</p>
        </Empty>
      ) : error === null ? (
        data === undefined ? <Loading what={t`comparison`} /> : <Compared comparison={data} />
      ) : isNoneThere(error) ? (
        <Empty title={t`None of them is there`}>
          <p>{t`They may have been deleted.`}</p>
        </Empty>
      ) : !(error instanceof ApiError) || error.data.field !== "metric" ? (
        <Problem error={error} again={() => void refetch()} />
      ) : metric === undefined ? (
        <Empty title={t`Nothing that all of them measure`}>
          <p>{t`Studies are compared by an objective that all of them have, with the same goal. ${formatList(study.filter((name) => !missing.includes(name)), "conjunction")} have none.`}</p>
        </Empty>
      ) : (
        <Empty title={t`Not all of them measure ${metric}`}>
          <Link to="/compare" search={{ study }}>{t`Compare them by another metric`}</Link>
        </Empty>
      )}
    </>
  );
}

/** Those of the studies that are not there. */
function missingOf(study: readonly string[], data: Comparison | undefined, error: Error | null): readonly string[] {
  if (isNoneThere(error)) return study;
  // What those that are there have nothing in common says which are not.
  return data?.missing ?? (error instanceof ApiError ? ((error.data.missing as string[] | undefined) ?? []) : []);
}

/** Whether none of the studies that were asked for is there. */
function isNoneThere(error: Error | null): boolean {
  return error instanceof ApiError && error.code === "study_not_found";
}

/** The curves, and their ends as a table. */
function Compared({ comparison }: { comparison: Comparison }) {
  return (
    <>
      {comparison.curves.some(({ trials }) => trials > 0) ? (
        <ComparisonChart comparison={comparison} />
      ) : (
        <div className={styles.panel}>
          <Empty title={t`None of them has measured anything yet`} />
        </div>
      )}
      <div className={styles.panel}>
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">{t`Study`}</th>
              <th scope="col" className={table.number}>
                {t`First`}
              </th>
              <th scope="col" className={table.number}>
                {t`Best measurement`}
              </th>
              <th scope="col" className={table.number}>
                {t`In trial`}
              </th>
              <th scope="col" className={table.number}>
                {t`Of`}
              </th>
            </tr>
          </thead>
          <tbody>
            {comparison.curves.map(({ study: name, unit, numbers, values, trials }) => {
              const shown = (value: number | undefined) => (value === undefined ? "—" : formatMetric(value, unitOf({ metric: comparison.metric, unit })));
              return (
                <tr key={name}>
                  <th scope="row">
                    <Link to="/studies/$name" params={{ name }}>
                      {name}
                    </Link>
                  </th>
                  <td data-label={t`First`} className={table.number}>
                    {shown(values[0])}
                  </td>
                  <td data-label={t`Best measurement`} className={table.number}>
                    {shown(values.at(-1))}
                  </td>
                  <td data-label={t`In trial`} className={table.number}>
                    {numbers.at(-1) ?? "—"}
                  </td>
                  <td data-label={t`Of`} className={table.number}>
                    {plural(trials, { one: "# trial", other: "# trials" })}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p className={styles.soft}>
        {t`Single measurements, with all the luck that is in them. What a study recommends, and how sure that is, stands on its own page.`}
      </p>
    </>
  );
}
