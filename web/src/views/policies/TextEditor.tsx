import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { Compartment, EditorState, type Extension, type Text } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";

import { Format, type Finding } from "../../gen/console/v1/policies_pb";
import { completing } from "./completion";
import { cueLanguage } from "./cue-language";
import styles from "./TextEditor.module.css";

interface TextEditorProps {
  text: string;
  onChange: (text: string) => void;
  findings: Finding[];
  format: Format;
  label: string;
}

// The colours are those of TextEditor.module.css, which has them for light and dark.
const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--editor-field)" },
  { tag: [tags.string, tags.content], color: "var(--editor-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--editor-number)" },
  { tag: [tags.keyword, tags.typeName, tags.labelName], color: "var(--editor-keyword)" },
  { tag: tags.comment, color: "var(--editor-comment)", fontStyle: "italic" },
]);

const language = (format: Format): Extension => [format === Format.CUE ? cueLanguage : yaml(), autocompletion({ override: [completing(format)] })];

const written = new Compartment();
const shade = new Compartment();

/** TextEditor edits YAML or CUE, with mistakes marked where they are. Tab leaves it, as in other fields. */
export function TextEditor({ text, onChange, findings, format, label }: TextEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const change = useRef(onChange);
  const dark = useComputedColorScheme("light") === "dark";
  const start = useRef({ text, format, dark });
  useEffect(() => {
    change.current = onChange;
  }, [onChange]);
  useEffect(() => {
    if (place.current === null) return;
    const editor = new EditorView({
      parent: place.current,
      doc: start.current.text,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        lintGutter(),
        written.of(language(start.current.format)),
        shade.of(EditorView.darkTheme.of(start.current.dark)),
        syntaxHighlighting(colours),
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
  useEffect(() => view.current?.dispatch({ effects: written.reconfigure(language(format)) }), [format]);
  useEffect(() => view.current?.dispatch({ effects: shade.reconfigure(EditorView.darkTheme.of(dark)) }), [dark]);
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
