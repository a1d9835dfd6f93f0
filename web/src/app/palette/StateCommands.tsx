import { Command } from "cmdk";
import { Problem } from "@/components/Message";
import { useUpdateState } from "@/features/studies/api";
import type { Study } from "@/lib/api/client";
import { STUDY_COMMANDS, valueOf, type StudyCommand } from "./commands";

interface Props {
  study: Pick<Study, "name" | "state">;
  onDone: () => void;
  /** It is to be stopped: that is asked first. */
  onStop: (name: string) => void;
  /** Where nobody has named the study: a command that is chosen is written out first. */
  onUnnamed?: ((text: string) => void) | undefined;
}

/** What a study in its state can be told: to pause, to go on, to stop; one that has ended nothing. */
export function StateCommands({ study: { name, state }, onDone, onStop, onUnnamed }: Props) {
  const update = useUpdateState(name);
  function tell({ to, text }: StudyCommand) {
    if (to === null) onStop(name);
    else if (onUnnamed !== undefined) onUnnamed(text(name));
    // By then the study may not be among those any more that can be told so: `mutate` would not say that it is done.
    else update.mutateAsync(to).then(onDone, () => undefined);
  }
  return (
    <>
      {STUDY_COMMANDS.filter(({ from }) => from.includes(state)).map((command) => (
        <Command.Item key={command.to} value={valueOf(name, command)} disabled={update.isPending} onSelect={() => tell(command)}>
          {command.text(name)}
        </Command.Item>
      ))}
      {update.error === null ? null : <Problem error={update.error} />}
    </>
  );
}
