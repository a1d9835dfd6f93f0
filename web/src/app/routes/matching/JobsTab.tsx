import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Button, MoreButton } from "@/components/Button";
import { Conditions, refusalOf } from "@/components/Conditions";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Select";
import { jobsQuery, recordQuery } from "@/features/matching/api";
import { submissionHostCommand } from "@/features/matching/hosts";
import { FeedbackText } from "@/features/matching/Feedback";
import { JobTable } from "@/features/matching/JobTable";
import styles from "@/features/matching/matching.module.css";
import { isNarrow } from "@/lib/browser";
import { JOB_COLUMNS } from "@/lib/columns";
import { useServer } from "@/lib/session";
import type { MatchingSearch } from "../../addresses";
import pages from "../pages.module.css";

const route = getRouteApi("/signed-in/matching");

export function JobsTab() {
  const { record = "", decision = "", where = [] } = route.useSearch();
  const navigate = route.useNavigate();
  const server = useServer();
  const query = useInfiniteQuery(jobsQuery({ record, decision, where }, isNarrow() ? 15 : 50));
  const { data, error, refetch } = query;
  const jobs = data?.pages.flatMap((page) => page.jobs) ?? [];
  return (
    <>
      <div className={pages.filters}>
        <Segments
          label={t`Decision`}
          value={decision === "" ? "all" : decision}
          onChange={(value) => void navigate({ search: (before) => ({ ...before, decision: value === "all" ? undefined : value }), replace: true })}
          options={[
            { value: "all", text: t`All` },
            { value: "APPLIED", text: t`Applied` },
            { value: "CONTROL", text: t`Control` },
            { value: "DRY_RUN", text: t`Dry run` },
            { value: "REFUSED", text: t`Refused` },
            { value: "EXPLORED", text: t`Candidate of a live study` },
          ]}
        />
        <Conditions bare where={where} error={error} columns={JOB_COLUMNS} example="seconds > 60" onChange={(next) => void navigate({ search: (before) => ({ ...before, where: next }), replace: true })} />
      </div>
      {record === "" ? null : <OfRecord id={record} decision={decision === "" ? undefined : decision} />}
      {error === null || refusalOf(error) !== null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`jobs`} /> : null
      ) : (
        <div className={pages.panel}>
          {jobs.length > 0 ? (
            <JobTable
              jobs={jobs}
              link={(id) => (
                <Link to="/matching/records/$id" params={{ id }}>
                  {t`record ${id}`}
                </Link>
              )}
            />
          ) : record !== "" || decision !== "" || where.length > 0 ? (
            <Empty title={t`No matching jobs`}>
              <Button onClick={() => void navigate({ search: { tab: "jobs" } })}>{t`Show all jobs`}</Button>
            </Empty>
          ) : (
            <Empty title={t`No jobs yet`}>
              <p>{t`Agents on submission hosts report each job that resembles a record, when it has ended, also in a dry run. Start one on each host where people submit jobs:`}</p>
              <Code>{submissionHostCommand(server)}</Code>
              <p>{t`Without a scheduler, put this before a command:`}</p>
              <Code>trimtab-agent wrap -- ./ant --grid 64</Code>
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

/** Say which record the jobs considered, and how they fared together. */
function OfRecord({ id, decision }: { id: string; decision: MatchingSearch["decision"] }) {
  const { data } = useQuery(recordQuery(id));
  return (
    <div className={styles.filters}>
      <p>
        <Trans>
          Jobs that matched{" "}
          <Link to="/matching/records/$id" params={{ id }}>
            record {id}
          </Link>
          :
        </Trans>{" "}
        {data === undefined ? null : <FeedbackText feedback={data.feedback} />}
      </p>
      <Link to="/matching" search={{ tab: "jobs", decision }}>
        {t`Show the jobs of all records`}
      </Link>
    </div>
  );
}
