import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, defaultHighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState, type Text } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";

import type { Finding } from "../../gen/console/v1/policies_pb";
import { below, fieldAbove, values } from "./fields";
import styles from "./TextEditor.module.css";

interface TextEditorProps {
  text: string;
  onChange: (text: string) => void;
  findings: Finding[];
  label: string;
}

/** TextEditor edits YAML or CUE, with mistakes marked where they are. Tab leaves it, as in other fields. */
export function TextEditor({ text, onChange, findings, label }: TextEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const change = useRef(onChange);
  const start = useRef(text);
  useEffect(() => {
    change.current = onChange;
  }, [onChange]);
  useEffect(() => {
    if (place.current === null) return;
    const editor = new EditorView({
      parent: place.current,
      doc: start.current,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        lintGutter(),
        yaml(),
        syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
        autocompletion({ override: [complete] }),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorState.tabSize.of(2),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) change.current(update.state.doc.toString());
        }),
      ],
    });
    view.current = editor;
    return () => editor.destroy();
  }, [label]);
  useEffect(() => {
    const editor = view.current;
    if (editor === undefined) return;
    editor.dispatch(setDiagnostics(editor.state, findings.filter(({ line }) => line > 0).map((finding) => diagnosticOf(editor.state.doc, finding))));
  }, [findings]);
  return <div ref={place} className={styles.editor} />;
}

/** diagnosticOf marks from where the console found a mistake to the end of the word there. */
export function diagnosticOf(document: Text, { line, column, severity, message }: Finding): Diagnostic {
  const at = document.line(Math.min(Math.max(line, 1), document.lines));
  const from = Math.min(at.from + Math.max(column - 1, 0), at.to);
  const word = /^[^\s,\]}]+/.exec(document.sliceString(from, at.to))?.[0] ?? "";
  return { from, to: from + word.length, severity: severity === "error" ? "error" : "warning", message };
}

// What is offered depends on the field that the line belongs to, or, after a colon, on the field of the line.
function complete(context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/\w*/);
  if (word === null || (word.from === word.to && !context.explicit)) return null;
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, word.from - line.from);
  const key = /(\w+):\s*"?$/.exec(before)?.[1];
  const validFor = /^\w*$/;
  if (key !== undefined) return { from: word.from, validFor, options: (values[key] ?? []).map((label) => ({ label, type: "enum" })) };
  if (!/^\s*(- )?$/.test(before)) return null;
  const above = fieldAbove(context.state.doc.toString().split("\n"), line.number - 1);
  return { from: word.from, validFor, options: (below[above] ?? []).map(({ label, info }) => ({ label, info, apply: `${label}: `, type: "property" })) };
}
