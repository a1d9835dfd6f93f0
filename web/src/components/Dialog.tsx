import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import styles from "./Dialog.module.css";

interface Props {
  /** What opens it; without one, it is opened from elsewhere. */
  trigger?: ReactNode;
  title: string;
  children: ReactNode;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

/** A dialogue, as a rule one that a button opens. Radix keeps the focus inside and gives it back. */
export function Dialog({ trigger, title, children, open, onOpenChange }: Props) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      {trigger === undefined ? null : <Radix.Trigger asChild>{trigger}</Radix.Trigger>}
      <Radix.Portal>
        <Radix.Overlay className={styles.overlay} />
        <Radix.Content className={styles.content} aria-describedby={undefined}>
          <Radix.Title className={styles.title}>{title}</Radix.Title>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** The row of buttons at a dialogue's end. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
