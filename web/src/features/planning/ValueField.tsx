import { useState } from "react";
import { TextField } from "@/components/Field";
import { textOf, valueOf, valuesOf } from "@/lib/values";

interface Props {
  label: string;
  value: unknown;
  /** The value of an empty field. */
  placeholder?: string;
  hint?: string;
  error?: string | undefined;
  bare?: boolean;
  list?: boolean;
  onChange: (value: unknown) => void;
}

/** A field for a value, or for several separated by commas. Unfinished input ("0.", "a,") stays as typed. */
export function ValueField({ label, value, placeholder, hint, error, bare, list = false, onChange }: Props) {
  const [typed, setTyped] = useState(textOf(value));
  const read = (text: string): unknown => (text.trim() === "" ? undefined : list ? valuesOf(text) : valueOf(text));
  // A change of the study file has priority.
  const shown = textOf(read(typed)) === textOf(value) ? typed : textOf(value);
  return (
    <TextField
      label={label}
      value={shown}
      error={error}
      {...(placeholder === undefined ? {} : { placeholder })}
      {...(hint === undefined ? {} : { hint })}
      {...(bare === undefined ? {} : { bare })}
      onChange={(event) => {
        setTyped(event.target.value);
        onChange(read(event.target.value));
      }}
    />
  );
}
