import { Command } from "cmdk";
import choices from "./Choices.module.css";
import styles from "./Finder.module.css";

interface Props {
  /** What is looked for. */
  label: string;
  placeholder: string;
  /** What the list is called. */
  list: string;
  text: string;
  onText: (text: string) => void;
  /** What there is to choose from with this text. */
  offers: readonly { name: string; about: string }[];
  /** What is said where there is nothing; null: nothing yet. */
  none: string | null;
  error?: Error | null;
  onChoose: (name: string) => void;
}

/** A list to choose from by keyboard, which follows what one types. */
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
