import { Command } from "cmdk";
import { useState, type ReactNode } from "react";
import { Button } from "./Button";
import choices from "./Choices.module.css";
import styles from "./Finder.module.css";
import { Popover } from "./Popover";

interface Props {
  /** The accessible name of the search field. */
  label: string;
  placeholder: string;
  /** The accessible name of the list. */
  list: string;
  text: string;
  onText: (text: string) => void;
  /** The entries that match the text. */
  offers: readonly { name: string; about: string }[];
  /** The text for an empty list; null while the list is loading. */
  none: string | null;
  error?: Error | null;
  onChoose: (name: string) => void;
}

/** A search field with a list of matches to choose from by keyboard. */
export function Finder({ label, placeholder, list, text, onText, offers, none, error = null, onChoose }: Props) {
  return (
    <Command label={label} shouldFilter={false} loop>
      <Command.Input className={styles.input} placeholder={placeholder} value={text} onValueChange={onText} />
      <Command.List className={`${choices.choices} ${styles.list}`} label={list}>
        {error !== null ? (
          <p className={`${choices.none} ${styles.none}`} role="alert">
            {error.message}
          </p>
        ) : none === null ? null : (
          <Command.Empty className={`${choices.none} ${styles.none}`}>{none}</Command.Empty>
        )}
        {offers.map(({ name, about }) => (
          <Command.Item key={name} value={name} onSelect={() => onChoose(name)}>
            {name} <span className={choices.soft}>{about}</span>
          </Command.Item>
        ))}
      </Command.List>
    </Command>
  );
}

interface AddButtonProps {
  text: string;
  /** The accessible name of the panel. */
  label: string;
  onAdd: (name: string) => void;
  /** Renders the choice, which calls `add`. */
  children: (add: (name: string) => void) => ReactNode;
}

/** A button that opens a choice. The choice closes when something is chosen. */
export function AddButton({ text, label, onAdd, children }: AddButtonProps) {
  const [open, setOpen] = useState(false);
  function add(name: string) {
    setOpen(false);
    onAdd(name);
  }
  return (
    <Popover trigger={<Button small>{text}</Button>} label={label} open={open} onOpenChange={setOpen} align="start">
      {children(add)}
    </Popover>
  );
}
