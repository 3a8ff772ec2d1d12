import { Anchor, type AnchorProps } from "@mantine/core";
import { createLink, type LinkComponent } from "@tanstack/react-router";
import type { AnchorHTMLAttributes, Ref } from "react";

interface PlainLinkProps extends Omit<AnchorProps, "href">, Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof AnchorProps> {
  ref?: Ref<HTMLAnchorElement>;
}

// Underlined, so that links within sentences are told from them by more than colour.
function PlainLink(props: PlainLinkProps) {
  return <Anchor inherit underline="always" {...props} />;
}

const Linked = createLink(PlainLink);

/** RouteLink leads to another view. */
export const RouteLink: LinkComponent<typeof PlainLink> = (props) => <Linked preload="intent" {...props} />;
