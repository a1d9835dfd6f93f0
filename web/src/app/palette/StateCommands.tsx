import { Command } from "cmdk";
import { Problem } from "@/components/Message";
import { useUpdateState } from "@/features/studies/api";
import type { Study } from "@/lib/api/client";
import { STUDY_COMMANDS, valueOf, type StudyCommand } from "./commands";

interface Props {
  study: Pick<Study, "name" | "state">;
  onDone: () => void;
  /** Called when the study is to be stopped, which needs a confirmation. */
  onStop: (name: string) => void;
  /** Given when the user has not named the study: a chosen command is first written out in full. */
  onUnnamed?: ((text: string) => void) | undefined;
}

/** Offer the commands that the study's state allows: pause, resume and stop. A study that has ended allows none. */
export function StateCommands({ study: { name, state }, onDone, onStop, onUnnamed }: Props) {
  const update = useUpdateState(name);
  function run({ to, text }: StudyCommand) {
    if (to === null) onStop(name);
    else if (onUnnamed !== undefined) onUnnamed(text(name));
    // The command may leave the list before the answer arrives, and then the callbacks of `mutate` are not called.
    else update.mutateAsync(to).then(onDone, () => undefined);
  }
  return (
    <>
      {STUDY_COMMANDS.filter(({ from }) => from.includes(state)).map((command) => (
        <Command.Item key={command.to} value={valueOf(name, command)} disabled={update.isPending} onSelect={() => run(command)}>
          {command.text(name)}
        </Command.Item>
      ))}
      {update.error === null ? null : <Problem error={update.error} />}
    </>
  );
}
