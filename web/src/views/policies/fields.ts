/** Field is what may stand at a place of a declared object. */
export interface Field {
  label: string;
  info: string;
}

const field = (label: string, info: string): Field => ({ label, info });

/** What may stand below a field of a policy; the empty one is the top. They are those of policies/schema.cue. */
export const below: Record<string, Field[]> = {
  "": [field("apiVersion", "restripe.io/v1alpha1"), field("kind", "RedundancyPolicy, RedundancyScheme or StorageBackend"), field("metadata", "metadata with a name"), field("spec", "what is declared")],
  metadata: [field("name", "of the object"), field("labels", "for whoever selects by them"), field("annotations", "notes")],
  spec: [
    field("backendRef", "the StorageBackend whose objects the policy is for"),
    field("selector", "which objects; of several policies the longest matching prefix wins"),
    field("ladder", "the schemes the class may ever take, hottest first"),
    field("default", "what new objects are written with; absent: the first of the ladder"),
    field("reliability", "picks the ladder by a target instead of by name"),
    field("packing", "below which size objects share groups"),
    field("repairOnRead", "what a read does about a lost block: wait, wake or never; absent: wait, which has it rebuilt at once"),
    field("keepVersions", "how many versions of an object are kept when it is put over, or durable; absent: none"),
    field("expireAfter", "how long objects are there whose put does not say; absent: until they are deleted"),
    field("temperature", "moves groups along the ladder by how often they are used"),
    field("pin", "keeps all of the class on one scheme until a time, whatever its temperature"),
    field("budget", "limits what transitions may use"),
    field("windows", "the times at which transitions may run; none: always"),
    field("approval", "whether a person must approve transitions"),
    field("stopPolicy", "None moves as declared; Hold starts nothing new; HoldAndDrain also cancels what runs"),
    field("prices", "replace the built-in price table, entry by entry"),
    field("historyLimit", "how many ended transitions are kept, 0 to 100"),
  ],
  selector: [field("class", "the class at the gateways; absent: the policy's own name"), field("prefixes", 'prefixes of keys; "" is every key')],
  reliability: [
    field("nines", "nines of a year's durability, 1 to 15"),
    field("annualFailurePercent", "how many of a hundred nodes fail for good in a year; absent: 4"),
    field("repairBandwidth", "bytes per second that rebuild a lost node; absent: 100Mi"),
    field("maxOverhead", 'bytes stored per byte that the coldest step may cost; absent: "1.5"'),
  ],
  packing: [
    field("below", "a size such as 64Ki; 0: no objects share groups"),
    field("delay", "how long a small object waits for company, at most 1m"),
    field("mode", "auto: small objects wait while they come fast enough; batch: always; at-once: never; absent: auto"),
    field("groupBytes", "user bytes of a group of a large object, 64Ki to 64Mi"),
    field("deadAtMostPercent", "how much may be dead beside small objects, in percent of what lives, 5 to 1000; 1000: any; absent: 15"),
    field("hotKeys", "keeps small objects whose keys are read much under another scheme; absent: all are kept alike"),
  ],
  hotKeys: [
    field("scheme", "one of the ladder: the default, or one before it"),
    field("reads", "how many reads within a half-life make a key a hot one; below half of them it has cooled"),
  ],
  temperature: [
    field("mode", "auto: where it costs least, and nothing else is needed; rules: by the bounds below; absent: rules where there are any"),
    field("halfLife", "after how long an access counts half; absent: 24h"),
    field("rules", "tried in order; the first whose bounds hold names the scheme"),
    field("hysteresisPercent", "by how much a group must be past a bound before it moves back; absent: 25"),
    field("dwell", "how long a group stays under a scheme at least; absent: 6h"),
  ],
  rules: [field("scheme", "one of the ladder"), field("atLeast", "accesses a day of a group"), field("below", "accesses a day of a group")],
  pin: [field("scheme", "one of the ladder"), field("until", "when the pin ends, such as 2026-12-27T00:00:00Z; at most 366 days ahead"), field("reason", "why, in words"), field("by", "who pinned it")],
  budget: [
    field("bytesPerSecond", "read, sent and written, over all transitions of the policy, such as 40Mi"),
    field("nodeBytesPerSecond", "the same for any one node"),
    field("failureDomainBytesPerSecond", "the same for the nodes of any one failure domain"),
    field("concurrency", "transitions at once, 1 to 16; absent: 1"),
    field("foregroundLatency", "the 99th percentile of client requests above which transitions give way"),
  ],
  windows: [
    field("kind", "Allow or Deny; absent: Allow"),
    field("schedule", 'when it opens: "0 22 * * *" or @daily'),
    field("duration", "how long it stays open, at most 168h"),
    field("timeZone", "such as Europe/Berlin; absent: UTC"),
    field("overrun", "what happens to what runs when it ends: Finish or Pause; absent: Pause"),
  ],
  approval: [field("mode", "Auto, Manual or ManualAbove; absent: Auto"), field("aboveBytes", "transitions that send more need approval, such as 10Gi"), field("aboveCost", "transitions that cost more need approval")],
  prices: [
    field("storageGiBMonth", "the price of a GiB for a month"),
    field("networkGiB", "the price of sending a GiB"),
    field("millionOperations", "the price of a million operations"),
    field("paybackMonths", "within how many months a transition must pay"),
  ],
};

/** The values of fields that have few. */
export const values: Record<string, string[]> = {
  apiVersion: ["restripe.io/v1alpha1"],
  kind: ["RedundancyPolicy", "RedundancyScheme", "StorageBackend", "Allow", "Deny"],
  stopPolicy: ["None", "Hold", "HoldAndDrain"],
  overrun: ["Finish", "Pause"],
  mode: ["Auto", "Manual", "ManualAbove"],
};

/** fieldAbove is the field that what stands on a line belongs to, by how far lines are indented; empty at the top. */
export function fieldAbove(lines: string[], line: number): string {
  const indentOf = (text: string): number => /^(\s*(?:- )?\s*)/.exec(text)?.[0].length ?? 0;
  let indent = indentOf(lines[line] ?? "");
  for (let i = line - 1; i >= 0 && indent > 0; i--) {
    const text = lines[i] ?? "";
    const key = /^(\s*(?:- )?\s*)(\w+):\s*(#.*)?$/.exec(text);
    if (text.trim() === "" || text.trim().startsWith("#")) continue;
    if (key?.[1] !== undefined && key[2] !== undefined && (key[1].length < indent || (key[1].length <= indent && (lines[line] ?? "").trimStart().startsWith("-")))) return key[2];
    indent = Math.min(indent, Math.max(indentOf(text), 1));
  }
  return "";
}
