import { t } from "@lingui/core/macro";
import { createContext, useCallback, useContext, useLayoutEffect, useMemo, useState, type ReactNode } from "react";
import { nearest } from "@/lib/words";
import { messageFor, type Fault } from "./faults";

interface FaultsContext {
  faults: readonly Fault[];
  /** Register that a field shows this message. Returns a function that unregisters it. */
  show: (message: string) => () => void;
}

/** The faults of the form's study. */
export const Faults = createContext<FaultsContext>({ faults: [], show: () => () => undefined });

/** Return the value of `Faults` for a form's fields, and the faults that no field shows. */
export function useFields(faults: readonly Fault[]): [context: FaultsContext, elsewhere: readonly Fault[]] {
  const [shown, setShown] = useState<readonly string[]>([]);
  const show = useCallback((message: string) => {
    setShown((before) => [...before, message]);
    return () => setShown((before) => before.filter((_, place) => place !== before.indexOf(message)));
  }, []);
  const context = useMemo(() => ({ faults, show }), [faults, show]);
  return [context, faults.filter(({ message }) => !shown.includes(message))];
}

interface Props {
  /** A path in the file. Faults at or below it belong to this field. */
  at?: string;
  /** Paths of which only faults exactly there belong to this field. */
  just?: readonly string[];
  /** Renders the field with its error. */
  children: (message: string | undefined) => ReactNode;
}

/** A form field that shows the faults at its paths in the file. */
export function FaultAt({ at, just = [], children }: Props) {
  const { faults, show } = useContext(Faults);
  const message = (at === undefined ? undefined : messageFor(faults, at)) ?? faults.find(({ field }) => just.includes(field))?.message;
  useLayoutEffect(() => (message === undefined ? undefined : show(message)), [message, show]);
  return children(message);
}

/** Suggest the name that was probably meant; nothing if none is similar. */
export function Meant({ name, names, onChoose }: { name: string; names: readonly string[]; onChoose?: (name: string) => void }) {
  const found = nearest(name, names);
  if (found === undefined) return null;
  return onChoose === undefined ? (
    <>{t`Did you mean ${found}?`}</>
  ) : (
    <button type="button" style={{ border: 0, padding: 0, background: "none", color: "var(--accent)", textDecoration: "underline", cursor: "pointer" }} onClick={() => onChoose(found)}>
      {t`Did you mean ${found}?`}
    </button>
  );
}
