import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { OnPaper } from "@/components/Chart";
import { Loading, Problem } from "@/components/Message";
import { insightQuery } from "@/features/analysis/api";
import { EffectTable } from "@/features/analysis/EffectTable";
import { Importance } from "@/features/analysis/Importance";
import { TradeOffs } from "@/features/analysis/TradeOffs";
import { analysisQuery, studyQuery } from "@/features/studies/api";
import { BestConfiguration } from "@/features/studies/BestConfiguration";
import { Gain } from "@/features/studies/Gain";
import { useStudyFeed } from "@/features/studies/useStudyFeed";
import { aggregate } from "@/features/trials/aggregate";
import { failuresQuery } from "@/features/trials/api";
import { TrajectoryChart } from "@/features/trials/TrajectoryChart";
import { stateText } from "@/components/Badge";
import type { Study, Trial } from "@/lib/api/client";
import { formatTime } from "@/lib/format";
import { useTitle } from "@/lib/title";
import { reportRoute } from "../router";
import styles from "./ReportPage.module.css";

export function ReportPage() {
  const { name } = reportRoute.useParams();
  useTitle(`Report on ${name}`);
  const { study, trials, complete } = useStudyFeed(name);
  const { error } = useQuery({ ...studyQuery(name), enabled: study === null });
  if (error !== null) return <Problem error={error} />;
  if (study === null || !complete) return <Loading what={name} />;
  return (
    <OnPaper.Provider value={true}>
      <Report study={study} trials={trials} />
    </OnPaper.Provider>
  );
}

function Report({ study, trials }: { study: Study; trials: Trial[] }) {
  const { name, spec } = study;
  const { data: analysis } = useQuery(analysisQuery(name, study.created_at, study.finished_count, study.state));
  const { data: insight } = useQuery(insightQuery(name, study.created_at, study.finished_count));
  const { data: failed } = useQuery(failuresQuery(name, study.finished_count));
  const points = useMemo(() => aggregate(trials, spec.objectives).map(({ number, middle }) => ({ number, values: middle })), [trials, spec]);
  return (
    <article className={styles.paper}>
      <div className={`${styles.bar} no-print`}>
        <Link to="/studies/$name" params={{ name }}>
          ← {name}
        </Link>
        <Button kind="primary" onClick={() => window.print()}>
          Print
        </Button>
      </div>
      <h1>{name}</h1>
      <p className={styles.soft}>
        {stateText(study.state)}
        {study.state_reason === "" ? "." : `: ${study.state_reason}`} {study.finished_count} finished trials, {spec.space.parameters.length} parameters, algorithm{" "}
        {study.algorithm_choice?.name ?? spec.algorithm?.name}. Created {formatTime(new Date(study.created_at))}; printed as of {formatTime(new Date(study.updated_at))}.
      </p>
      {analysis === undefined ? null : (
        <Card title="Gain against the default">
          <Gain analysis={analysis} study={study} />
        </Card>
      )}
      <TrajectoryChart study={name} spec={spec} trials={trials} objectives={analysis?.objectives} onPick={() => undefined} />
      {analysis === undefined ? null : <BestConfiguration spec={spec} analysis={analysis} />}
      {insight?.data?.objectives.map((told) => (
        <Card key={told.metric} title={`What matters for ${told.metric}`}>
          <Importance study={name} insight={told} />
        </Card>
      ))}
      {insight?.data && analysis ? (
        <Card title="What each option changes">
          <EffectTable spec={spec} data={insight.data} standard={analysis.default_params} />
        </Card>
      ) : null}
      {spec.objectives.length > 1 && points.length > 0 ? (
        <TradeOffs study={name} objectives={spec.objectives} points={points} standard={analysis?.default?.numbers[0]} data={insight?.data ?? null} onPick={() => undefined} />
      ) : null}
      {failed !== undefined && failed.failures.length > 0 ? (
        <Card title="Without a result">
          <ul>
            {failed.failures.map(({ state, reason, count }) => (
              <li key={`${state} ${reason}`}>
                {count} × {stateText(state)}: {reason || "no reason was given"}
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
    </article>
  );
}
