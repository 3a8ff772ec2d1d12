import { Code, ConnectError } from "@connectrpc/connect";

import { MissingVerbSchema } from "../gen/console/v1/about_pb";

/** without is how the console refuses somebody who lacks a verb. */
export function without(verb: string): ConnectError {
  return new ConnectError(`ada lacks the verb ${verb}`, Code.PermissionDenied, undefined, [{ desc: MissingVerbSchema, value: { user: "ada", verb } }]);
}

/** silent is what a call comes to while the console is gone. */
export const silent = (): ConnectError => new ConnectError("connection refused", Code.Unavailable);
