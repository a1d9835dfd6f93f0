import { useQuery } from "@tanstack/react-query";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { agentsQuery } from "@/features/fleet/api";
import { AgentList } from "@/features/fleet/AgentList";
import { useTitle } from "@/lib/title";
import styles from "./pages.module.css";

export function AgentsPage() {
  useTitle("Agents");
  const { data, error, refetch } = useQuery(agentsQuery);
  return (
    <>
      <div className={styles.head}>
        <h1>Agents</h1>
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="agents" /> : null
      ) : data.agents.length > 0 ? (
        <AgentList agents={data.agents} />
      ) : (
        <div className={styles.panel}>
          <Empty title="No agents yet">
            <p>An agent runs trials on a machine, with the components that its administrator installed there. Start one with:</p>
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
