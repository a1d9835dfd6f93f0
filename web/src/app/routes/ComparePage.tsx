import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Card } from "@/components/Card";
import { SelectField } from "@/components/Field";
import { GainText } from "@/components/GainText";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { comparisonQuery, MOST_COMPARED } from "@/features/studies/api";
import { ComparedDistributions } from "@/features/studies/ComparedDistributions";
import { ComparedStudies } from "@/features/studies/ComparedStudies";
import { ComparisonChart } from "@/features/studies/ComparisonChart";
import { Answers, ConfigurationDifferences, SettingDifferences } from "@/features/studies/Differences";
import { ApiError, type Comparison } from "@/lib/api/client";
import { formatList, formatMetric, formatNumber, unitOf } from "@/lib/format";
import { useTitle } from "@/lib/browser";
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
        <Empty title={t`No studies to compare`}>
          <p>{t`Add two or more studies that share an objective.`}</p>
        </Empty>
      ) : study.length > MOST_COMPARED ? (
        <Empty title={t`Too many studies`}>
          <p>{plural(study.length - MOST_COMPARED, { one: "Remove # study.", other: "Remove # studies." })}</p>
        </Empty>
      ) : error === null ? (
        data === undefined ? <Loading what={t`comparison`} /> : <Compared comparison={data} />
      ) : noneExists(error) ? (
        <Empty title={t`None of these studies exists`}>
          <p>{t`They may have been deleted.`}</p>
        </Empty>
      ) : !(error instanceof ApiError) || error.data.field !== "metric" ? (
        <Problem error={error} again={() => void refetch()} />
      ) : metric === undefined ? (
        <Empty title={t`No common objective`}>
          <p>{t`Studies can be compared only by an objective that all of them have, with the same goal. ${formatList(study.filter((name) => !missing.includes(name)), "conjunction")} have no such objective.`}</p>
        </Empty>
      ) : (
        <Empty title={t`Not every study measures ${metric}`}>
          <Link to="/compare" search={{ study }}>{t`Compare by another metric`}</Link>
        </Empty>
      )}
    </>
  );
}

/** Return the names of studies that do not exist. */
function missingOf(study: readonly string[], data: Comparison | undefined, error: Error | null): readonly string[] {
  if (noneExists(error)) return study;
  // The error about studies without a common objective also names the missing ones.
  return data?.missing ?? (error instanceof ApiError ? ((error.data.missing as string[] | undefined) ?? []) : []);
}

/** Return whether none of the requested studies exists. */
function noneExists(error: Error | null): boolean {
  return error instanceof ApiError && error.code === "study_not_found";
}

/** Show which study is better, the verdict of each, what differs, and the curves. */
function Compared({ comparison }: { comparison: Comparison }) {
  return (
    <>
      {comparison.better.length === 0 ? null : (
        <Card title={t`Which study is better?`}>
          <Answers comparison={comparison} />
        </Card>
      )}
      <Results comparison={comparison} />
      {comparison.curves.length < 2 ? null : (
        <>
          <Card title={t`Recommended configurations`} flush>
            <ConfigurationDifferences comparison={comparison} />
          </Card>
          <Card title={t`Settings that differ`} flush>
            <SettingDifferences comparison={comparison} />
          </Card>
        </>
      )}
      {comparison.curves.some(({ trials }) => trials > 0) ? (
        <>
          <ComparisonChart comparison={comparison} />
          {comparison.curves.length < 2 ? null : <ComparedDistributions comparison={comparison} />}
        </>
      ) : (
        <div className={styles.panel}>
          <Empty title={t`No measurements yet`} />
        </div>
      )}
      <p className={styles.soft}>
        {t`The charts show single measurements, which include noise. The table shows what each study recommends, and how certain its gain is.`}
      </p>
    </>
  );
}

function Results({ comparison }: { comparison: Comparison }) {
  return (
    <section className={styles.panel} aria-label={t`Results`}>
      <table className={table.table}>
        <thead>
          <tr>
            <th scope="col">{t`Study`}</th>
            <th scope="col" className={table.number}>
              {t`Default`}
            </th>
            <th scope="col" className={table.number}>
              {t`Recommended`}
            </th>
            <th scope="col">{t`Gain`}</th>
            <th scope="col" className={table.number}>
              {t`Trials`}
            </th>
          </tr>
        </thead>
        <tbody>
          {comparison.curves.map(({ study: name, unit, objective, trials }) => {
            const shown = (value: number | null | undefined) => (value === undefined || value === null ? "—" : formatMetric(value, unitOf({ metric: comparison.metric, unit })));
            return (
              <tr key={name}>
                <th scope="row">
                  <Link to="/studies/$name" params={{ name }}>
                    {name}
                  </Link>
                </th>
                <td data-label={t`Default`} className={table.number}>
                  {shown(objective?.default)}
                </td>
                <td data-label={t`Recommended`} className={table.number}>
                  {shown(objective?.best)}
                </td>
                <td data-label={t`Gain`}>{objective === null ? "—" : <GainText objective={objective} />}</td>
                <td data-label={t`Trials`} className={table.number}>
                  {formatNumber(trials)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
