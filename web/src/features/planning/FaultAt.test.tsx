// @vitest-environment jsdom
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FaultAt, Faults, useFields } from "./FaultAt";
import type { Fault } from "./faults";

const FAULTS: Fault[] = [
  { field: "name", message: "taken" },
  { field: "parameters.n.min", message: "too small" },
];

/** A form that shows parameters by name, next to a text that speaks of the same by chance. */
function Form({ faults, parameters }: { faults: readonly Fault[]; parameters: string[] }) {
  const [context, elsewhere] = useFields(faults);
  return (
    <Faults value={context}>
      <p>too small</p>
      {parameters.map((name) => (
        <FaultAt key={name} at={`parameters.${name}`}>
          {(message) => <i>{message}</i>}
        </FaultAt>
      ))}
      <output>{elsewhere.map(({ message }) => message).join()}</output>
    </Faults>
  );
}

let root: Root;
let place: HTMLElement;

function show(faults: readonly Fault[], parameters: string[]) {
  act(() => root.render(<Form faults={faults} parameters={parameters} />));
  return [place.querySelector("output")?.textContent, [...place.querySelectorAll("i")].map(({ textContent }) => textContent).join()];
}

beforeEach(() => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  place = document.createElement("div");
  root = createRoot(place);
});

afterEach(() => act(() => root.unmount()));

it("returns the faults that no field shows", () => {
  expect(show(FAULTS, ["x", "n"])).toEqual(["taken", ",too small"]);
  // A field that is hidden shows nothing any more, though nothing else is wrong than before.
  expect(show(FAULTS, ["x"])).toEqual(["taken,too small", ""]);
  expect(show(FAULTS, ["n"])).toEqual(["taken", "too small"]);
  expect(show([], ["n"])).toEqual(["", ""]);
  expect(show(FAULTS.slice(1), [])).toEqual(["too small", ""]);
});

it("keeps a fault assigned until the last of two fields is gone", () => {
  expect(show(FAULTS, ["n", "n.min"])).toEqual(["taken", "too small,too small"]);
  expect(show(FAULTS, ["n.min"])).toEqual(["taken", "too small"]);
});
