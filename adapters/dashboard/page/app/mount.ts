/**
 * The path of the console, with a slash at the end. `<base>` is relative to the address with which the page was loaded, so it is read once.
 */
export const MOUNT = new URL(document.baseURI).pathname;

/** The URL of something below the mount. */
export function urlOf(path: string): string {
  return `${MOUNT}${path}`;
}
