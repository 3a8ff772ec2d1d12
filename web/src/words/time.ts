import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";

/** moment is a time as people of this browser write it; empty where there is none. */
export function moment(at: Timestamp | undefined): string {
  return at === undefined ? "" : timestampDate(at).toLocaleString();
}

/** order is a time as a number that sorts. */
export function order(at: Timestamp | undefined): number {
  return at === undefined ? 0 : timestampDate(at).getTime();
}
