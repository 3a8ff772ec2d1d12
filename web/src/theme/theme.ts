import { createTheme, type CSSVariablesResolver } from "@mantine/core";

export const theme = createTheme({
  primaryColor: "blue",
  primaryShade: { light: 8, dark: 8 }, // white text on it has a contrast of 4.5 and more
  defaultRadius: "sm",
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace",
  respectReducedMotion: true,
});

/** contrast sets the colours of texts that are too faint as the library has them, and that of a selected row. */
export const contrast: CSSVariablesResolver = (base) => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": base.colors.gray[7],
    "--mantine-color-anchor": base.colors.blue[8],
    "--mantine-color-error": base.colors.red[9],
    "--mantine-color-placeholder": base.colors.gray[7],
    "--table-selected": base.colors.blue[0],
    "--mantine-color-green-light-color": "#1f662d",
    "--mantine-color-yellow-light-color": "#7a3e00",
  },
  dark: {
    "--mantine-color-dimmed": base.colors.dark[1],
    "--mantine-color-anchor": base.colors.blue[3],
    "--mantine-color-error": base.colors.red[3],
    "--mantine-color-placeholder": base.colors.dark[1],
    "--table-selected": "#16324a",
  },
});
