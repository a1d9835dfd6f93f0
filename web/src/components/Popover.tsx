import { Popover as Radix } from "radix-ui";
import type { ReactNode } from "react";
import styles from "./Popover.module.css";

/** A small panel that a button opens; Escape and a press outside close it. */
export function Popover({ trigger, label, children }: { trigger: ReactNode; label: string; children: ReactNode }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className={styles.panel} align="end" sideOffset={6} collisionPadding={8} aria-label={label}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
