import { autocompletion, completionKeymap, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { Annotation, EditorState, type Text } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useImperativeHandle, useRef, type Ref } from "react";
import { placeOf, wordsAt } from "@/lib/place";

/** What is wrong in the text. Lines and columns count from 1, in characters; a length of 0 means the whole line. */
export interface Marked {
  line: number;
  column: number;
  length: number;
  message: string;
}

export interface EditorHandle {
  /** Move the cursor to a problem. */
  show: (problem: Marked) => void;
}

interface Props {
  handle?: Ref<EditorHandle>;
  /** The text. The editor replaces its own if it changes in another way than by `onChange`. */
  text: string;
  label: string;
  describedBy: string;
  problems: readonly Marked[];
  words: Readonly<Record<string, readonly string[]>>;
  onChange: (text: string) => void;
}

/** A YAML editor that marks problems in the text and completes the words that are allowed at the cursor. Tab leaves the editor. */
export default function YamlEditor({ handle, text, label, describedBy, problems, words, onChange }: Props) {
  const parent = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const latest = useRef({ words, onChange, isInvalid: problems.length > 0 });
  useEffect(() => {
    latest.current = { words, onChange, isInvalid: problems.length > 0 };
  });
  const first = useRef({ text, label, describedBy });
  // The texts that the editor has reported and not yet got back.
  const reported = useRef<string[]>([]);

  useEffect(() => {
    if (parent.current === null) return;
    const editor = new EditorView({
      parent: parent.current,
      state: EditorState.create({
        doc: first.current.text,
        extensions: [
          lineNumbers(),
          lintGutter(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          yaml(),
          syntaxHighlighting(COLOURS),
          autocompletion({ override: [(context) => complete(context, latest.current.words)] }),
          keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
          EditorView.contentAttributes.of(() => ({
            tabindex: "0",
            "aria-label": first.current.label,
            "aria-describedby": first.current.describedBy,
            "aria-invalid": String(latest.current.isInvalid),
            spellcheck: "false",
            autocapitalize: "off",
          })),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((one) => one.annotation(FROM_OUTSIDE) === true)) return;
            const typed = update.state.doc.toString();
            reported.current.push(typed);
            latest.current.onChange(typed);
          }),
          LOOK,
        ],
      }),
    });
    view.current = editor;
    return () => {
      view.current = null;
      editor.destroy();
    };
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    // A reported text comes back late while the user types on. It must not replace what was typed since.
    const place = reported.current.indexOf(text);
    reported.current = place === -1 ? [] : reported.current.slice(place + 1);
    if (place === -1 && editor.state.doc.toString() !== text) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text }, annotations: FROM_OUTSIDE.of(true) });
    }
  }, [text]);

  useEffect(() => {
    const editor = view.current;
    if (editor !== null) editor.dispatch(setDiagnostics(editor.state, problems.map((problem) => diagnostic(editor.state.doc, problem))));
  }, [problems, text]);

  useImperativeHandle(handle, () => ({
    show: (problem) => {
      const editor = view.current;
      if (editor === null) return;
      const { from, to } = diagnostic(editor.state.doc, problem);
      editor.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
      editor.focus();
    },
  }));

  return <div ref={parent} />;
}

/** Convert a problem's position: the service counts characters, the editor counts UTF-16 units. */
function diagnostic(doc: Text, { line, column, length, message }: Marked): Diagnostic {
  const place = doc.line(Math.min(line, doc.lines));
  const characters = Array.from(place.text);
  const start = characters.slice(0, column - 1).join("").length;
  const end = length === 0 ? place.text.length : characters.slice(0, column - 1 + length).join("").length;
  const from = Math.min(place.from + start, place.to);
  return { from, to: Math.max(from, Math.min(place.from + end, place.to)), severity: "error", message };
}

function complete(context: CompletionContext, words: Props["words"]) {
  const word = context.matchBefore(/[\w-]*/);
  if (word === null || (word.from === word.to && !context.explicit)) return null;
  const line = context.state.doc.lineAt(context.pos);
  const lines = context.state.doc.toString().split("\n");
  const place = placeOf(lines, line.number - 1, word.from - line.from);
  const found = wordsAt(words, place);
  if (found.length === 0) return null;
  const isKey = place.field === undefined;
  return { from: word.from, options: found.map((text) => ({ label: text, apply: isKey ? `${text}: ` : text, type: isKey ? "property" : "constant" })), validFor: /^[\w-]*$/ };
}

const FROM_OUTSIDE = Annotation.define<boolean>();

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--series-1)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--series-2)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--soft)", fontStyle: "italic" },
]);

const LOOK = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "7px", overflow: "hidden" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { font: "0.85rem/1.55 var(--mono)", minHeight: "24rem", maxHeight: "calc(100dvh - 16rem)" },
  // Extend to the bottom of the frame, however short the text is.
  ".cm-gutter": { minHeight: "24rem" },
  ".cm-content": { minHeight: "24rem", caretColor: "var(--text)", padding: "0.6rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "7px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-diagnostic": { padding: "0.3rem 0.6rem", maxWidth: "36rem" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--bad)" },
});
