import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Tabs } from "@/components/Select";
import { agentsQuery } from "@/features/fleet/api";
import { Approval } from "@/features/matching/Approval";
import { Explain } from "@/features/matching/Explain";
import { HostRules } from "@/features/matching/HostRules";
import { hostsOf } from "@/features/matching/hosts";
import styles from "@/features/matching/matching.module.css";
import { Quality } from "@/features/matching/Quality";
import { SettingsForm } from "@/features/matching/SettingsForm";
import { sessionQuery, useMay, useServer } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import { MATCHING_TABS } from "../../addresses";
import { MATCHING_TITLES } from "../../titles";
import pages from "../pages.module.css";
import { JobsTab } from "./JobsTab";
import { RecordsTab } from "./RecordsTab";

const route = getRouteApi("/signed-in/matching");

export function MatchingPage() {
  useTitle(t`Matching`);
  const { tab = "records" } = route.useSearch();
  return (
    <>
      <div className={pages.head}>
        <div>
          <h1>{t`Matching`}</h1>
          <p className={pages.soft}>{t`Jobs that resemble a tuned application get the settings that were proven for it.`}</p>
        </div>
      </div>
      <Tabs label={t`Matching`}>
        {MATCHING_TABS.map((one) => (
          <Link
            key={one}
            to="/matching"
            search={{ tab: one === "records" ? undefined : one }}
            aria-current={one === tab ? "page" : undefined}
            activeProps={{}}
            activeOptions={{ exact: true, includeSearch: true }}
          >
            {i18n._(MATCHING_TITLES[one])}
          </Link>
        ))}
      </Tabs>
      {tab === "records" ? <RecordsTab /> : null}
      {tab === "explain" ? <ExplainTab /> : null}
      {tab === "jobs" ? <JobsTab /> : null}
      {tab === "quality" ? <QualityTab /> : null}
      {tab === "settings" ? <SettingsTab /> : null}
    </>
  );
}

function ExplainTab() {
  const may = useMay();
  const { data: session } = useQuery(sessionQuery);
  const { data } = useQuery({ ...agentsQuery, enabled: may("agent.read") });
  if (session === undefined) return null;
  return (
    <Explain
      hosts={hostsOf(data?.agents ?? [])}
      user={session.actor}
      link={({ id }) => (
        <Link to="/matching/records/$id" params={{ id }}>
          {t`Record ${id}`}
        </Link>
      )}
    />
  );
}

function QualityTab() {
  const { cluster = "" } = route.useSearch();
  return (
    <Quality
      cluster={cluster}
      settings={
        <Link to="/matching" search={{ tab: "settings", cluster: cluster === "" ? undefined : cluster }}>
          {t`Change weights`}
        </Link>
      }
    />
  );
}

function SettingsTab() {
  const { cluster = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const may = useMay();
  const server = useServer();
  const { data } = useQuery({ ...agentsQuery, enabled: may("agent.read") });
  return (
    <div className={styles.stack}>
      {data === undefined ? null : <HostRules hosts={hostsOf(data.agents)} server={server} />}
      <Approval mayChange={may("matching.configure")} />
      <SettingsForm
        cluster={cluster}
        onCluster={(next) => void navigate({ search: { tab: "settings", cluster: next === "" ? undefined : next } })}
        mayChange={may("matching.configure")}
      />
    </div>
  );
}
