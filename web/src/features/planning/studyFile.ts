import { t } from "@lingui/core/macro";
import { isCollection, isMap, parseDocument, stringify, type Document } from "yaml";

/** The content of a study file, which the form shows and edits. The service alone says what it means and what is wrong with it. */
export type StudyFile = Record<string, unknown>;
export type Path = readonly (string | number)[];

/** Why the text of a file is not YAML, and where. */
export class FileFault extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(`${field}: ${message}`);
    this.field = field;
  }
}

/** The content of a file. Throws FileFault with the line that is not YAML. */
export function read(text: string): StudyFile {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw new FileFault(t`line ${error.linePos?.[0].line ?? "?"}`, error.message.split("\n")[0] ?? "");
  const content: unknown = document.toJS();
  if (content === null) return {};
  if (!isObject(content)) throw new FileFault(t`the file`, t`names with values are expected, as in ${"{a: 1}"}`);
  return content;
}

/** The file with one value set, or removed where it is undefined; its other lines and comments stay as they are. */
export function edit(text: string, path: Path, value: unknown): string {
  const document: Document = parseDocument(text);
  if (!isMap(document.contents)) document.contents = document.createNode({});
  if (value === undefined) {
    if (document.hasIn(path)) document.deleteIn(path);
  } else {
    // A plain value on the way to the path is replaced by a mapping.
    for (let depth = 1; depth < path.length; depth++) {
      const inner = document.getIn(path.slice(0, depth));
      if (typeof inner !== "object" || inner === null) document.setIn(path.slice(0, depth), document.createNode({}));
    }
    document.setIn(path, document.createNode(value, { flow: isShort(value) }));
  }
  // A mapping or list that has become empty is removed.
  for (let depth = path.length - 1; value === undefined && depth > 0; depth--) {
    const inner: unknown = document.getIn(path.slice(0, depth));
    if (isCollection(inner) && inner.items.length === 0) document.deleteIn(path.slice(0, depth));
  }
  return document.toString({ lineWidth: 110, flowCollectionPadding: false });
}

/** Whether people write a value on one line. */
function isShort(value: unknown): boolean {
  return typeof value === "object" && value !== null && stringify(value, { collectionStyle: "flow", lineWidth: 0 }).length < 100;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
