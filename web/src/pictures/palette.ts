// Colours are made in OKLCH, whose lightness is that of the eye, so that text on them can be read and grey keeps their order.

/** A colour for the light and for the dark theme, as #rrggbb. */
export interface ThemedColour {
  readonly light: string;
  readonly dark: string;
}

/** What is written with on tints; pictures.css has the same. */
export const ink: ThemedColour = { light: "#16181d", dark: "#f4f6f8" };

// Steps of the golden angle keep neighbours apart however many stripes there are.
const goldenAngle = 137.508;

/** The tint of a stripe of the old or of the new partition. */
export function stripeTint(stripe: number, partition: "old" | "new"): ThemedColour {
  const hue = (partition === "old" ? 250 : 55) + stripe * goldenAngle;
  return partition === "old"
    ? { light: oklch(0.91, 0.05, hue), dark: oklch(0.38, 0.05, hue) }
    : { light: oklch(0.8, 0.11, hue), dark: oklch(0.48, 0.1, hue) };
}

/** The letters of a stripe: a, b, ..., z, aa, ab, ...; capital ones for the new partition. */
export function stripeLetters(stripe: number, partition: "old" | "new"): string {
  let letters = "";
  for (let rest = stripe; rest >= 0; rest = Math.floor(rest / 26) - 1) {
    letters = String.fromCharCode(97 + (rest % 26)) + letters;
  }
  return partition === "old" ? letters : letters.toUpperCase();
}

/** An OKLCH colour as #rrggbb; chroma beyond what a screen shows is cut. */
export function oklch(lightness: number, chroma: number, hue: number): string {
  const angle = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return `#${channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s)}${channel(
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
  )}${channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s)}`;
}

function channel(linear: number): string {
  const light = Math.min(Math.max(linear, 0), 1);
  const encoded = light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055;
  return Math.round(encoded * 255)
    .toString(16)
    .padStart(2, "0");
}

/** The relative luminance of #rrggbb, as WCAG defines it: what is left of a colour in grey. */
export function luminance(colour: string): number {
  const linear = (from: number) => {
    const encoded = parseInt(colour.slice(from, from + 2), 16) / 255;
    return encoded <= 0.04045 ? encoded / 12.92 : ((encoded + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5);
}

/** The contrast of two colours, from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
