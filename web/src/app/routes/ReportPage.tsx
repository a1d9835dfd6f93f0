import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { flushSync } from "react-dom";
import { Button, CopyButton } from "@/components/Button";
import { Card } from "@/components/Card";
import { OnPaper } from "@/components/Chart";
import { Invocation } from "@/components/Invocation";
import { Loading, Problem } from "@/components/Message";
import { insightQuery } from "@/features/analysis/api";
import { EffectTable } from "@/features/analysis/EffectTable";
import { Importance } from "@/features/analysis/Importance";
import { TradeOffs } from "@/features/analysis/TradeOffs";
import { analysisQuery, studyQuery } from "@/features/studies/api";
import { BestConfiguration } from "@/features/studies/BestConfiguration";
import { Effects } from "@/features/studies/Effects";
import { Gain } from "@/features/studies/Gain";
import { ParetoMembers } from "@/features/studies/ParetoMembers";
import { useStudyFeed } from "@/features/studies/feed";
import { trialQuery } from "@/features/trials/api";
import { aggregate } from "@/features/trials/aggregate";
import { useFailures } from "@/features/trials/Failures";
import { TrajectoryChart } from "@/features/trials/TrajectoryChart";
import { stateText } from "@/components/Badge";
import type { Study, Trial } from "@/lib/api/client";
import { part } from "@/lib/chunks";
import { formatNumber, formatTime } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { useTitle } from "@/lib/browser";
import { unitsOf } from "@/lib/space";
import styles from "./ReportPage.module.css";

const AsFile = lazy(() => part(() => import("@/features/planning/AsFile")));

const route = getRouteApi("/signed-in/studies/$name/report");

export function ReportPage() {
  const { name } = route.useParams();
  useTitle(t`Report on ${name}`);
  const { study, trials, sampled, complete } = useStudyFeed(name);
  const { error } = useQuery({ ...studyQuery(name), enabled: study === null });
  if (error !== null) return <Problem error={error} />;
  if (study === null || !complete) return <Loading what={name} />;
  return (
    <OnPaper.Provider value={true}>
      <Report study={study} trials={trials} sampled={sampled} />
    </OnPaper.Provider>
  );
}

function Report({ study, trials, sampled }: { study: Study; trials: Trial[]; sampled: boolean }) {
  const { name, spec } = study;
  const { data: analysis } = useQuery(analysisQuery(name, study.created_at, study.finished_count, study.state, study.space_version));
  const { data: insight } = useQuery(insightQuery(name, study.created_at, study.finished_count, study.space_version));
  const { failures } = useFailures(name, trials, sampled, study.finished_count);
  const points = useMemo(() => aggregate(trials, spec.objectives).map(({ number, median, breaks }) => ({ number, values: median, isAllowed: breaks === null })), [trials, spec]);
  const printed = usePrinted();
  const best = trials.find(({ number }) => number === analysis?.best[0]?.numbers[0]);
  const finished = plural(study.finished_count, { one: "# finished trial", other: "# finished trials" });
  const parameters = plural(spec.space.parameters.length, { one: "# parameter", other: "# parameters" });
  return (
    <article className={styles.paper}>
      <div className={`${styles.bar} no-print`}>
        <Link to="/studies/$name" params={{ name }}>
          ← {name}
        </Link>
        <span className={styles.buttons}>
          <CopyButton label={t`Copy the link`} text={location.href} />
          <Button kind="primary" onClick={() => window.print()}>
            {t`Print or save as PDF`}
          </Button>
        </span>
      </div>
      <h1>{name}</h1>
      <p className={styles.printed}>{t`Printed at ${formatTime(printed)} from ${location.href}.`}</p>
      <p className={styles.soft}>
        {stateText(study.state)}
        {study.state_reason === "" ? "." : `: ${reasonText(study.state_reason, study.state_reason_data)}`}{" "}
        {t`${finished}, ${parameters}, algorithm ${study.algorithm_choice?.name ?? spec.algorithm?.name ?? ""}.`}{" "}
        {t`Created ${formatTime(new Date(study.created_at))}; data as of ${formatTime(new Date(study.updated_at))}.`}
      </p>
      {analysis?.behind ? (
        <p className={styles.soft} role="status">
          {t`The latest trials are still being analysed. The results below do not include them yet.`}
        </p>
      ) : null}
      {analysis === undefined ? null : (
        <Card title={t`Gain over the default`}>
          <Gain analysis={analysis} study={study} />
        </Card>
      )}
      {spec.objectives.map((objective) => (
        // A printed page has no selector, so each objective has its own chart.
        <TrajectoryChart
          key={objective.metric}
          study={{ ...study, spec: { ...spec, objectives: [objective] } }}
          trials={trials}
          objectives={analysis?.objectives}
          penalties={analysis?.penalties}
          onPick={() => undefined}
          {...(spec.objectives.length > 1 ? { title: t`Trajectory of ${objective.metric}` } : {})}
        />
      ))}
      {analysis?.pareto_verdict ? <ParetoMembers verdict={analysis.pareto_verdict} spec={spec} standard={analysis.default_params} /> : null}
      {analysis?.verdict?.effects ? <Effects effects={analysis.verdict.effects} units={unitsOf(study.spec.space.parameters)} /> : null}
      {analysis === undefined ? null : <BestConfiguration spec={spec} analysis={analysis} />}
      {best === undefined ? null : <HowMeasured study={name} trial={best} />}
      {insight?.data?.objectives.map((objective) => (
        <Card key={objective.metric} title={t`Parameter importance for ${objective.metric}`}>
          <Importance study={name} insight={objective} />
        </Card>
      ))}
      {insight?.data && analysis ? (
        <Card title={t`Effect of each option`}>
          <EffectTable spec={spec} data={insight.data} standard={analysis.default_params} />
        </Card>
      ) : null}
      {spec.objectives.length > 1 && points.length > 0 ? (
        <TradeOffs study={name} objectives={spec.objectives} points={points} analysis={analysis} data={insight?.data ?? null} onPick={() => undefined} />
      ) : null}
      {failures.length > 0 ? (
        <Card title={t`Failures`}>
          <ul>
            {failures.map(({ state, reason, reason_data, count }) => (
              <li key={`${state} ${reason}`}>
                {formatNumber(count)} × {stateText(state)}: {reasonText(reason, reason_data) || t`no reason given`}
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
      <Suspense>
        <AsFile study={study} />
      </Suspense>
    </article>
  );
}

/** Show the machine and the command line of the best configuration's first trial; nothing for trials of a user's script. */
function HowMeasured({ study, trial }: { study: string; trial: Trial }) {
  const { data } = useQuery(trialQuery(study, trial.number, trial.revision));
  const lease = data?.leases.findLast(({ invocation }) => invocation !== null);
  if (trial.machine === "" && trial.node === "" && !lease?.invocation) return null;
  return (
    <Card title={t`How trial ${trial.number} was measured`}>
      <dl className={styles.facts}>
        {trial.machine === "" ? null : (
          <div>
            <dt>{t`Machine, kernel and compiler`}</dt>
            <dd>{trial.machine}</dd>
          </div>
        )}
        {trial.node === "" ? null : (
          <div>
            <dt>{t`Node`}</dt>
            <dd>{trial.node}</dd>
          </div>
        )}
      </dl>
      {lease?.invocation ? <Invocation invocation={lease.invocation} /> : null}
    </Card>
  );
}

/** Return the time at which the page was last printed, or now. */
function usePrinted(): Date {
  const [at, setAt] = useState(() => new Date());
  useEffect(() => {
    const note = () => flushSync(() => setAt(new Date()));
    window.addEventListener("beforeprint", note);
    return () => window.removeEventListener("beforeprint", note);
  }, []);
  return at;
}
