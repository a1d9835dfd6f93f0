import { createContext, useCallback, useContext, useLayoutEffect, useMemo, useState, type ReactNode } from "react";
import { messageFor, type Fault } from "./faults";

interface Told {
  faults: readonly Fault[];
  /** A field tells that it shows this message; what comes back takes that away. */
  show: (message: string) => () => void;
}

/** What is wrong with the study that a form is about. */
export const Faults = createContext<Told>({ faults: [], show: () => () => undefined });

/** For `Faults` around a form's fields, and those faults that none of the fields shows: they stand elsewhere, or there is no such field. */
export function useFields(faults: readonly Fault[]): [told: Told, elsewhere: readonly Fault[]] {
  const [shown, setShown] = useState<readonly string[]>([]);
  const show = useCallback((message: string) => {
    setShown((before) => [...before, message]);
    return () => setShown((before) => before.filter((_, place) => place !== before.indexOf(message)));
  }, []);
  const told = useMemo(() => ({ faults, show }), [faults, show]);
  return [told, faults.filter(({ message }) => !shown.includes(message))];
}

interface Props {
  /** A place in the file: what is wrong there or anywhere within it belongs to this field. */
  at?: string;
  /** Places of which only what is wrong with themselves does. */
  just?: readonly string[];
  /** The field, with what is wrong beside it. */
  children: (message: string | undefined) => ReactNode;
}

/** A field of the form that shows what is wrong at its places in the file. */
export function FaultAt({ at, just = [], children }: Props) {
  const { faults, show } = useContext(Faults);
  const message = (at === undefined ? undefined : messageFor(faults, at)) ?? faults.find(({ field }) => just.includes(field))?.message;
  useLayoutEffect(() => (message === undefined ? undefined : show(message)), [message, show]);
  return children(message);
}
