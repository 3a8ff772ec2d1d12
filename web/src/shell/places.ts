/** The views, in the order of the questions they answer. */
export const places = [
  { to: "/", text: "Overview" },
  { to: "/savings", text: "Savings" },
  { to: "/transitions", text: "Transitions" },
  { to: "/plan", text: "Plan" },
  { to: "/nodes", text: "Nodes" },
  { to: "/policies", text: "Policies" },
  { to: "/temperature", text: "Temperature" },
  { to: "/objects", text: "Objects" },
  { to: "/audit", text: "Audit" },
  { to: "/settings", text: "Settings" },
  { to: "/about", text: "About" },
] as const;
