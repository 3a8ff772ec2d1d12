/** What the suite declares: objects cool within seconds, and a person approves what moves, slowly enough to be watched. */
export const policy = `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata:
  name: photos
spec:
  backendRef: local
  selector:
    prefixes: [photos/]
  ladder: [rep(3), "rs(4,2)"]
  temperature:
    halfLife: 1s
    dwell: 1s
    rules:
    - {scheme: rep(3), atLeast: 98304}
    - {scheme: "rs(4,2)", below: 98304}
  approval:
    mode: Manual
  budget:
    bytesPerSecond: 1Mi
  prices:
    millionOperations: "0"
`;
