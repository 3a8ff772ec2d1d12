import { Code, ConnectError } from "@connectrpc/connect";

import { MissingVerbSchema } from "../gen/console/v1/about_pb";

/** Problem is why a call came to nothing, so that a view can say what to do. */
export type Problem =
  | { kind: "denied"; verb: string; user: string; text: string }
  | { kind: "unknown-user"; text: string }
  | { kind: "disconnected"; text: string }
  | { kind: "missing"; text: string }
  | { kind: "refused"; text: string }
  | { kind: "failed"; text: string };

/** problemOf tells the kinds of errors apart by their code, never by their text. */
export function problemOf(error: unknown): Problem {
  const refusal = ConnectError.from(error);
  const text = refusal.rawMessage;
  switch (refusal.code) {
    case Code.PermissionDenied: {
      const missing = refusal.findDetails(MissingVerbSchema)[0];
      return { kind: "denied", verb: missing?.verb ?? "", user: missing?.user ?? "", text };
    }
    case Code.Unauthenticated:
      return { kind: "unknown-user", text };
    case Code.NotFound:
      return { kind: "missing", text };
    case Code.Unavailable:
    case Code.DeadlineExceeded:
      return { kind: "disconnected", text };
    case Code.Unknown:
      // The browser's own failure to reach a server has no code.
      return refusal.cause instanceof TypeError ? { kind: "disconnected", text: "The console does not answer." } : { kind: "failed", text };
    case Code.InvalidArgument:
    case Code.FailedPrecondition:
    case Code.Aborted:
    case Code.AlreadyExists:
    case Code.OutOfRange:
    case Code.ResourceExhausted:
      return { kind: "refused", text };
    default:
      return { kind: "failed", text };
  }
}
