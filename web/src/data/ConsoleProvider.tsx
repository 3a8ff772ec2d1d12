import { createClient, type Client, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useMemo, type ReactNode } from "react";

import { Console } from "../gen/console/v1/console_pb";
import { ConsoleContext, WatchBook } from "./console";
import { problemOf } from "./problem";
import { readToken } from "./session";

const authorize: Interceptor = (next) => (request) => {
  const token = readToken();
  if (token !== "") request.header.set("Authorization", `Bearer ${token}`);
  return next(request);
};

/** consoleTransport reaches the console that served this page. */
export function consoleTransport(): Transport {
  return createConnectTransport({ baseUrl: window.location.origin, useBinaryFormat: true, interceptors: [authorize] });
}

const retriesOfLostCalls = 2;

/** ConsoleProvider lets the hooks of this folder reach a console through a transport. */
export function ConsoleProvider({ transport, children }: { transport: Transport; children: ReactNode }) {
  const queries = useMemo(
    () =>
      new QueryClient({
        defaultOptions: {
          queries: {
            staleTime: 5_000,
            // What was refused stays refused; only what never reached the console is worth another try.
            retry: (failures, error) => failures < retriesOfLostCalls && problemOf(error).kind === "disconnected",
            networkMode: "always", // the console may be on this machine, with no network at all
          },
          mutations: { networkMode: "always" },
        },
      }),
    [],
  );
  const reach = useMemo(() => {
    const client: Client<typeof Console> = createClient(Console, transport);
    return { client, watches: new WatchBook() };
  }, [transport]);
  return (
    <ConsoleContext value={reach}>
      <QueryClientProvider client={queries}>{children}</QueryClientProvider>
    </ConsoleContext>
  );
}
