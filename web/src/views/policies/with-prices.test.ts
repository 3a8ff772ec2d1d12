import { expect, it } from "vitest";

import { withPrices } from "./with-prices";

const yaml = "spec:\n  # as agreed\n  backendRef: local\n  prices:\n    networkGiB: 0\n";

it("puts prices into the text of a policy and leaves the rest", () => {
  expect(withPrices(yaml, { storageGiBMonth: 0.03, paybackMonths: 12 })).toBe('spec:\n  # as agreed\n  backendRef: local\n  prices:\n    networkGiB: 0\n    storageGiBMonth: "0.03"\n    paybackMonths: 12\n');
  expect(withPrices("spec:\n  backendRef: local\n", { networkGiB: 0.5 })).toBe('spec:\n  backendRef: local\n  prices:\n    networkGiB: "0.5"\n');
});

it("leaves a text as it is that it cannot read, or without prices", () => {
  expect(withPrices("spec: [", { networkGiB: 1 })).toBe("spec: [");
  expect(withPrices(yaml, {})).toBe(yaml);
});
