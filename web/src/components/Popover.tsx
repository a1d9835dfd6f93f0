import { Popover as Radix } from "radix-ui";
import type { ReactNode } from "react";
import styles from "./Popover.module.css";

interface Props {
  trigger: ReactNode;
  label: string;
  /** Where something within closes it too: whether it is open, and what is told of that. */
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  align?: "start" | "end";
  children: ReactNode;
}

/** A small panel that a button opens; Escape and a press outside close it. */
export function Popover({ trigger, label, align = "end", children, ...control }: Props) {
  return (
    <Radix.Root {...control}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className={styles.panel} align={align} sideOffset={6} collisionPadding={8} aria-label={label}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
