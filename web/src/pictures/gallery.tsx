// Every picture with its fixtures, for whoever works on them: /src/pictures/gallery.html of the development server. No
// page of the product loads it.
import { useMantineColorScheme } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { createRoot } from "react-dom/client";

import { ThemeProvider } from "../theme/ThemeProvider";
import { Amount } from "./Amount";
import { counted, rated } from "./amount";
import { nodesOf, plans } from "./fixtures";
import { groupOf } from "./fixtures-group";
import { heatRows, heatStart, hoursLater, rungs, thresholds } from "./fixtures-heat";
import { GroupLayout } from "./GroupLayout";
import { HeatMap } from "./HeatMap";
import { rulesOf, type Thresholds } from "./ladder";
import { LadderEditor, type Consequence } from "./LadderEditor";
import { LadderPicture } from "./LadderPicture";
import { loadOfPlan } from "./load";
import { NodeLoad } from "./NodeLoad";
import { ProgressBar } from "./ProgressBar";
import { SchemeShape } from "./SchemeShape";
import { knownStates } from "./state";
import { StateMark } from "./StateMark";
import { StripePicture } from "./StripePicture";
import type { Series } from "./time-series";
import { TimeSeries } from "./TimeSeries";

function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section style={{ margin: "0 0 2.5rem" }}>
      <h2>{title}</h2>
      <div style={{ display: "grid", gap: "1.25rem", gridTemplateColumns: "minmax(0, 1fr)" }}>{children}</div>
    </section>
  );
}

function Gallery() {
  const { toggleColorScheme } = useMantineColorScheme();
  return (
    <main style={{ padding: "1rem", maxWidth: 1200 }}>
      <h1>Pictures</h1>
      <button type="button" className="picture-button" onClick={toggleColorScheme}>
        Change theme
      </button>
      <Section title="Signs">
        <div style={{ display: "flex", flexWrap: "wrap", gap: "1rem" }}>
          {["rep(3)", "rep(1)", "rs(4,2)", "rs(12,2)", "rs(16,4)", "rs(64,8)", "archive"].map((scheme) => (
            <SchemeShape key={scheme} scheme={scheme} />
          ))}
        </div>
        <div style={{ display: "flex", flexWrap: "wrap", gap: "1rem" }}>
          {[...knownStates, "levitating"].map((state) => (
            <StateMark key={state} state={state} />
          ))}
        </div>
        <span>
          <Amount bytes={1_288_490_188n} />
        </span>
        <div style={{ display: "grid", gap: "0.75rem", maxWidth: 420 }}>
          <ProgressBar
            label="runs"
            done={1n << 30n}
            total={3n << 30n}
            bytesPerSecond={40n << 20n}
            secondsLeft={840}
            secondsLeftLow={660}
            secondsLeftHigh={1140}
          />
          <ProgressBar label="paused" done={2n << 30n} total={3n << 30n} paused="window 22-06" />
          <ProgressBar label="just begun" done={0} total={3n << 30n} />
          <ProgressBar label="done" done={3n << 30n} total={3n << 30n} />
          <ProgressBar label="nothing" done={0} total={0} />
        </div>
      </Section>
      <Section title="Stripe picture">
        <StripePicture plan={plans.merge} nodes={nodesOf(plans.merge, "n")} start={1} />
        <StripePicture plan={plans.mergeCopies} nodes={nodesOf(plans.mergeCopies, "n")} start={3} />
        <StripePicture plan={plans.widen} nodes={nodesOf(plans.widen)} blockBytes={65536} start={5} />
        <StripePicture plan={plans.widen} start={12} />
        <StripePicture plan={plans.narrow} nodes={nodesOf(plans.narrow, "rack-7.example.org-")} start={17} />
        <StripePicture plan={plans.throughProxy} nodes={nodesOf(plans.throughProxy, "n")} start={9} />
        <StripePicture plan={plans.copyToPool} nodes={nodesOf(plans.copyToPool, "n")} start={15} />
        <StripePicture plan={plans.dropRow} nodes={nodesOf(plans.dropRow, "n")} start={1} />
        <StripePicture plan={plans.wide} nodes={nodesOf(plans.wide, "node-")} start={1} />
      </Section>
      <Section title="Heat">
        <HeatMap rows={heatRows} from={heatStart} until={hoursLater(48)} timeZone="UTC" />
        <HeatMap rows={heatRows.slice(0, 2)} from={heatStart} until={hoursLater(6)} timeZone="UTC" />
      </Section>
      <Section title="Ladder">
        <LadderPicture label="media" rungs={rungs} rules={rulesOf(thresholds)} />
        <EditedLadder />
        <LadderEditor label="media" rungs={[]} thresholds={undefined} saved={undefined} onChange={() => undefined} consequence={{ kind: "none" }} />
      </Section>
      <Section title="Load and layout">
        <NodeLoad label="Blocks of rs(12,2) to rs(4,2), one group" loads={loadOfPlan(plans.narrow, nodesOf(plans.narrow, "n"))} amount={(n) => counted(n, "block")} />
        <NodeLoad label="Nodes now" loads={[{ node: "storage.rack-17.example.org-1", sent: 40 << 20, received: 1 << 20 }, { node: "n2", sent: 0, received: 39 << 20 }]} amount={rated} />
        <NodeLoad label="Nodes at rest" loads={[{ node: "n1", sent: 0, received: 0 }]} amount={rated} />
        <GroupLayout group={groupOf("rs(12,2)", 12, 1)} />
        <GroupLayout group={groupOf("rs(4,2)", 5, 20, ["ok", "missing", "ok", "unreachable"])} />
      </Section>
      <Section title="Time">
        <TimeSeries label="Bytes stored over time" unit="bytes" series={stored} limit={capacity} moments={moments} />
        <TimeSeries label="Saved over time" unit="bytes" series={[]} empty="No samples yet: one is taken every 5 min." height={80} />
      </Section>
    </main>
  );
}

const stored: readonly Series[] = [
  { label: "stored", points: samples((i) => (i < 20 ? 508 : 249) * 2 ** 20) },
  { label: "protected", points: samples((i) => (i > 30 && i < 40 ? undefined : 122 * 2 ** 20)) },
];
const capacity = { label: "capacity", value: 640 * 2 ** 20 };
const moments = [{ at: hoursLater(20), label: "cooled to 12+2" }];

function samples(value: (i: number) => number | undefined) {
  return Array.from({ length: 48 }, (_, i) => ({ at: hoursLater(i), value: value(i) })).flatMap(({ at, value: known }) => (known === undefined ? [] : [{ at, value: known }]));
}

function EditedLadder() {
  const [edited, setEdited] = useState<Thresholds>({ ...thresholds, values: [100, 0.3] });
  const consequence: Consequence = {
    kind: "known",
    line: "Moves 500 MiB in 830 groups from 12+2 to 4+2, as they are used at least 0.3 times a day.",
    warnings: ["spends 2 months of what it saves"],
    sentBytes: 52_428_800,
    rungs: rungs.map(({ scheme, bytes }, i) => ({ scheme, bytesNow: bytes, bytesThen: i === 0 ? bytes : i === 1 ? 524_288_000 : bytes - 524_288_000 })),
  };
  return <LadderEditor label="media" rungs={rungs} thresholds={edited} saved={thresholds} onChange={setEdited} consequence={consequence} />;
}

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <ThemeProvider>
      <Gallery />
    </ThemeProvider>,
  );
}
