import { useRef } from "react";

type Mutate<Input> = (input: Input, options: { onSuccess?: () => void; onSettled: () => void }) => void;

/** `mutate` that does nothing while it is at work: a second click may come before its button is seen to be disabled. */
export function useOneAtATime<Input>(mutate: Mutate<Input>): (input: Input, onSuccess?: () => void) => void {
  const working = useRef(false);
  return (input, onSuccess = () => undefined) => {
    if (working.current) return;
    working.current = true;
    mutate(input, { onSuccess, onSettled: () => (working.current = false) });
  };
}
