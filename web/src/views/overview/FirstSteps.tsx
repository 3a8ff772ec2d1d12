import { Empty } from "../../states/States";

/** FirstSteps is for whoever has stored nothing yet. */
export function FirstSteps() {
  return (
    <Empty title="Nothing is stored yet" command={"restripe put ~/photos photos/\nrestripe apply -f policies.yaml"}>
      Store something, then declare what it is kept as when it is used much and when it is not.
    </Empty>
  );
}
