import { NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";

import { fieldOf, kindOf, lasts, linkOf, mistakeIn } from "../../words/period";

interface PeriodProps {
  /** As links say them; empty: none. */
  since: string;
  until: string;
  onChange: (change: { since: string; until: string }) => void;
}

const choices = [
  { value: "any", label: "Any time" },
  ...Object.entries(lasts).map(([value, { label }]) => ({ value, label })),
  { value: "between", label: "From … to …" },
];

/** Period chooses of when actions are shown: a span that ends now, or from one time to another. */
export function Period({ since, until, onChange }: PeriodProps) {
  // Without a time yet "from … to …" is nothing that a link could say.
  const [between, setBetween] = useState(false);
  const [now] = useState(() => new Date());
  const said = kindOf(since, until);
  const kind = said === "any" && between ? "between" : said;
  const choose = (value: string): void => {
    setBetween(value === "between");
    if (value === "between") {
      onChange({ since: linkOf(fieldOf(since, new Date())), until });
      return;
    }
    onChange({ since: value === "any" ? "" : value, until: "" });
  };
  return (
    <>
      <NativeSelect size="xs" label="When" value={kind} data={choices} onChange={(event) => choose(event.currentTarget.value)} />
      {kind === "between" && (
        <>
          <TextInput size="xs" type="datetime-local" label="From" value={fieldOf(since, now)} onChange={(event) => onChange({ since: linkOf(event.currentTarget.value), until })} />
          <TextInput
            size="xs"
            type="datetime-local"
            label="To"
            value={fieldOf(until, now)}
            error={mistakeIn(since, until, now)}
            onChange={(event) => onChange({ since, until: linkOf(event.currentTarget.value) })}
          />
        </>
      )}
    </>
  );
}
