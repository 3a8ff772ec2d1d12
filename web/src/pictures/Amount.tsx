import { sized, type Whole } from "./amount";

const exact = new Intl.NumberFormat("en-US");

/** A number of bytes in words, exact for whoever points at it. */
export function Amount({ bytes }: { readonly bytes: Whole }) {
  return (
    <data className="picture-amount" value={String(bytes)} title={`${exact.format(bytes)} B`}>
      {sized(bytes)}
    </data>
  );
}
