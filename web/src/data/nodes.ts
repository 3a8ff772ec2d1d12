import type { Node, NodeChange, NodeList, ScrubReport } from "../gen/console/v1/nodes_pb";

import { useAction, useQuestion, type Action } from "./asking";
import { useWatch, type Following } from "./console";
import { withMessage, type Listing } from "./listing";

/** nodeKey tells a node from those of other backends. */
export const nodeKey = (node: { backend: string; name: string }): string => `${node.backend}/${node.name}`;

function reduce(before: Listing<Node> | undefined, message: NodeList): Listing<Node> {
  return withMessage(before, message, message.nodes, message.removed.map(nodeKey), nodeKey);
}

export function useNodes(): Following<Listing<Node>> {
  return useWatch("nodes", (client, signal) => client.watchNodes({}, { signal }), reduce);
}

export function useScrubs(): Following<ScrubReport> {
  return useQuestion({ key: ["scrubs"], refetchMilliseconds: 10_000, ask: (client, signal) => client.getScrubs({}, { signal }) });
}

/** NodeOf names a node in a request. */
export interface NodeOf {
  node: { backend: string; name: string };
}

/** NodeSteering is what can be done to a node. */
export interface NodeSteering {
  drain: Action<NodeOf & { bytesPerSecond?: bigint; paused?: boolean }, NodeChange>;
  undrain: Action<NodeOf, NodeChange>;
  down: Action<NodeOf, NodeChange>;
  up: Action<NodeOf, NodeChange>;
  replace: Action<NodeOf & { address: string; with: string; failureDomain: string }, NodeChange>;
  remove: Action<NodeOf & { confirm: string }, NodeChange>;
  place: Action<NodeOf & { failureDomain?: string; spare?: boolean }, NodeChange>;
}

export function useNodeSteering(): NodeSteering {
  return {
    drain: useAction((client, request) => client.drainNode(request)),
    undrain: useAction((client, request) => client.undrainNode(request)),
    down: useAction((client, request) => client.downNode(request)),
    up: useAction((client, request) => client.upNode(request)),
    replace: useAction((client, request) => client.replaceNode(request)),
    remove: useAction((client, request) => client.removeNode(request)),
    place: useAction((client, request) => client.placeNode(request)),
  };
}
