import { EditorView } from "@codemirror/view";
import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";

import { Format } from "../../gen/console/v1/policies_pb";
import { expectAccessible } from "../../testing/axe";
import { TextEditor } from "./TextEditor";

// jsdom lays nothing out, and lacks what CodeMirror asks where things are.
Range.prototype.getClientRects = () => [] as unknown as DOMRectList;

function editor(scheme: "light" | "dark", format = Format.YAML) {
  return (
    <MantineProvider forceColorScheme={scheme} env="test">
      <TextEditor text="spec: {} # note" onChange={vi.fn()} findings={[]} format={format} label="Text of media" />
    </MantineProvider>
  );
}

/** The editor that CodeMirror has under a label. */
function shown(): EditorView {
  const view = EditorView.findFromDOM(screen.getByLabelText("Text of media"));
  if (view === null) throw new Error("there is no editor");
  return view;
}

describe("the text editor", () => {
  it("is dark where the page is, and follows it", async () => {
    const { rerender } = render(editor("dark"));
    expect(shown().state.facet(EditorView.darkTheme)).toBe(true);
    rerender(editor("light"));
    expect(shown().state.facet(EditorView.darkTheme)).toBe(false);
    await expectAccessible();
  });

  it("colours the language that is chosen, and keeps the text", () => {
    const { rerender } = render(editor("light"));
    const comment = () => shown().state.languageDataAt<{ line?: string }>("commentTokens", 0)[0]?.line;
    expect(comment()).toBe("#");
    rerender(editor("light", Format.CUE));
    expect(comment()).toBe("//");
    expect(shown().state.doc.toString()).toBe("spec: {} # note");
  });
});
