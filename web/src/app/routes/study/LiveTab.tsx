import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Loading, Problem } from "@/components/Message";
import { liveQuery } from "@/features/live/api";
import { LiveView } from "@/features/live/LiveView";

/** Show what a live study has in force now. */
export function LiveTab({ study, link }: { study: string; link: (number: number, text: string) => ReactNode }) {
  const { data, error, refetch } = useQuery(liveQuery(study));
  if (data?.shown?.study === study) return <LiveView status={data.shown} link={link} />;
  return error === null ? <Loading what={t`what is in force`} /> : <Problem error={error} again={() => void refetch()} />;
}
