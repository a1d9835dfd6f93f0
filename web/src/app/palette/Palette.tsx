import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, type LinkProps } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog as Radix } from "radix-ui";
import { useDeferredValue, useState } from "react";
import { stateText } from "@/components/Badge";
import { componentsQuery } from "@/features/components/api";
import { studiesQuery } from "@/features/studies/api";
import { useMay } from "@/lib/session";
import { setTheme, type Theme } from "@/lib/theme";
import styles from "./Palette.module.css";

/** What the palette finds: pages, studies by any part of their name, components, the theme. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const may = useMay();
  const [text, setText] = useState("");
  const search = useDeferredValue(text.trim());
  const studies = useInfiniteQuery({ ...studiesQuery({ search, sort: "-updated" }, 8), refetchInterval: false });
  const components = useQuery({ ...componentsQuery, enabled: may("agent.read"), refetchInterval: false });
  const found = studies.data?.pages[0]?.studies ?? [];

  function go(to: LinkProps) {
    onClose();
    void navigate(to);
  }
  function choose(theme: Theme) {
    onClose();
    setTheme(theme);
  }
  return (
    <Radix.Root open onOpenChange={(open) => (open ? undefined : onClose())}>
      <Radix.Portal>
        <Radix.Overlay className={styles.overlay} />
        <Radix.Content className={styles.content} aria-describedby={undefined}>
          <Radix.Title className="visually-hidden">Go to, or do</Radix.Title>
          <Command label="Go to, or do" loop>
            <Command.Input className={styles.input} placeholder="Study, page, command …" value={text} onValueChange={setText} />
            <Command.List className={styles.list} label="What was found">
              <Command.Empty className={styles.none}>Nothing is called that.</Command.Empty>
              <Command.Group heading="Go to">
                {may("study.create") ? <Command.Item onSelect={() => go({ to: "/new" })}>New study</Command.Item> : null}
                <Command.Item onSelect={() => go({ to: "/" })}>Home</Command.Item>
                <Command.Item onSelect={() => go({ to: "/studies" })}>Studies</Command.Item>
                <Command.Item onSelect={() => go({ to: "/studies", search: { show: "attention" } })}>Studies that need attention</Command.Item>
                <Command.Item onSelect={() => go({ to: "/components" })}>Components</Command.Item>
                <Command.Item onSelect={() => go({ to: "/agents" })}>Agents</Command.Item>
                <Command.Item onSelect={() => go({ to: "/administration" })} keywords={["tokens", "settings"]}>
                  Administration
                </Command.Item>
              </Command.Group>
              {found.length > 0 ? (
                <Command.Group heading="Studies">
                  {found.map((study) => (
                    <Command.Item
                      key={study.name}
                      value={`study ${study.name}`}
                      // The service has found it, perhaps by its tags.
                      keywords={[text]}
                      onSelect={() => go({ to: "/studies/$name", params: { name: study.name } })}
                    >
                      {study.name} <span className={styles.soft}>{stateText(study.state)}</span>
                    </Command.Item>
                  ))}
                </Command.Group>
              ) : null}
              {components.data === undefined || components.data.components.length === 0 ? null : (
                <Command.Group heading="Components">
                  {components.data.components.map(({ name }) => (
                    <Command.Item key={name} value={`component ${name}`} onSelect={() => go({ to: "/components/$name", params: { name } })}>
                      {name}
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
              <Command.Group heading="Theme">
                <Command.Item onSelect={() => choose("light")}>Light</Command.Item>
                <Command.Item onSelect={() => choose("dark")}>Dark</Command.Item>
                <Command.Item onSelect={() => choose("system")}>As the system has it</Command.Item>
              </Command.Group>
            </Command.List>
          </Command>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
