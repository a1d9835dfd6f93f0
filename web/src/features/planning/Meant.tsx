import { t } from "@lingui/core/macro";
import { nearest } from "@/lib/nearest";

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
