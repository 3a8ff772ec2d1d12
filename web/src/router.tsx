import { createRootRoute, createRoute, createRouter, lazyRouteComponent, type RouterHistory } from "@tanstack/react-router";

import { Shell } from "./shell/Shell";
import { BrokenView } from "./states/BrokenView";
import { Empty, Loading } from "./states/States";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <Empty title="There is no such page">Choose a view on the left.</Empty>,
});


/** texts reads search parameters, which are plain texts so that links can be written by hand; an empty one is none. */
function texts<Name extends string>(...names: Name[]) {
  return (search: Record<string, unknown>): Partial<Record<Name, string>> => {
    const read: Partial<Record<Name, string>> = {};
    for (const name of names) {
      const value = search[name];
      if (typeof value === "string" && value !== "") read[name] = value;
    }
    return read;
  };
}

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyRouteComponent(() => import("./views/overview/OverviewView"), "OverviewView"),
});

const transitions = createRoute({
  getParentRoute: () => root,
  path: "/transitions",
  validateSearch: texts("name", "policy", "show"),
  component: lazyRouteComponent(() => import("./views/transitions/TransitionsView"), "TransitionsView"),
});

const plan = createRoute({
  getParentRoute: () => root,
  path: "/plan",
  validateSearch: texts("policy", "from", "to"),
  component: lazyRouteComponent(() => import("./views/plan/PlanView"), "PlanView"),
});

const nodes = createRoute({
  getParentRoute: () => root,
  path: "/nodes",
  validateSearch: texts("name"),
  component: lazyRouteComponent(() => import("./views/nodes/NodesView"), "NodesView"),
});

const policies = createRoute({
  getParentRoute: () => root,
  path: "/policies",
  validateSearch: texts("name"),
  component: lazyRouteComponent(() => import("./views/policies/PoliciesView"), "PoliciesView"),
});

const editor = createRoute({
  getParentRoute: () => root,
  path: "/policies/edit",
  validateSearch: texts("name", "rules", "prices"),
  component: lazyRouteComponent(() => import("./views/policies/EditorView"), "EditorView"),
});

const temperature = createRoute({
  getParentRoute: () => root,
  path: "/temperature",
  validateSearch: texts("backend", "class", "hours"),
  component: lazyRouteComponent(() => import("./views/temperature/TemperatureView"), "TemperatureView"),
});

const objects = createRoute({
  getParentRoute: () => root,
  path: "/objects",
  validateSearch: texts("backend", "prefix", "key"),
  component: lazyRouteComponent(() => import("./views/objects/ObjectsView"), "ObjectsView"),
});

const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  validateSearch: texts("user", "object", "verb", "since", "until", "action"),
  component: lazyRouteComponent(() => import("./views/audit/AuditView"), "AuditView"),
});

const savings = createRoute({
  getParentRoute: () => root,
  path: "/savings",
  validateSearch: texts("policy", "hours"),
  component: lazyRouteComponent(() => import("./views/savings/SavingsView"), "SavingsView"),
});

const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: lazyRouteComponent(() => import("./views/settings/SettingsView"), "SettingsView"),
});

const about = createRoute({
  getParentRoute: () => root,
  path: "/about",
  component: lazyRouteComponent(() => import("./views/about/AboutView"), "AboutView"),
});

const routes = root.addChildren([overview, transitions, plan, nodes, policies, editor, temperature, savings, objects, audit, settings, about]);

/** makeRouter is every place of the pages; each view is loaded when somebody goes there. */
export function makeRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: routes,
    ...(history === undefined ? {} : { history }),
    parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
    stringifySearch: (search) => {
      const set = Object.entries(search).filter((entry): entry is [string, string] => typeof entry[1] === "string" && entry[1] !== "");
      const query = new URLSearchParams(set).toString();
      return query === "" ? "" : `?${query}`;
    },
    defaultPreload: "intent",
    defaultErrorComponent: BrokenView,
    defaultPendingComponent: () => <Loading label="the view" height={300} />,
  });
}

/** loadViews loads the code of every view, so that a click needs no answer of the console for it. */
export async function loadViews(router: ReturnType<typeof makeRouter>): Promise<void> {
  // One that cannot be loaded now is loaded when somebody goes there.
  await Promise.allSettled(Object.values(router.routesById).map(async (route) => router.loadRouteChunk(route)));
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
