import { useMemo, useState, type ReactNode } from "react";
import { Failures } from "@/features/trials/Failures";
import { TrialTable, type TableSearch } from "@/features/trials/TrialTable";
import type { Analysis, Study, Trial } from "@/lib/api/client";

interface Props {
  study: Study;
  trials: Trial[];
  sampled: boolean;
  analysis: Analysis | undefined;
  finished: number;
  mayTune: boolean;
  search: TableSearch;
  onSearch: (changes: TableSearch) => void;
  link: (number: number, text: string) => ReactNode;
}

/** Show the table of all trials, and above it the reasons of those that failed. */
export function TrialsTab({ study, trials, sampled, analysis, finished, mayTune, search, onSearch, link }: Props) {
  const [opened, open] = useState<number | null>(null);
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  const penalties = useMemo(() => new Set(analysis?.penalties), [analysis]);
  return (
    <>
      <Failures study={study.name} trials={trials} sampled={sampled} finished={finished} onPick={({ state, reason }) => onSearch({ state, reason, page: undefined })} />
      <TrialTable study={study} trials={trials} standard={analysis?.default_params} best={best} penalties={penalties} opened={opened} onOpen={open} search={search} onSearch={onSearch} mayStop={mayTune} link={link} />
    </>
  );
}
