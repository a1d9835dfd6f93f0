import { t } from "@lingui/core/macro";
import { isCollection, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, stringify, type Document } from "yaml";

/** The content of a study file, which the form shows and edits. The service alone says what it means and what is wrong with it. */
export type StudyFile = Record<string, unknown>;
export type Path = readonly (string | number)[];

/** Why the text of a file is not YAML, and where. */
export class FileFault extends Error {
  readonly field: string;
  readonly line: number;

  constructor(field: string, message: string, line: number) {
    super(`${field}: ${message}`);
    this.field = field;
    this.line = line;
  }
}

/** The content of a file. Throws FileFault with the line that is not YAML. */
export function read(text: string): StudyFile {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) {
    const line = error.linePos?.[0].line ?? 1;
    throw new FileFault(t`line ${line}`, error.message.split("\n")[0] ?? "", line);
  }
  const content: unknown = document.toJS();
  if (content === null) return {};
  if (!isObject(content)) throw new FileFault(t`the file`, t`names with values are expected, as in ${"{a: 1}"}`, 1);
  return content;
}

/** Return the line of a field such as `objectives[0].metric`, or of the nearest field around it that the file has; from 1. */
export function lineOf(text: string, field: string): number | undefined {
  const lines = new LineCounter();
  let node: unknown = parseDocument(text, { lineCounter: lines }).contents;
  let found: number | undefined;
  for (const part of field.split(/[.[\]]+/).filter(Boolean)) {
    let place: unknown;
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part);
      place = pair?.key;
      node = pair?.value;
    } else if (isSeq(node)) {
      place = node.items[Number(part)];
      node = place;
    }
    if (!isNode(place) || !place.range) break;
    found = lines.linePos(place.range[0]).line;
  }
  return found;
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
