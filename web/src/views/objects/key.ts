// Keys are bytes. In links they are text where they are text, and percent-encoded bytes where they are not.

const strict = new TextDecoder("utf-8", { fatal: true });

/** keyText is a key as links have it. */
export function keyText(key: Uint8Array): string {
  try {
    return strict.decode(key).replaceAll("%", "%25");
  } catch {
    return Array.from(key, (byte) => (byte < 0x80 && byte !== 0x25 ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, "0")}`)).join("");
  }
}

/** keyBytes is the key that such a text stands for. */
export function keyBytes(text: string): Uint8Array {
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  for (const part of text.split(/(%[0-9a-fA-F]{2})/)) {
    if (/^%[0-9a-fA-F]{2}$/.test(part)) bytes.push(parseInt(part.slice(1), 16));
    else bytes.push(...encoder.encode(part));
  }
  return Uint8Array.from(bytes);
}
