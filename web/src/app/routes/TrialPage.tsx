import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { StateBadge } from "@/components/Badge";
import { Empty, Loading, Problem } from "@/components/Message";
import { NoteCard } from "@/features/notes/NoteCard";
import { analysisQuery, studyQuery } from "@/features/studies/api";
import { useStudyFeed } from "@/features/studies/feed";
import { trialQuery } from "@/features/trials/api";
import { TrialView } from "@/features/trials/TrialView";
import { ApiError, identify } from "@/lib/api/client";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";

import styles from "./pages.module.css";

// The page needs no other trial of the study; this is the smallest sample.
const FEW = 200;

const route = getRouteApi("/signed-in/studies/$name/trials/$number");

export function TrialPage() {
  const { name, number } = route.useParams();
  useTitle(t`Trial ${number} of ${name}`);
  return <TrialByNumber key={`${name} ${number}`} name={name} number={Number(number)} />;
}

function TrialByNumber({ name, number }: { name: string; number: number }) {
  const mayTune = useMay()("study.update");
  const { study, trials } = useStudyFeed(name, FEW);
  const known = trials.find((trial) => trial.number === number);
  // Fetched once without the stream, and again whenever the stream reports a change of the trial.
  const { data: trial, error, refetch } = useQuery({ ...trialQuery(name, number, known?.revision ?? 0), retry: false });
  const asked = useQuery({ ...studyQuery(name), enabled: study === null });
  const shown = study ?? asked.data;
  const uid = shown?.uid;
  useEffect(() => (uid === undefined ? undefined : identify(name, uid)), [name, uid]);
  const { data: analysis } = useQuery({
    ...analysisQuery(name, shown?.created_at ?? "", shown?.finished_count ?? 0, shown?.state ?? "ACTIVE", shown?.space_version ?? 1),
    enabled: shown !== undefined,
  });
  if (!Number.isInteger(number) || (error instanceof ApiError && error.status === 404)) {
    return (
      <Empty title={Number.isInteger(number) ? t`There is no trial ${number} of ${name}` : t`There is no such trial of ${name}`}>
        <Link to="/studies/$name" params={{ name }} search={{ tab: "trials" }}>
          {t`Go to trials`}
        </Link>
      </Empty>
    );
  }
  if (error !== null) return <Problem error={error} again={() => void refetch()} />;
  if (trial === undefined || shown === undefined) return <Loading what={t`trial ${number}`} />;
  const [best] = analysis?.best ?? [];
  return (
    <>
      <div className={styles.head}>
        <div className={styles.title}>
          <h1>
            <Trans>
              Trial {number}{" "}
              <span className={styles.soft}>
                of{" "}
                <Link to="/studies/$name" params={{ name }} search={{ tab: "trials" }}>
                  {name}
                </Link>
              </span>
            </Trans>
          </h1>
          <StateBadge state={trial.state} />
        </div>
        <nav className={styles.buttons} aria-label={t`Neighbouring trials`}>
          {number > 1 ? (
            <Link to="/studies/$name/trials/$number" params={{ name, number: String(number - 1) }}>
              {t`← Trial ${number - 1}`}
            </Link>
          ) : null}
          {number < shown.trial_count ? (
            <Link to="/studies/$name/trials/$number" params={{ name, number: String(number + 1) }}>
              {t`Trial ${number + 1} →`}
            </Link>
          ) : null}
        </nav>
      </div>
      <TrialView
        study={name}
        spec={shown.spec}
        trial={trial}
        standard={analysis?.default_params}
        best={best === undefined ? undefined : { number: best.numbers[0] ?? 0, params: best.params }}
        mayTune={mayTune}
        measures={shown.state === "ACTIVE" && shown.search_end_reason === ""}
      />
      <NoteCard study={name} trial={number} revision={shown.revision} mayWrite={mayTune} />
    </>
  );
}
