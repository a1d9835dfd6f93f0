import { useState, type ReactNode } from "react";
import { Button } from "./Button";
import { Popover } from "./Popover";

interface Props {
  text: string;
  /** The accessible name of the panel. */
  label: string;
  onAdd: (name: string) => void;
  /** Renders the choice, which calls `add`. */
  children: (add: (name: string) => void) => ReactNode;
}

/** A button that opens a choice. The choice closes when something is chosen. */
export function AddButton({ text, label, onAdd, children }: Props) {
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
