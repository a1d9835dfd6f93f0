import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import styles from "./Dialog.module.css";

interface Props {
  /** The button that opens the dialog. Without it, the parent opens the dialog. */
  trigger?: ReactNode;
  title: string;
  children: ReactNode;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

/** A modal dialog. Radix keeps the focus inside and restores it afterwards. */
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

/** The row of buttons at the end of a dialog. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
