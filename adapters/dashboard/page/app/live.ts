import { effect, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Live, type LiveState, type Watch, type WatchListener } from '../model/live.ts';
import { RequestError, send } from './requests.ts';
import { login } from './session.ts';
import { takePlace } from './stream-places.ts';

/** The state of the stream of this tab. */
export const liveState = signal<LiveState>({ is: 'idle' });

/** The reason for which the broker refuses a stream, until it opens one: there are too many. Undefined: it does not. */
export const liveRefusal = signal<string | undefined>(undefined);

const live = new Live({
  async open(signal) {
    const release = await takePlace(signal);
    try {
      const { body } = await send('live', { signal, isBackground: true });
      return textOf(body as ReadableStream<Uint8Array>, release);
    } catch (error) {
      release();
      throw error;
    }
  },
  async set(id, watches, signal) {
    await send(`live/${encodeURIComponent(id)}`, { method: 'PUT', body: { watches }, signal, isBackground: true });
  },
  changed(state) {
    liveState.value = state;
    if (state.is === 'lost')
      liveRefusal.value =
        state.reason instanceof RequestError && state.reason.status === 429 ? state.reason.message : undefined;
    else if (state.is !== 'opening') liveRefusal.value = undefined;
  },
  now: () => Date.now(),
  later(run, ms) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  }
});

/** The text of a stream. @param ended called at the end */
async function* textOf(body: ReadableStream<Uint8Array>, ended: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read())
      yield decoder.decode(part.value, { stream: true });
  } finally {
    ended();
  }
}

/** Open the stream while the page is shown and there is a session. */
export function startLive(): void {
  document.addEventListener('visibilitychange', () => live.show(document.visibilityState === 'visible'));
  live.show(document.visibilityState === 'visible');
  addEventListener('online', () => live.retry());
  effect(() => {
    if (login.value.is === 'open') live.retry();
    else live.end();
  });
}

/** Try to open a stream that was lost. */
export function retryLive(): void {
  live.retry();
}

/** The number of watches of the view that is shown, without those of all views. */
export const watching = signal(0);

/** The watch of pinned topics, which goes on in every view. */
export const PINS = 'pins';

/** Watches that do not belong to the view. */
const OF_ALL_VIEWS: ReadonlySet<string> = new Set(['navigation', PINS]);

/**
 * Watch something while a component is shown.
 * @param watch undefined: nothing. Watches are compared by their JSON
 * @param listener that of the last rendering is called
 */
export function useWatch(name: string, watch: Watch | undefined, listener: WatchListener): void {
  const key = JSON.stringify(watch);
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    if (watch === undefined) return undefined;
    const end = live.watch(name, watch, (data, kind) => latest.current(data, kind));
    const isOfView = !OF_ALL_VIEWS.has(name);
    if (isOfView) watching.value++;
    return () => {
      if (isOfView) watching.value--;
      end();
    };
  }, [name, key]);
}
