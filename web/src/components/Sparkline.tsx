import styles from "./Sparkline.module.css";

const WIDTH = 72;
const HEIGHT = 20;
const EDGE = 2;

/** A small line of values in steps, without axes; nothing for fewer than two values. `label`: what it shows, in words. */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (place: number) => EDGE + (place / (values.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (value: number) => (high === low ? HEIGHT / 2 : HEIGHT - EDGE - ((value - low) / (high - low)) * (HEIGHT - 2 * EDGE));
  const path = values.map((value, place) => (place === 0 ? `M${x(0).toFixed(1)} ${y(value).toFixed(1)}` : `H${x(place).toFixed(1)}V${y(value).toFixed(1)}`)).join("");
  return (
    <svg className={styles.line} role="img" aria-label={label} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT}>
      <title>{label}</title>
      <path d={path} />
      <circle cx={x(values.length - 1)} cy={y(values.at(-1) ?? 0)} r={2} />
    </svg>
  );
}
