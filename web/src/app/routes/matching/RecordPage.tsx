import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Empty, Loading, Problem } from "@/components/Message";
import { recordQuery } from "@/features/matching/api";
import { ChangeRecord, stepOf } from "@/features/matching/ChangeRecord";
import { isForUser, RecordState } from "@/features/matching/RecordState";
import { RecordView } from "@/features/matching/RecordView";
import { studyQuery } from "@/features/studies/api";
import { ApiError } from "@/lib/api/client";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import { unitsOf } from "@/lib/space";
import pages from "../pages.module.css";

const route = getRouteApi("/signed-in/matching/records/$id");

export function RecordPage() {
  const { id } = route.useParams();
  useTitle(t`Record ${id}`);
  const may = useMay();
  const { data, error, refetch } = useQuery(recordQuery(id));
  // The units of the settings. A deleted study has none, and the page does not wait for them.
  const { data: tuned } = useQuery({ ...studyQuery(data?.study ?? ""), enabled: data !== undefined && data.cause !== "deletion" });
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Empty title={t`There is no record ${id}`}>
        <Link to="/matching">{t`Go to records`}</Link>
      </Empty>
    );
  }
  if (data === undefined) return error === null ? <Loading what={t`record ${id}`} /> : <Problem error={error} again={() => void refetch()} />;
  const { component, study } = data;
  return (
    <>
      <div className={pages.head}>
        <div className={pages.title}>
          <h1>{t`Record ${id}`}</h1>
          <RecordState record={data} />
          <Link to="/matching">{t`All records`}</Link>
        </div>
        <div className={pages.buttons}>
          {may("audit.read") ? (
            <Link to="/administration" search={{ section: "audit", target: `record/${id}` }} className={pages.secondary}>
              {t`Audit trail`}
            </Link>
          ) : null}
          {isForUser(data) && may("record.approve") ? <ChangeRecord record={data} step="approve" /> : null}
          {may(stepOf(data) === "approve" ? "record.approve" : "record.change") ? <ChangeRecord record={data} step={stepOf(data)} /> : null}
        </div>
      </div>
      <RecordView
        record={data}
        units={unitsOf(tuned?.spec.space.parameters ?? [])}
        component={
          <Link to="/components/$name" params={{ name: component }}>
            {component}
          </Link>
        }
        study={
          data.cause === "deletion" ? (
            t`${study} (deleted)`
          ) : (
            <Link to="/studies/$name" params={{ name: study }}>
              {study}
            </Link>
          )
        }
        jobs={
          <Link to="/matching" search={{ tab: "jobs", record: id }}>
            {t`Show its jobs`}
          </Link>
        }
      />
    </>
  );
}
