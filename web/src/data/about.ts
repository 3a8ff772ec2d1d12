import type { About, WhoAmIResponse } from "../gen/console/v1/about_pb";
import { useQueryClient } from "@tanstack/react-query";

import { useQuestion } from "./asking";
import { useReach, type Following } from "./console";
import { readToken, writeToken } from "./session";

export function useAbout(): Following<About> {
  return useQuestion({ key: ["about"], ask: (client, signal) => client.getAbout({}, { signal }) });
}

export function useWhoAmI(): Following<WhoAmIResponse> {
  return useQuestion({ key: ["who"], ask: (client, signal) => client.whoAmI({}, { signal }), refetchMilliseconds: 60_000 });
}

/** The verbs of the console, as docs and refusals name them. */
export type Verb = "get" | "plan" | "apply" | "approve" | "pause" | "cancel" | "rollback";

/** useMay says whether whoever looks may do what a verb lets; undefined while that is not known. */
export function useMay(verb: Verb): boolean | undefined {
  return useWhoAmI().state?.verbs.includes(verb);
}

/** Token is what whoever looks shows the console to be known. */
export interface Token {
  present: boolean;
  set: (token: string) => void;
}

export function useToken(): Token {
  const queries = useQueryClient();
  const { watches } = useReach();
  return {
    present: readToken() !== "",
    set: (token) => {
      writeToken(token);
      // Pictures that another user was allowed to see are not this one's.
      watches.forget();
      void queries.resetQueries();
    },
  };
}
