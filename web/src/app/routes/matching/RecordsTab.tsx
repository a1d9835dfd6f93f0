import { t } from "@lingui/core/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useDeferredValue } from "react";
import { Button, MoreButton } from "@/components/Button";
import { Conditions, refusalOf } from "@/components/Conditions";
import { TextField } from "@/components/Field";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Select";
import { recordsQuery, type RecordFilter } from "@/features/matching/api";
import styles from "@/features/matching/matching.module.css";
import { RecordTable } from "@/features/matching/RecordTable";
import { RECORD_COLUMNS } from "@/lib/columns";
import type { MatchingSearch } from "../../addresses";
import pages from "../pages.module.css";

const route = getRouteApi("/signed-in/matching");

export function RecordsTab() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { q = "", state = "", sort = "-created", where = [] } = search;
  const filter = useDeferredValue<RecordFilter>({ search: q.trim(), state, sort, where });
  const query = useInfiniteQuery(recordsQuery(filter));
  const { data, error, refetch } = query;
  const records = data?.pages.flatMap((page) => page.records) ?? [];

  /** Keep the filter in the address, so that users can share it and go back to it. */
  function look(changes: Partial<MatchingSearch>) {
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  }

  return (
    <>
      <div className={pages.filters}>
        <TextField bare label={t`Search records`} type="search" placeholder={t`Component, study, user, job …`} value={q} onChange={(event) => look({ q: event.target.value || undefined })} />
        <Segments
          label={t`State`}
          value={state === "" ? "all" : state}
          onChange={(value) => look({ state: value === "all" ? undefined : value })}
          options={[
            { value: "all", text: t`All` },
            { value: "ACTIVE", text: t`Active` },
            { value: "WITHDRAWN", text: t`Withdrawn` },
          ]}
        />
        <Conditions bare where={where} error={error} columns={RECORD_COLUMNS} example="gain > 10" onChange={(next) => look({ where: next })} />
      </div>
      {error === null || refusalOf(error) !== null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`records`} /> : null
      ) : (
        <div className={pages.panel}>
          {records.length > 0 ? (
            <RecordTable
              records={records}
              sort={sort}
              onSort={(next) => look({ sort: next === "-created" ? undefined : next })}
              link={({ id, component }) => (
                <Link to="/matching/records/$id" params={{ id }} aria-label={t`Record ${id}, ${component}`}>
                  {component}
                </Link>
              )}
              study={(name) => (
                <Link to="/studies/$name" params={{ name }}>
                  {name}
                </Link>
              )}
            />
          ) : q !== "" || state !== "" || where.length > 0 ? (
            <Empty title={t`No matching records`}>
              <Button onClick={() => void navigate({ search: {} })}>{t`Show all records`}</Button>
            </Empty>
          ) : (
            <Empty title={t`No records yet`}>
              <p>
                {t`A study writes a record when it ends and its final check has proven a gain. The study needs agents, one objective and a final check. Name the job in the study file as users submit it, and start the study:`}
              </p>
              <Code>trimtab tune study.yaml</Code>
              <p>
                <Link to="/studies">{t`Go to studies`}</Link>
              </p>
            </Empty>
          )}
        </div>
      )}
      {query.hasNextPage ? (
        <div className={styles.buttons}>
          <MoreButton query={query} />
        </div>
      ) : null}
    </>
  );
}
