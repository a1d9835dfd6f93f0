import { t } from "@lingui/core/macro";
import type { Parameter, Trial } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import { choicesOf, isLogarithmic, isNumeric } from "@/lib/scale";
import { titled } from "@/lib/units";

/** The share of an axis' length by which trials without a value (their condition is not met) lie below its range. */
const BELOW = 0.1;

/** Return a parameter's axis. Trials without a value get a separate place, so that their lines pass no value. */
export function axisOf(parameter: Parameter, trials: readonly Trial[], text: object) {
  const { name, unit, min = 0, max = 1 } = parameter;
  const title = titled(name, unit);
  const lacks = trials.some(({ params }) => params[name] === undefined);
  const none = t`none`;
  if (!isNumeric(parameter)) {
    const data = [...(lacks ? [none] : []), ...choicesOf(parameter).map((choice) => formatValue(choice))];
    const written = ({ params }: Trial) => (params[name] === undefined ? none : formatValue(params[name]));
    return { scale: { name: title, type: "category" as const, data, axisLabel: text }, written };
  }
  const log = isLogarithmic(parameter);
  const outside = log ? min * (min / max) ** BELOW : min - BELOW * (max - min);
  const written = ({ params }: Trial) => (typeof params[name] === "number" ? params[name] : outside);
  const formatter = (value: number) => (!lacks || value >= min ? formatValue(value) : value === outside ? none : "");
  const scale = { name: title, min: lacks ? outside : min, max, axisLabel: { ...text, formatter } };
  return { scale: log ? { ...scale, type: "log" as const } : { ...scale, type: "value" as const }, written };
}
