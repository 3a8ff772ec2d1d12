import { Safety } from "../gen/console/v1/overview_pb";

/** safetyWord is a verdict as marks name it. */
export function safetyWord(safety: Safety): string {
  switch (safety) {
    case Safety.SAFE:
      return "Safe";
    case Safety.EMPTY:
      return "Empty";
    case Safety.REDUCED:
      return "Reduced";
    case Safety.UNPROTECTED:
      return "Unprotected";
    case Safety.BEHIND:
      return "Catalog behind";
    case Safety.UNSPECIFIED:
      return "Unknown";
  }
}
