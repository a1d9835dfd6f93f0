import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Conditions } from "@/components/Conditions";
import { TextField } from "@/components/Field";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { agentsQuery } from "@/features/fleet/api";
import { AgentList } from "@/features/fleet/AgentList";
import { Enrol } from "@/features/fleet/Enrol";
import type { Agent } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { contains } from "@/lib/words";
import { formatNumber } from "@/lib/format";
import { useMay, useServer } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/agents");

const labelsOf = ({ labels }: Agent) => Object.entries(labels).map(([key, value]) => `${key}=${value}`);

/* eslint-disable lingui/no-unlocalized-strings -- the words of conditions, which addresses hold in any language */
const COLUMNS: Columns<Agent> = {
  name: { text: ({ name }) => name },
  state: { text: ({ online, draining }) => (online ? (draining ? "draining" : "online") : "offline") },
  labels: { text: (one) => labelsOf(one).join(" ") },
  components: { text: ({ components }) => components.join(" ") },
  studies: { text: ({ running }) => running.map(({ study }) => study).join(" ") },
  version: { text: ({ version }) => version },
  busy: { number: ({ busy }) => busy },
  slots: { number: ({ slots }) => slots },
};
/* eslint-enable lingui/no-unlocalized-strings */

export function AgentsPage() {
  useTitle(t`Agents`);
  const may = useMay();
  const server = useServer();
  const { data, error, refetch } = useQuery(agentsQuery);
  const { q = "", where = [] } = route.useSearch();
  const navigate = route.useNavigate();
  const { rows: matching, wrong } = select(data?.agents.filter((one) => contains(q, [one.name, one.agent_id, ...labelsOf(one), ...one.components])) ?? [], where, COLUMNS);
  const online = data?.agents.filter((agent) => agent.online) ?? [];
  const [there, all] = [formatNumber(online.length), formatNumber(data?.agents.length ?? 0)];
  const busy = formatNumber(online.reduce((sum, { busy }) => sum + busy, 0));
  const slots = online.reduce((sum, { slots }) => sum + slots, 0);
  return (
    <>
      <div className={styles.head}>
        <div className={styles.title}>
          <h1>{t`Agents`}</h1>
          {data === undefined || data.agents.length === 0 ? null : (
            <span className={styles.soft}>
              {t`${there} of ${all} online, ${busy} of ${plural(slots, { one: "# slot", other: "# slots" })} in use`}
            </span>
          )}
        </div>
        {may("agent.enrol") ? <Enrol /> : null}
      </div>
      {data === undefined || data.agents.length === 0 ? null : (
        <div className={styles.filters}>
          <TextField
            bare
            label={t`Search agents`}
            type="search"
            placeholder={t`Name, label, component …`}
            value={q}
            onChange={(event) => void navigate({ search: (before) => ({ ...before, q: event.target.value || undefined }), replace: true })}
          />
          <Conditions bare where={where} columns={Object.keys(COLUMNS)} example="state = online" wrong={wrong} matches={matching.length} onChange={(next) => void navigate({ search: (before) => ({ ...before, where: next }), replace: true })} />
        </div>
      )}
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`agents`} /> : null
      ) : matching.length > 0 ? (
        <AgentList
          agents={matching}
          mayChange={may("agent.enrol")}
          trial={(name, number) => (
            <Link to="/studies/$name/trials/$number" params={{ name, number: String(number) }}>
              {name} #{number}
            </Link>
          )}
          component={(name) => (
            <Link to="/components/$name" params={{ name }}>
              {name}
            </Link>
          )}
        />
      ) : data.agents.length > 0 ? (
        <div className={styles.panel}>
          <Empty title={t`No matching agents`} />
        </div>
      ) : (
        <div className={styles.panel}>
          <Empty title={t`No agents yet`}>
            <p>
              {t`An agent runs trials on a machine, with the components that its administrator installed there.`}{" "}
              {may("agent.enrol") ? t`Enrol an agent, or start one with a token:` : t`An administrator enrols an agent, or starts one with a token:`}
            </p>
            <Code>{`trimtab-agent run \\
    --server ${server} \\
    --token-file admin-token \\
    --components ./components`}</Code>
            <p>{t`Studies that your own script measures need no agent.`}</p>
          </Empty>
        </div>
      )}
    </>
  );
}
