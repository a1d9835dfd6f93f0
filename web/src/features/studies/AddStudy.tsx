import { t } from "@lingui/core/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Command } from "cmdk";
import { useState } from "react";
import { stateText } from "@/components/Badge";
import { Button } from "@/components/Button";
import choices from "@/components/Choices.module.css";
import { Popover } from "@/components/Popover";
import { useThrottled } from "@/lib/clock";
import styles from "./AddStudy.module.css";
import { studiesQuery } from "./api";

const SHOWN = 8;

interface Props {
  /** Those that are not offered. */
  chosen: readonly string[];
  onAdd: (name: string) => void;
}

/** A button that opens a choice of studies, which the service finds while a name is typed. */
export function AddStudy(props: Props) {
  const [open, setOpen] = useState(false);
  return (
    <Popover trigger={<Button small>{t`Add a study …`}</Button>} label={t`Add a study`} open={open} onOpenChange={setOpen} align="start">
      <Choice
        {...props}
        onAdd={(name) => {
          setOpen(false);
          props.onAdd(name);
        }}
      />
    </Popover>
  );
}

function Choice({ chosen, onAdd }: Props) {
  const [text, setText] = useState("");
  const search = useThrottled(text.trim(), 200);
  const { data, error } = useInfiniteQuery({ ...studiesQuery({ search, sort: "-updated" }, SHOWN + chosen.length), refetchInterval: false });
  const found = data?.pages[0]?.studies.filter(({ name }) => !chosen.includes(name)).slice(0, SHOWN) ?? [];
  return (
    <Command label={t`Find a study`} shouldFilter={false} loop>
      <Command.Input className={styles.input} placeholder={t`Find a study …`} value={text} onValueChange={setText} />
      <Command.List className={`${choices.choices} ${styles.list}`} label={t`Studies that were found`}>
        {error !== null ? (
          <p className={`${choices.none} ${styles.none}`} role="alert">
            {error.message}
          </p>
        ) : data === undefined ? null : (
          <Command.Empty className={`${choices.none} ${styles.none}`}>{t`No other study matches.`}</Command.Empty>
        )}
        {found.map(({ name, state }) => (
          <Command.Item key={name} value={name} onSelect={() => onAdd(name)}>
            {name} <span className={choices.soft}>{stateText(state)}</span>
          </Command.Item>
        ))}
      </Command.List>
    </Command>
  );
}
