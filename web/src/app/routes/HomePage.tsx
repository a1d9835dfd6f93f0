import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { StateBadge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { Progress } from "@/components/Progress";
import { Ago } from "@/components/Time";
import { agentsQuery } from "@/features/fleet/api";
import { studiesQuery, type StudyFilter } from "@/features/studies/api";
import type { Agent, ListedStudy } from "@/lib/api/client";
import { formatGain, formatGainInterval, formatMetric, unitOf } from "@/lib/format";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import styles from "./HomePage.module.css";
import pages from "./pages.module.css";

const SHOWN = 6;
const RUNNING: StudyFilter = { state: ["ACTIVE"], sort: "-updated" };
const ENDED: StudyFilter = { state: ["COMPLETED", "ABORTED"], sort: "-updated" };
const ATTENTION: StudyFilter = { attention: true, sort: "-updated" };

/** What is running, what has finished and how much it gained, what needs somebody. */
export function HomePage() {
  useTitle("Home");
  const may = useMay();
  const running = useInfiniteQuery(studiesQuery(RUNNING, SHOWN));
  const ended = useInfiniteQuery(studiesQuery(ENDED, SHOWN));
  const attention = useInfiniteQuery(studiesQuery(ATTENTION, SHOWN));
  const agents = useQuery({ ...agentsQuery, enabled: may("agent.read") });
  const failed = [running, ended, attention].find(({ error }) => error !== null);
  if (failed?.error) return <Problem error={failed.error} again={() => void failed.refetch()} />;
  const [first, second, third] = [running.data?.pages[0], ended.data?.pages[0], attention.data?.pages[0]];
  if (first === undefined || second === undefined || third === undefined) return <Loading what="what is going on" />;
  const away = (agents.data?.agents ?? []).filter((agent) => !agent.online && agent.running.length > 0);
  const empty = first.total_count + second.total_count + third.total_count === 0;
  return (
    <>
      <div className={pages.head}>
        <h1>Home</h1>
        {may("study.create") ? (
          <Link to="/new" className={pages.primary}>
            New study
          </Link>
        ) : null}
      </div>
      {empty ? <Begin agents={agents.data?.agents} create={may("study.create")} /> : null}
      {third.total_count + away.length > 0 ? (
        <Card title="Needs attention" flush actions={more(third.total_count, "attention")}>
          <ul className={styles.list}>
            {third.studies.map((study) => (
              <Line key={study.name} study={study}>
                <span className={styles.reason}>{study.state === "PAUSED" ? study.state_reason : "No agent takes its trials."}</span>
              </Line>
            ))}
            {away.map((agent) => (
              <li key={agent.agent_id} className={styles.line}>
                <span className={styles.name}>
                  <Link to="/agents">{agent.name}</Link>
                  <span className={styles.soft}>agent</span>
                </span>
                <span className={styles.reason}>
                  Was heard of last <Ago at={agent.last_seen_at} />, with {agent.running.length} {agent.running.length === 1 ? "trial" : "trials"}.
                </span>
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
      {empty ? null : (
        <div className={styles.columns}>
          <Card title="Running" flush actions={more(first.total_count, "open")}>
            <List studies={first.studies} none="Nothing is running." />
          </Card>
          <Card title="Finished" flush actions={more(second.total_count, "ended")}>
            <List studies={second.studies} none="Nothing has finished yet." />
          </Card>
        </div>
      )}
      {agents.data === undefined || agents.data.agents.length === 0 ? null : <Fleet agents={agents.data.agents} />}
    </>
  );
}

function more(count: number, show: "open" | "ended" | "attention"): ReactNode {
  return (
    <Link to="/studies" search={{ show }}>
      {count > SHOWN ? `All ${count}` : "To the list"}
    </Link>
  );
}

function List({ studies, none }: { studies: ListedStudy[]; none: string }) {
  if (studies.length === 0) return <p className={styles.none}>{none}</p>;
  return (
    <ul className={styles.list}>
      {studies.map((study) => (
        <Line key={study.name} study={study}>
          <Outcome study={study} />
        </Line>
      ))}
    </ul>
  );
}

function Line({ study, children }: { study: ListedStudy; children: ReactNode }) {
  const tuned = study.component === "" ? "asked and told" : [study.component, study.application].filter(Boolean).join(" / ");
  return (
    <li className={styles.line}>
      <span className={styles.name}>
        <Link to="/studies/$name" params={{ name: study.name }}>
          {study.name}
        </Link>
        <span className={styles.soft}>{tuned}</span>
      </span>
      {children}
      <span className={styles.end}>
        {study.state === "ACTIVE" ? (
          <Progress done={study.finished_count} of={study.max_trials} unit={study.finished_count === 1 ? "trial" : "trials"} />
        ) : (
          <StateBadge state={study.state} />
        )}
        <span className={styles.soft}>
          <Ago at={study.updated_at} />
        </span>
      </span>
    </li>
  );
}

/** The best so far and what it gained, of the first objective. */
function Outcome({ study }: { study: ListedStudy }) {
  const [objective] = study.objectives;
  if (objective === undefined || objective.best === null) return <span className={styles.soft}>Nothing measured yet.</span>;
  const interval = formatGainInterval(objective);
  const { gain } = objective;
  return (
    <span className={styles.outcome}>
      <span>{formatMetric(objective.best, unitOf(objective))}</span>
      {gain === null ? null : (
        <span className={gain > 0 ? styles.gain : styles.soft}>
          {gain > 0 ? `${formatGain(gain)} better` : gain === 0 ? "no gain yet" : `${formatGain(-gain)} worse`}
        </span>
      )}
      {interval === null ? null : <span className={styles.soft}>(95 %: {interval})</span>}
    </span>
  );
}

function Fleet({ agents }: { agents: Agent[] }) {
  const online = agents.filter((agent) => agent.online);
  const slots = online.reduce((sum, agent) => sum + agent.slots, 0);
  const busy = online.reduce((sum, agent) => sum + agent.busy, 0);
  return (
    <Card title="Agents" actions={<Link to="/agents">All agents</Link>}>
      <p>
        {online.length} of {agents.length} online, {busy} of {slots} {slots === 1 ? "slot" : "slots"} in use.
      </p>
    </Card>
  );
}

/** What to do first, in the order in which it is done. */
function Begin({ agents, create }: { agents: Agent[] | undefined; create: boolean }) {
  return (
    <div className={pages.panel}>
      <Empty title="No studies yet">
        <p>
          See a real one first: <code>make demo</code> tunes a compiler&rsquo;s flags on this machine and shows up here.
        </p>
        {agents === undefined || agents.length === 0 ? (
          <p>
            Or tune something of your own. <Link to="/agents">Enrol an agent</Link> on the machine where it runs, with a{" "}
            <Link to="/components">component</Link> that says what is tuned;
            {create ? (
              <>
                {" "}
                then make a <Link to="/new">new study</Link>.
              </>
            ) : (
              " then a member makes a study."
            )}
          </p>
        ) : create ? (
          <p>
            {agents.length === 1 ? "An agent is" : `${agents.length} agents are`} there: make a <Link to="/new">new study</Link> of what{" "}
            {agents.length === 1 ? "it offers" : "they offer"}.
          </p>
        ) : null}
        <p>A script of your own needs no agent:</p>
        <Code>{`import trimtab

client = trimtab.Client("${location.hostname}:8471", token="…")
study = client.create_study("my-study", space=[trimtab.Float("x", 0, 1)], objectives=[trimtab.Minimize("seconds")])
study.optimize(measure, n_trials=50)   # measure(params) -> seconds`}</Code>
      </Empty>
    </div>
  );
}
