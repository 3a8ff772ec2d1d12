import type { Browser } from "playwright-core";

import { openBrowser, startCluster, type Cluster } from "./cluster";

/** Stage is a whole cluster of this machine with its console, and a browser. */
export interface Stage extends Cluster {
  browser: Browser;
  /** Stores objects of the class that the suite moves. */
  fill: () => void;
}

const objects = 24;
const objectBytes = 1_500_000;

/** openStage starts all of it; ending it ends the browser, too. */
export async function openStage(): Promise<Stage> {
  const cluster = await startCluster();
  const browser = await openBrowser();
  return {
    ...cluster,
    browser,
    fill: () => cluster.put("photos/", Array.from({ length: objects }, (_, i) => ({ name: `photo-${i}.jpg`, bytes: objectBytes }))),
    end: async () => {
      await browser.close();
      await cluster.end();
    },
  };
}
