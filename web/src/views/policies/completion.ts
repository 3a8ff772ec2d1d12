import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";

import { Format } from "../../gen/console/v1/policies_pb";
import { placeInCue } from "./cue-place";
import { below, fieldAbove, values, type Field } from "./fields";

const validFor = /^\w*$/;

/** completing offers the fields that may stand at a place of a declared object, and the values of those that have few. */
export function completing(format: Format): (context: CompletionContext) => CompletionResult | null {
  return format === Format.CUE ? completeCue : completeYaml;
}

const asField = ({ label, info }: Field): Completion => ({ label, info, apply: `${label}: `, type: "property" });

// What is offered depends on the field that the line belongs to, or, after a colon, on the field of the line.
function completeYaml(context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/\w*/);
  if (word === null || (word.from === word.to && !context.explicit)) return null;
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, word.from - line.from);
  const key = /(\w+):\s*"?$/.exec(before)?.[1];
  if (key !== undefined) return { from: word.from, validFor, options: (values[key] ?? []).map((label) => ({ label, type: "enum" })) };
  if (!/^\s*(- )?$/.test(before)) return null;
  const above = fieldAbove(context.state.doc.toString().split("\n"), line.number - 1);
  return { from: word.from, validFor, options: (below[above] ?? []).map(asField) };
}

// CUE writes spec: budget: concurrency: 2 as well as braces, and its texts in quotes.
function completeCue(context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/\w*/);
  if (word === null || (word.from === word.to && !context.explicit)) return null;
  const before = context.state.doc.sliceString(0, word.from);
  const { path, quoted } = placeInCue(before);
  const last = path.at(-1) ?? "";
  const afterColon = /:\s*"?$/.test(before);
  if (afterColon && values[last] !== undefined) {
    return { from: word.from, validFor, options: values[last].map((label) => ({ label, apply: quoted ? label : `"${label}"`, type: "enum" })) };
  }
  if (quoted || !/(^|[{,:\n])[ \t]*$/.test(before)) return null;
  return { from: word.from, validFor, options: fieldsBelow(path).map(asField) };
}

// An object may stand below any names, so that names which no field has are those of objects.
function fieldsBelow(path: readonly string[]): Field[] {
  const known = path.findIndex((name) => name !== "" && below[name] !== undefined);
  const last = path.at(-1) ?? "";
  return known < 0 ? (below[""] ?? []) : (below[last] ?? []);
}
