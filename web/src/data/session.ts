// The token of whoever looks at the page, where the console wants one. It goes with the tab.

const key = "restripe.token";

export function readToken(): string {
  return sessionStorage.getItem(key) ?? "";
}

export function writeToken(token: string): void {
  if (token === "") {
    sessionStorage.removeItem(key);
  } else {
    sessionStorage.setItem(key, token);
  }
}
