import { plural, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { StateBadge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { FrontText, GainText } from "@/components/GainText";
import { Loading, Problem } from "@/components/Message";
import { Progress } from "@/components/Progress";
import { Ago } from "@/components/Time";
import { Trend } from "@/components/Trend";
import { agentsQuery } from "@/features/fleet/api";
import { inLanguage } from "@/features/gallery/api";
import { GalleryBrief } from "@/features/gallery/GalleryBrief";
import { studiesQuery, type StudyFilter } from "@/features/studies/api";
import type { Agent, ListedStudy } from "@/lib/api/client";
import { formatMetric, formatNumber, tunedText, unitOf } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import { FirstSteps } from "../FirstSteps";
import styles from "./HomePage.module.css";
import pages from "./pages.module.css";

const SHOWN = 6;
const RUNNING: StudyFilter = { state: ["ACTIVE"], sort: "-updated" };
const ENDED: StudyFilter = { state: ["COMPLETED", "ABORTED"], sort: "-updated" };
const ATTENTION: StudyFilter = { attention: true, sort: "-updated" };

/** Show running studies, finished studies with their gains, and what needs attention. */
export function HomePage() {
  useTitle(t`Home`);
  const may = useMay();
  const running = useInfiniteQuery(studiesQuery(RUNNING, SHOWN));
  const ended = useInfiniteQuery(studiesQuery(ENDED, SHOWN));
  const attention = useInfiniteQuery(studiesQuery(ATTENTION, SHOWN));
  const agents = useQuery({ ...agentsQuery, enabled: may("agent.read") });
  const failed = [running, ended, attention].find(({ error }) => error !== null);
  if (failed?.error) return <Problem error={failed.error} again={() => void failed.refetch()} />;
  const [first, second, third] = [running.data?.pages[0], ended.data?.pages[0], attention.data?.pages[0]];
  if (first === undefined || second === undefined || third === undefined) return <Loading what={t`overview`} />;
  // The lists are fetched at different moments. A study in two of them is shown with the same data.
  const known = new Map(first.studies.map((study) => [study.name, study]));
  const away = (agents.data?.agents ?? []).filter((agent) => !agent.online && agent.running.length > 0);
  const empty = first.total_count + second.total_count + third.total_count === 0;
  return (
    <>
      <div className={pages.head}>
        <h1>{t`Home`}</h1>
        {may("study.create") ? (
          <Link to="/new" className={pages.primary}>
            {t`New study`}
          </Link>
        ) : null}
      </div>
      {empty ? (
        <>
          {may("agent.read") ? (
            <Card title={t`What do you run?`} flush actions={<Link to="/gallery">{t`Show all`}</Link>}>
              <GalleryBrief
                link={(entry, content) => (
                  <Link to="/gallery" search={{ q: inLanguage(entry.runs) }}>
                    {content}
                  </Link>
                )}
              />
            </Card>
          ) : null}
          <div className={pages.panel}>
            <FirstSteps />
          </div>
        </>
      ) : null}
      {third.total_count + away.length > 0 ? (
        <Card title={t`Needs attention`} flush actions={more(third.total_count, "attention")}>
          <ul className={styles.list}>
            {third.studies.map((listed) => known.get(listed.name) ?? listed).map((study) => (
              <Line key={study.name} study={study}>
                <span className={styles.reason}>
                  <Need study={study} />
                </span>
              </Line>
            ))}
            {away.map((agent) => (
              <li key={agent.agent_id} className={styles.line}>
                <span className={styles.name}>
                  <Link to="/agents">{agent.name}</Link>
                  <span className={styles.soft}>{t`agent`}</span>
                </span>
                <span className={styles.reason}>
                  <Trans>
                    Offline with <Plural value={agent.running.length} one="# assigned trial" other="# assigned trials" />. Last contact: <Ago at={agent.last_seen_at} />.
                  </Trans>
                </span>
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
      {empty ? null : (
        <div className={styles.columns}>
          <Card title={t`Running`} flush actions={more(first.total_count, "open")}>
            <List studies={first.studies} none={t`No study is running.`} />
          </Card>
          <Card title={t`Finished`} flush actions={more(second.total_count, "ended")}>
            <List studies={second.studies} none={t`No study has finished yet.`} />
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
      {count > SHOWN ? t`Show all ${formatNumber(count)}` : t`Show all`}
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
  return (
    <li className={styles.line}>
      <span className={styles.name}>
        <Link to="/studies/$name" params={{ name: study.name }}>
          {study.name}
        </Link>
        <span className={styles.soft}>{tunedText(study)}</span>
      </span>
      {children}
      <span className={styles.end}>
        {study.state === "ACTIVE" ? (
          <Progress study={study} of={study.max_trials} unit={plural(study.finished_count, { one: "trial", other: "trials" })} />
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

/** Say what a study needs from a person. */
function Need({ study }: { study: ListedStudy }) {
  if (study.state === "PAUSED") return reasonText(study.state_reason, study.state_reason_data);
  if (!study.live) return t`No agent is available for its trials.`;
  return (
    <>
      {t`A live trial waits.`}{" "}
      <Link to="/live" search={{ study: study.name }}>
        {t`See for what`}
      </Link>
    </>
  );
}

/** Show the value of the recommended configuration and its gain, in its context; of several objectives, the size of the front. */
function Outcome({ study }: { study: ListedStudy }) {
  const [objective] = study.objectives;
  if (objective !== undefined && study.objectives.length > 1) return <FrontText objectives={study.objectives} />;
  if (objective === undefined || objective.best === null) return <span className={styles.soft}>{t`No measurements yet.`}</span>;
  return (
    <span className={styles.outcome}>
      <Trend objective={objective} />
      <span>{formatMetric(objective.best, unitOf(objective))}</span>
      <GainText objective={objective} />
      {objective.context_words ? <span className={styles.soft}>{t`for ${objective.context_words}`}</span> : null}
    </span>
  );
}

function Fleet({ agents }: { agents: Agent[] }) {
  const online = agents.filter((agent) => agent.online);
  const slots = online.reduce((sum, agent) => sum + agent.slots, 0);
  const busy = online.reduce((sum, agent) => sum + agent.busy, 0);
  return (
    <Card title={t`Agents`} actions={<Link to="/agents">{t`All agents`}</Link>}>
      <p>
        {t`${formatNumber(online.length)} of ${formatNumber(agents.length)} online, ${formatNumber(busy)} of ${plural(slots, { one: "# slot", other: "# slots" })} in use.`}
      </p>
    </Card>
  );
}
