import { t } from "@lingui/core/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { AddButton } from "@/components/AddButton";
import { stateText } from "@/components/Badge";
import { Finder } from "@/components/Finder";
import { useThrottled } from "@/lib/clock";
import { studiesQuery } from "./api";

const SHOWN = 8;

interface Props {
  /** Studies that are not offered. */
  chosen: readonly string[];
  onAdd: (name: string) => void;
}

/** A button that opens a search for a study. */
export function AddStudy({ chosen, onAdd }: Props) {
  return (
    <AddButton text={t`Add a study …`} label={t`Add a study`} onAdd={onAdd}>
      {(add) => <Choice chosen={chosen} onAdd={add} />}
    </AddButton>
  );
}

function Choice({ chosen, onAdd }: Props) {
  const [text, setText] = useState("");
  const search = useThrottled(text.trim(), 200);
  const { data, error } = useInfiniteQuery({ ...studiesQuery({ search, sort: "-updated" }, SHOWN + chosen.length), refetchInterval: false });
  const found = data?.pages[0]?.studies.filter(({ name }) => !chosen.includes(name)).slice(0, SHOWN) ?? [];
  return (
    <Finder
      label={t`Find a study`}
      placeholder={t`Find a study …`}
      list={t`Matching studies`}
      text={text}
      onText={setText}
      offers={found.map(({ name, state }) => ({ name, about: stateText(state) }))}
      none={data === undefined ? null : t`No matching studies.`}
      error={error}
      onChoose={onAdd}
    />
  );
}
