import { useRef } from "react";

type Mutate<Input> = (input: Input, options: { onSuccess?: () => void; onSettled: () => void }) => void;

/** Return a `mutate` that ignores calls while one is running. A second click can arrive before its button is disabled. */
export function useOneAtATime<Input>(mutate: Mutate<Input>): (input: Input, onSuccess?: () => void) => void {
  const working = useRef(false);
  return (input, onSuccess = () => undefined) => {
    if (working.current) return;
    working.current = true;
    mutate(input, { onSuccess, onSettled: () => (working.current = false) });
  };
}
