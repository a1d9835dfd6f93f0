import { t } from "@lingui/core/macro";
import { Command } from "cmdk";
import { Problem } from "@/components/Message";
import { useUpdateState } from "@/features/studies/api";
import type { Study } from "@/lib/api/client";

/** A study as commands see it. */
export type Commanded = Pick<Study, "name" | "state" | "active_count">;

interface Props {
  study: Commanded;
  onDone: () => void;
  /** It is to be stopped: that is asked first. */
  onStop: (study: Commanded) => void;
}

/** What a study in its state can be told: to pause, to go on, to stop; one that has ended nothing. */
export function StateCommands({ study, onDone, onStop }: Props) {
  const { name, state } = study;
  const update = useUpdateState(name);
  if (state !== "ACTIVE" && state !== "PAUSED") return null;
  const [next, text] = state === "ACTIVE" ? (["PAUSED", t`Pause ${name}`] as const) : (["ACTIVE", t`Resume ${name}`] as const);
  return (
    <>
      <Command.Item value={`step:${name}`} keywords={[text]} disabled={update.isPending} onSelect={() => update.mutate(next, { onSuccess: onDone })}>
        {text}
      </Command.Item>
      <Command.Item value={`stop:${name}`} keywords={[t`Stop ${name} …`]} onSelect={() => onStop(study)}>
        {t`Stop ${name} …`}
      </Command.Item>
      {update.error === null ? null : <Problem error={update.error} />}
    </>
  );
}
