import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";

import { PolicySchema } from "../../gen/console/v1/policies_pb";
import { stateText } from "./PolicyState";

const having = (...types: string[]) =>
  create(PolicySchema, { name: "media", activeTransitions: 1, conditions: ["Ready", ...types].map((type) => ({ type, status: type === "Ready" ? "False" : "True" })) });

it("says that a policy moves only where something does", () => {
  expect(stateText(having("Progressing", "AwaitingApproval", "Paused", "Reconciling"))).toBe("moving");
  expect(stateText(having("AwaitingApproval", "Reconciling"))).toBe("to approve");
  expect(stateText(having("Paused", "Reconciling"))).toBe("paused");
  expect(stateText(having("Reconciling"))).toBe("converging");
  expect(stateText(having())).toBe("not ready");
});
