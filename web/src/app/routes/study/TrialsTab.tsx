import { useMemo, useState, type ReactNode } from "react";
import { Failures } from "@/features/trials/Failures";
import { ALL, type Filter } from "@/features/trials/filter";
import { TrialTable } from "@/features/trials/TrialTable";
import type { Analysis, Study, Trial } from "@/lib/api/client";

interface Props {
  study: Study;
  trials: Trial[];
  sampled: boolean;
  analysis: Analysis | undefined;
  finished: number;
  mayTune: boolean;
  link: (number: number, text: string) => ReactNode;
}

/** Show the table of all trials, and above it the reasons of those that failed. */
export function TrialsTab({ study, trials, sampled, analysis, finished, mayTune, link }: Props) {
  const [opened, open] = useState<number | null>(null);
  const [filter, setFilter] = useState<Filter>(ALL);
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  return (
    <>
      <Failures study={study.name} trials={trials} sampled={sampled} finished={finished} onPick={({ state, reason }) => setFilter({ state, reason })} />
      <TrialTable
        study={study.name}
        spec={study.spec}
        trials={trials}
        standard={analysis?.default_params}
        best={best}
        opened={opened}
        onOpen={open}
        sampled={sampled}
        total={study.trial_count}
        revision={study.revision}
        filter={filter}
        onFilter={setFilter}
        mayStop={mayTune}
        link={link}
      />
    </>
  );
}
