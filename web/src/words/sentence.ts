/** sentence begins a text with a capital letter; the console's conditions begin with a small one, as those of Kubernetes do. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
