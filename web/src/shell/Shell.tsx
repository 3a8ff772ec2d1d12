import { Burger, Group, SegmentedControl, Text, useMantineColorScheme, VisuallyHidden } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { useEffect } from "react";

import { useWhoAmI } from "../data/about";
import { useOverview } from "../data/overview";
import { Freshness } from "./Freshness";
import { HealthLine } from "./HealthLine";
import { places } from "./places";
import styles from "./Shell.module.css";
import { TaskTray } from "./TaskTray";

/** Shell is what stays around every view: where one can go, whether data is safe, what runs, and how fresh all is. */
export function Shell() {
  const overview = useOverview();
  const [open, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  useEffect(close, [close, pathname]);
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#content">
        Skip to content
      </a>
      <header className={styles.header}>
        <Burger className={styles.burger} opened={open} onClick={toggle} size="sm" aria-label={open ? "Close navigation" : "Open navigation"} aria-controls="navigation" aria-expanded={open} />
        <Link to="/" className={styles.name}>
          Restripe
        </Link>
        <HealthLine overview={overview} />
        <Group gap="sm" wrap="nowrap" className={styles.right}>
          <User />
          <ThemeSwitch />
        </Group>
      </header>
      <nav id="navigation" className={styles.navigation} data-open={open} aria-label="Views">
        <div className={styles.links}>
          {places.map(({ to, text }) => (
            <Link key={to} to={to} className={styles.place} activeOptions={{ exact: to === "/" }} activeProps={{ "aria-current": "page" }}>
              {text}
            </Link>
          ))}
        </div>
      </nav>
      <main id="content" className={styles.content} tabIndex={-1}>
        <Freshness overview={overview} />
        <Outlet />
      </main>
      <TaskTray overview={overview.state} />
    </div>
  );
}

function User() {
  const who = useWhoAmI().state;
  if (who === undefined) return null;
  return (
    <Text size="sm" c="dimmed" className={styles.user}>
      <VisuallyHidden>You are </VisuallyHidden>
      {who.user}
    </Text>
  );
}

function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <SegmentedControl
      size="xs"
      aria-label="Colours"
      value={colorScheme}
      onChange={(value) => setColorScheme(value)}
      data={[
        { value: "light", label: "Light" },
        { value: "dark", label: "Dark" },
        { value: "auto", label: "System" },
      ]}
    />
  );
}
