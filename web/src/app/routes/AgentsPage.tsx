import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { TextField } from "@/components/Field";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { agentsQuery } from "@/features/fleet/api";
import { AgentList } from "@/features/fleet/AgentList";
import { Enrol } from "@/features/fleet/Enrol";
import { contains } from "@/lib/contains";
import { formatNumber } from "@/lib/format";
import { useMay, useServer } from "@/lib/session";
import { useTitle } from "@/lib/title";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/agents");

export function AgentsPage() {
  useTitle(t`Agents`);
  const may = useMay();
  const server = useServer();
  const { data, error, refetch } = useQuery(agentsQuery);
  const { q = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const matching = data?.agents.filter((one) => contains(q, [one.name, one.agent_id, ...Object.entries(one.labels).map(([key, value]) => `${key}=${value}`), ...one.components])) ?? [];
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
            onChange={(event) => void navigate({ search: { q: event.target.value || undefined }, replace: true })}
          />
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
