import { expect, it } from "vitest";

import { leading } from "./columns";

it.each([
  [400, ["a", "b", "c"]],
  [399, ["a", "b"]],
  [100, ["a"]],
  [50, ["a"]],
])("in %i pixels there is room for %j", (room, fit) => {
  const columns = [
    { id: "a", width: 100 },
    { id: "b", width: 200 },
    { id: "c", width: 100 },
  ];
  expect(leading(columns, room).map(({ id }) => id)).toEqual(fit);
});
