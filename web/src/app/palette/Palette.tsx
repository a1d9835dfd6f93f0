import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useLocation, useNavigate, useParams, type LinkProps } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog as Radix } from "radix-ui";
import { useDeferredValue, useState } from "react";
import { MATCHING_TABS, tabsOf } from "@/app/addresses";
import { MATCHING_TITLES, TITLES } from "@/app/titles";
import { stateText } from "@/components/Badge";
import choices from "@/components/Choices.module.css";
import { Problem } from "@/components/Message";
import { componentsQuery } from "@/features/components/api";
import { studiesQuery, studyQuery, useUpdateState } from "@/features/studies/api";
import { StopDialog } from "@/features/studies/StopDialog";
import type { Study } from "@/lib/api/client";
import { useMay } from "@/lib/session";
import { setTheme, type Theme } from "@/lib/theme";
import { meantBy, namesNone, score, STUDY_COMMANDS, valueOf, type StudyCommand } from "./commands";
import styles from "./Palette.module.css";

/** A search over pages, studies (by any part of their names), actions on studies, components and themes. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const may = useMay();
  // The name of the study whose page is open.
  const inside = useParams({ strict: false });
  const isStudy = useLocation({ select: ({ pathname }) => pathname.startsWith("/studies/") });
  const here = isStudy ? inside.name : undefined;
  const [text, setText] = useState("");
  const typed = text.trim();
  const search = useDeferredValue(typed);
  const studies = useInfiniteQuery({ ...studiesQuery({ search, sort: "-updated" }, 8), refetchInterval: false });
  const components = useQuery({ ...componentsQuery, enabled: may("agent.read"), refetchInterval: false });
  const found = studies.data?.pages[0]?.studies ?? [];
  const mayUpdate = may("study.update");
  const opened = useQuery({ ...studyQuery(here ?? ""), enabled: here !== undefined });
  // "pause NAME" is a command for studies of this name that can be paused, and not a study's name.
  const meant = meantBy(search);
  const isCommand = mayUpdate && meant.states.length > 0;
  const meantStudies = useInfiniteQuery({
    ...studiesQuery({ search: meant.name, state: meant.states, sort: "-updated" }, 8),
    enabled: isCommand,
    refetchInterval: false,
  });
  const answer = isCommand ? meantStudies : studies;
  // Results for an earlier text must not be offered for the present one.
  const isAnswered = search === typed && !answer.isPlaceholderData && !answer.isPending;
  const isFound = search === typed && !studies.isPlaceholderData;
  // A command without a name is for the open study. Without a search, the studies found are merely the latest ones.
  const isHere = namesNone(typed);
  const changeable = mayUpdate && typed !== "" && isAnswered ? (answer.data?.pages[0]?.studies ?? []).filter(({ name }) => !(isHere && name === here)) : [];
  const [stopped, stop] = useState<string | null>(null);

  function go(to: LinkProps) {
    onClose();
    void navigate(to);
  }
  function choose(theme: Theme) {
    onClose();
    setTheme(theme);
  }
  if (stopped !== null) return <StopDialog name={stopped} open onOpenChange={onClose} />;
  return (
    <Radix.Root open onOpenChange={(open) => (open ? undefined : onClose())}>
      <Radix.Portal>
        <Radix.Overlay className={styles.overlay} />
        <Radix.Content className={styles.content} aria-describedby={undefined}>
          <Radix.Title className="visually-hidden">{t`Command palette`}</Radix.Title>
          <Command label={t`Command palette`} filter={score} loop>
            <Command.Input className={styles.input} placeholder={t`Search for a study, page or command`} value={text} onValueChange={setText} />
            <Command.List className={`${choices.choices} ${styles.list}`} label={t`Results`}>
              {isAnswered ? <Command.Empty className={`${choices.none} ${styles.none}`}>{t`No results.`}</Command.Empty> : null}
              {here === undefined ? null : (
                <Command.Group heading={here}>
                  {tabsOf(opened.data?.spec).map((tab) => (
                    <Command.Item
                      key={tab}
                      value={`${here}:${tab}`}
                      keywords={[i18n._(TITLES[tab])]}
                      onSelect={() => go({ to: "/studies/$name", params: { name: here }, search: { tab: tab === "overview" ? undefined : tab } })}
                    >
                      {i18n._(TITLES[tab])}
                    </Command.Item>
                  ))}
                  <Command.Item onSelect={() => go({ to: "/studies/$name/report", params: { name: here } })}>{t`Printable report`}</Command.Item>
                  {may("study.create") ? (
                    <Command.Item onSelect={() => go({ to: "/new", search: { clone: here } })}>{t`Clone this study`}</Command.Item>
                  ) : null}
                  {opened.data !== undefined && mayUpdate && isHere ? <StateCommands study={opened.data} onDone={onClose} onStop={stop} /> : null}
                </Command.Group>
              )}
              <Command.Group heading={t`Go to`}>
                {may("study.create") ? <Command.Item onSelect={() => go({ to: "/new" })}>{t`New study`}</Command.Item> : null}
                <Command.Item onSelect={() => go({ to: "/" })}>{t`Home`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/studies" })}>{t`Studies`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/studies", search: { show: "attention" } })}>{t`Studies that need attention`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/compare", search: { study: [] } })}>{t`Compare studies`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/components" })}>{t`Components`}</Command.Item>
                {may("agent.read") ? <Command.Item onSelect={() => go({ to: "/gallery" })}>{t`What do you run?`}</Command.Item> : null}
                <Command.Item onSelect={() => go({ to: "/agents" })}>{t`Agents`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/live" })}>{t`Live`}</Command.Item>
                {may("record.read")
                  ? MATCHING_TABS.map((tab) => (
                      <Command.Item key={tab} value={`matching:${tab}`} keywords={[t`Matching`, i18n._(MATCHING_TITLES[tab])]} onSelect={() => go({ to: "/matching", search: { tab } })}>
                        {t`Matching`} <span className={choices.soft}>{i18n._(MATCHING_TITLES[tab])}</span>
                      </Command.Item>
                    ))
                  : null}
                <Command.Item onSelect={() => go({ to: "/administration" })} keywords={[t`Administration`, "tokens", "settings"]}>
                  {t`Administration`}
                </Command.Item>
              </Command.Group>
              {found.length > 0 ? (
                <Command.Group heading={t`Studies`}>
                  {found.map((study) => (
                    <Command.Item
                      // cmdk ignores changed keywords of an item that is already in the list.
                      key={`${study.name} ${isFound ? typed : ""}`}
                      value={`study:${study.name}`}
                      // The service may have found the study by its tags. A study found for an earlier text must match by name.
                      keywords={[isFound && typed !== "" ? typed : study.name]}
                      onSelect={() => go({ to: "/studies/$name", params: { name: study.name } })}
                    >
                      {study.name} <span className={choices.soft}>{stateText(study.state)}</span>
                    </Command.Item>
                  ))}
                </Command.Group>
              ) : null}
              {changeable.length > 0 ? (
                <Command.Group heading={t`Actions`}>
                  {changeable.map((study) => (
                    <StateCommands key={study.name} study={study} onDone={onClose} onStop={stop} onUnnamed={isHere ? setText : undefined} />
                  ))}
                </Command.Group>
              ) : null}
              {components.data === undefined || components.data.components.length === 0 ? null : (
                <Command.Group heading={t`Components`}>
                  {components.data.components.map(({ name }) => (
                    <Command.Item key={name} value={`component:${name}`} keywords={[name]} onSelect={() => go({ to: "/components/$name", params: { name } })}>
                      {name}
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
              <Command.Group heading={t`Theme`}>
                <Command.Item onSelect={() => choose("light")}>{t`Light`}</Command.Item>
                <Command.Item onSelect={() => choose("dark")}>{t`Dark`}</Command.Item>
                <Command.Item onSelect={() => choose("system")}>{t`System`}</Command.Item>
              </Command.Group>
            </Command.List>
          </Command>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface Props {
  study: Pick<Study, "name" | "state">;
  onDone: () => void;
  /** Called when the study is to be stopped, which needs a confirmation. */
  onStop: (name: string) => void;
  /** Given when the user has not named the study: a chosen command is first written out in full. */
  onUnnamed?: ((text: string) => void) | undefined;
}

/** Offer the commands that the study's state allows: pause, resume and stop. A study that has ended allows none. */
function StateCommands({ study: { name, state }, onDone, onStop, onUnnamed }: Props) {
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
