/** CuePlace is where in CUE something is being written. */
export interface CuePlace {
  /** The fields that it is below, from the top. */
  readonly path: readonly string[];
  /** It stands in a text or a comment, where no field can be. */
  readonly quoted: boolean;
}

// A frame is what a bracket opened: below which fields, and which fields the line in it has begun.
interface Frame {
  readonly path: readonly string[];
  line: string[];
}

const token = /\/\/[^\n]*|"""[\s\S]*?(?:"""|$)|"(?:[^"\\\n]|\\.)*"?|#?[A-Za-z_$][\w$]*|[{}[\],\n:]/g;

/** placeInCue is the place at the end of a text. Texts that are not whole are read as far as they go. */
export function placeInCue(before: string): CuePlace {
  const frames: Frame[] = [{ path: [], line: [] }];
  let word = "";
  let last = "";
  for (const [found] of before.matchAll(token)) {
    const frame = frames.at(-1) ?? { path: [], line: [] };
    last = found;
    switch (found) {
      case ":":
        if (word !== "") frame.line.push(word);
        break;
      case "{":
      case "[":
        frames.push({ path: [...frame.path, ...frame.line], line: [] });
        break;
      case "}":
      case "]":
        if (frames.length > 1) frames.pop();
        break;
      case ",":
      case "\n":
        frame.line = [];
        break;
    }
    // A field is a name, or one in quotes, right before its colon.
    word = /^[A-Za-z_$]/.test(found) ? found : /^"[^"]*"$/.test(found) ? found.slice(1, -1) : "";
  }
  const frame = frames.at(-1) ?? { path: [], line: [] };
  const quoted = before.endsWith(last) && (last.startsWith("//") || (last.startsWith('"') && !/^"([^"\\]|\\.)*"$/.test(last)));
  return { path: [...frame.path, ...frame.line], quoted };
}
