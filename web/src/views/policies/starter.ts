/** starter is what the editor holds for a policy that nobody has written yet. */
export const starter = `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata:
  name: photos
spec:
  backendRef: local
  selector:
    prefixes: [photos/]
  # Hottest first. What is on the ladder can be moved to in place.
  ladder: [rep(3), "rs(4,2)", "rs(12,2)"]
  temperature:
    # Accesses a day of a group.
    rules:
    - {scheme: rep(3), atLeast: 100}
    - {scheme: "rs(4,2)", atLeast: 1, below: 100}
    - {scheme: "rs(12,2)", below: 1}
  approval: {mode: Manual}
  budget:
    bytesPerSecond: 40Mi
`;
