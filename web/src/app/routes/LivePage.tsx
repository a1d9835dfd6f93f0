import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useCallback } from "react";
import { StateBadge } from "@/components/Badge";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { liveQuery } from "@/features/live/api";
import { LiveView } from "@/features/live/LiveView";
import { Studies } from "@/features/live/Studies";
import { StudyNotices } from "@/features/notifications/StudyNotices";
import type { LiveStatus } from "@/lib/api/client";
import { reasonText } from "@/lib/reasons";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/live");

/** Show the systems that are tuned while they serve. */
export function LivePage() {
  useTitle(t`Live`);
  const { study = "" } = route.useSearch();
  const { data, error, refetch, isPlaceholderData } = useQuery(liveQuery(study));
  const shown = isPlaceholderData ? study : data?.shown?.study;
  return (
    <>
      <div className={styles.head}>
        <h1>{t`Live`}</h1>
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`live studies`} /> : null
      ) : data.shown === null ? (
        <div className={styles.panel}>
          <Empty title={t`No live studies yet`}>
            <p>{t`A live study tunes a system while it serves: it tries settings for minutes, under guards, and puts the old ones back. An administrator describes the system in a component file and allows it in the policy of an agent:`}</p>
            <Code>{`trimtab-agent live calibrate ./cache-live   # looks, and changes nothing
echo 'live: {}' > policy.yaml
trimtab-agent run --components ./cache-live --policy policy.yaml ...
trimtab study create live.yaml`}</Code>
            <p>
              <a href="/docs/how-to/live.html" target="_blank" rel="noreferrer">
                {t`Tune a live system, from the first look to the first kept settings`}
              </a>
            </p>
          </Empty>
        </div>
      ) : (
        <>
          {data.studies.length + data.left_off > 1 ? (
            <Studies
              board={data}
              link={(name, content) => (
                <Link to="/live" search={{ study: name }} aria-current={name === shown ? "page" : undefined} activeProps={{}} activeOptions={{ exact: true, includeSearch: true }}>
                  {content}
                </Link>
              )}
            />
          ) : null}
          {/* The buttons of the study before would act on that one. */}
          {isPlaceholderData ? <Loading what={t`the live study`} /> : <Shown status={data.shown} />}
        </>
      )}
    </>
  );
}

function Shown({ status }: { status: LiveStatus }) {
  const may = useMay();
  const { study } = status;
  const link = useCallback((number: number, text: string) => <TrialLink study={study} number={number} text={text} />, [study]);
  return (
    <>
      <div className={styles.title}>
        <h2>
          <Link to="/studies/$name" params={{ name: study }}>
            {study}
          </Link>
        </h2>
        <StateBadge state={status.state} />
        {status.state_reason === "" ? null : <span className={styles.soft}>{reasonText(status.state_reason, status.state_reason_data)}</span>}
      </div>
      <LiveView key={study} status={status} link={link} notices={may("notice.read") ? <StudyNotices study={study} /> : null} />
    </>
  );
}

function TrialLink({ study, number, text }: { study: string; number: number; text: string }) {
  return (
    <Link to="/studies/$name/trials/$number" params={{ name: study, number: String(number) }} preload={false}>
      {text}
    </Link>
  );
}
