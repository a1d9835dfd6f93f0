import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { agentsQuery } from "@/features/fleet/api";
import { AgentList } from "@/features/fleet/AgentList";
import { Enrol } from "@/features/fleet/Enrol";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import styles from "./pages.module.css";

export function AgentsPage() {
  useTitle("Agents");
  const may = useMay();
  const { data, error, refetch } = useQuery(agentsQuery);
  const online = data?.agents.filter((agent) => agent.online) ?? [];
  return (
    <>
      <div className={styles.head}>
        <div className={styles.title}>
          <h1>Agents</h1>
          {data === undefined || data.agents.length === 0 ? null : (
            <span className={styles.soft}>
              {online.length} of {data.agents.length} online, {online.reduce((sum, { busy }) => sum + busy, 0)} of{" "}
              {online.reduce((sum, { slots }) => sum + slots, 0)} slots in use
            </span>
          )}
        </div>
        {may("agent.enrol") ? <Enrol /> : null}
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="agents" /> : null
      ) : data.agents.length > 0 ? (
        <AgentList
          agents={data.agents}
          mayChange={may("agent.enrol")}
          trial={(name, number) => (
            <Link to="/studies/$name" params={{ name }}>
              {name} #{number}
            </Link>
          )}
          component={(name) => (
            <Link to="/components/$name" params={{ name }}>
              {name}
            </Link>
          )}
        />
      ) : (
        <div className={styles.panel}>
          <Empty title="No agents yet">
            <p>
              An agent runs trials on a machine, with the components that its administrator installed there.
              {may("agent.enrol") ? " Enrol one, or start one with a token:" : " An administrator enrols one, or starts one with a token:"}
            </p>
            <Code>{`trimtab-agent run \\
    --server ${location.hostname}:8471 \\
    --token-file admin-token \\
    --components ./components`}</Code>
            <p>Studies that you ask and tell from a script need none.</p>
          </Empty>
        </div>
      )}
    </>
  );
}
