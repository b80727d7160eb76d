// A browser opens six connections to an HTTP/1.1 server for all of its windows, and a live stream takes one of them. So at most
// four windows have a stream, and the other connections are for requests. A window holds one of four locks of the browser while
// it has a stream. Without HTTPS on another computer a browser has no locks, and with HTTP/2 it needs none.
import { T } from '../texts.ts';
import { MOUNT } from './mount.ts';
import { RequestError } from './requests.ts';

const PLACES = 4;

/** The function that gives a lock back; undefined: another window has it. */
function lock(name: string): Promise<(() => void) | undefined> {
  return new Promise((resolve) => {
    const held = navigator.locks.request(name, { ifAvailable: true }, (granted) => {
      if (granted !== null) return new Promise<void>((release) => resolve(release));
      resolve(undefined);
      return undefined;
    });
    held.catch(() => resolve(() => undefined)); // a browser that refuses locks
  });
}

/**
 * Take a place for a live stream.
 * @param signal gives the place back
 * @returns a function that gives it back
 * @throws RequestError all places are taken
 */
export async function takePlace(signal: AbortSignal): Promise<() => void> {
  const [page] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  if (navigator.locks === undefined || /^h[23]/.test(page?.nextHopProtocol ?? '')) return () => undefined;
  for (let place = 0; place < PLACES; place++) {
    const release = await lock(`embermq live ${MOUNT} ${place}`);
    if (release === undefined) continue;
    if (signal.aborted) release();
    signal.addEventListener('abort', release, { once: true });
    return release;
  }
  throw new RequestError(T.live.noPlace(PLACES), 429);
}
