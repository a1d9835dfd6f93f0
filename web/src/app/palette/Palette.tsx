import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useLocation, useNavigate, useParams, type LinkProps } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog as Radix } from "radix-ui";
import { useDeferredValue, useState } from "react";
import { stateText } from "@/components/Badge";
import choices from "@/components/Choices.module.css";
import { componentsQuery } from "@/features/components/api";
import { studiesQuery, studyQuery } from "@/features/studies/api";
import { StopDialog } from "@/features/studies/StopDialog";
import { useMay } from "@/lib/session";
import { setTheme, type Theme } from "@/lib/theme";
import { STUDY_TABS } from "../addresses";
import { TITLES } from "../titles";
import styles from "./Palette.module.css";
import { StateCommands, type Commanded } from "./StateCommands";

/** What the palette finds: pages, studies by any part of their name and what they can be told, components, the theme. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const may = useMay();
  // On the pages of a study: its name.
  const inside = useParams({ strict: false });
  const isStudy = useLocation({ select: ({ pathname }) => pathname.startsWith("/studies/") });
  const here = isStudy ? inside.name : undefined;
  const [text, setText] = useState("");
  const search = useDeferredValue(text.trim());
  const studies = useInfiniteQuery({ ...studiesQuery({ search, sort: "-updated" }, 8), refetchInterval: false });
  const components = useQuery({ ...componentsQuery, enabled: may("agent.read"), refetchInterval: false });
  const found = studies.data?.pages[0]?.studies ?? [];
  const mayTell = may("study.update");
  const opened = useQuery({ ...studyQuery(here ?? ""), enabled: here !== undefined && mayTell });
  // Without a search those that are found are merely the latest.
  const told = search !== "" && mayTell ? found.filter(({ name }) => name !== here) : [];
  const [stopped, stop] = useState<Commanded | null>(null);

  function go(to: LinkProps) {
    onClose();
    void navigate(to);
  }
  function choose(theme: Theme) {
    onClose();
    setTheme(theme);
  }
  if (stopped !== null) return <StopDialog study={stopped} open onOpenChange={onClose} />;
  return (
    <Radix.Root open onOpenChange={(open) => (open ? undefined : onClose())}>
      <Radix.Portal>
        <Radix.Overlay className={styles.overlay} />
        <Radix.Content className={styles.content} aria-describedby={undefined}>
          <Radix.Title className="visually-hidden">{t`Go to, or do`}</Radix.Title>
          <Command label={t`Go to, or do`} loop>
            <Command.Input className={styles.input} placeholder={t`Study, page, command …`} value={text} onValueChange={setText} />
            <Command.List className={`${choices.choices} ${styles.list}`} label={t`What was found`}>
              <Command.Empty className={`${choices.none} ${styles.none}`}>{t`Nothing is called that.`}</Command.Empty>
              {here === undefined ? null : (
                <Command.Group heading={here}>
                  {STUDY_TABS.map((tab) => (
                    <Command.Item
                      key={tab}
                      value={`${here}:${tab}`}
                      keywords={[i18n._(TITLES[tab])]}
                      onSelect={() => go({ to: "/studies/$name", params: { name: here }, search: { tab: tab === "overview" ? undefined : tab } })}
                    >
                      {i18n._(TITLES[tab])}
                    </Command.Item>
                  ))}
                  <Command.Item onSelect={() => go({ to: "/studies/$name/report", params: { name: here } })}>{t`Report to print`}</Command.Item>
                  {may("study.create") ? (
                    <Command.Item onSelect={() => go({ to: "/new", search: { clone: here } })}>{t`Clone this study`}</Command.Item>
                  ) : null}
                  {/* Its page may have fetched it for one who may only look. */}
                  {opened.data === undefined || !mayTell ? null : <StateCommands study={opened.data} onDone={onClose} onStop={stop} />}
                </Command.Group>
              )}
              <Command.Group heading={t`Go to`}>
                {may("study.create") ? <Command.Item onSelect={() => go({ to: "/new" })}>{t`New study`}</Command.Item> : null}
                <Command.Item onSelect={() => go({ to: "/" })}>{t`Home`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/studies" })}>{t`Studies`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/studies", search: { show: "attention" } })}>{t`Studies that need attention`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/compare", search: { study: [] } })}>{t`Compare studies`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/components" })}>{t`Components`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/agents" })}>{t`Agents`}</Command.Item>
                <Command.Item onSelect={() => go({ to: "/administration" })} keywords={["tokens", "settings"]}>
                  {t`Administration`}
                </Command.Item>
              </Command.Group>
              {found.length > 0 ? (
                <Command.Group heading={t`Studies`}>
                  {found.map((study) => (
                    <Command.Item
                      key={study.name}
                      value={`study:${study.name}`}
                      // The service has found it, perhaps by its tags; what it found for an earlier text must match by name.
                      keywords={studies.isPlaceholderData || search !== text.trim() ? [] : [text]}
                      onSelect={() => go({ to: "/studies/$name", params: { name: study.name } })}
                    >
                      {study.name} <span className={choices.soft}>{stateText(study.state)}</span>
                    </Command.Item>
                  ))}
                </Command.Group>
              ) : null}
              {told.length > 0 ? (
                <Command.Group heading={t`Change`}>
                  {told.map((study) => (
                    <StateCommands key={study.name} study={study} onDone={onClose} onStop={stop} />
                  ))}
                </Command.Group>
              ) : null}
              {components.data === undefined || components.data.components.length === 0 ? null : (
                <Command.Group heading={t`Components`}>
                  {components.data.components.map(({ name }) => (
                    <Command.Item key={name} value={`component:${name}`} onSelect={() => go({ to: "/components/$name", params: { name } })}>
                      {name}
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
              <Command.Group heading={t`Theme`}>
                <Command.Item onSelect={() => choose("light")}>{t`Light`}</Command.Item>
                <Command.Item onSelect={() => choose("dark")}>{t`Dark`}</Command.Item>
                <Command.Item onSelect={() => choose("system")}>{t`As the system has it`}</Command.Item>
              </Command.Group>
            </Command.List>
          </Command>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
