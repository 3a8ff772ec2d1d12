import { StreamLanguage, type StreamParser } from "@codemirror/language";

const keywords = /^(package|import|for|in|if|let|true|false|null)\b/;

/** cueParser tells comments, texts, numbers, fields and keywords of CUE apart, for their colours. */
const cueParser: StreamParser<{ long: boolean }> = {
  name: "cue",
  startState: () => ({ long: false }),
  copyState: (state) => ({ ...state }),
  token(stream, state) {
    if (state.long || stream.match('"""')) {
      state.long = !(state.long ? stream.match(/^.*?"""/) : stream.match(/^[^"]*"""/));
      if (state.long) stream.skipToEnd();
      return "string";
    }
    if (stream.eatSpace()) return null;
    if (stream.match(/^\/\/.*/)) return "comment";
    if (stream.match(/^"(?:[^"\\]|\\.)*"(?=[?!]?\s*:)/) || stream.match(/^#?[A-Za-z_$][\w$]*(?=[?!]?\s*:)/)) return "propertyName";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(keywords)) return "keyword";
    if (stream.match(/^[0-9][\w.]*/)) return "number";
    if (!stream.match(/^#?[A-Za-z_$][\w$]*/)) stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "//" } },
};

export const cueLanguage = StreamLanguage.define(cueParser);
