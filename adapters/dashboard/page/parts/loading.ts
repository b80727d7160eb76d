import { useEffect, useRef, useState } from 'preact/hooks';
import { liveState } from '../app/live.ts';
import { RequestError } from '../app/requests.ts';
import { login } from '../app/session.ts';

/** The state of something that a component loads. */
export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Load again. The value stays until the new one has come. */
  reload(): void;
  /** Load again because of an event, not for a person: the session is not prolonged. */
  refresh(): void;
}

/**
 * Load something when a component is shown, and again when its key changes. A later key cancels an earlier request.
 * @param everyMs load again after this time, in the background
 */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal, isBackground: boolean) => Promise<T>,
  { everyMs }: { readonly everyMs?: number | undefined } = {}
): Loaded<T> {
  const [state, setState] = useState<{ key: string; value: T | undefined; error: unknown; isLoading: boolean }>({
    key,
    value: undefined,
    error: undefined,
    isLoading: true
  });
  const [attempt, setAttempt] = useState(0);
  const isWaiting = useRef(false);
  const isRefresh = useRef(false);
  const isOpen = login.value.is === 'open';
  useEffect(() => {
    if (isOpen && isWaiting.current) setAttempt((count) => count + 1);
  }, [isOpen]);
  const isUnreachable = state.error instanceof RequestError && state.error.status === 0;
  const isLive = liveState.value.is === 'open';
  useEffect(() => {
    if (isLive && isUnreachable) setAttempt((count) => count + 1); // the connection to the broker is back
  }, [isLive]);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const aborted = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async (isBackground: boolean) => {
      try {
        const value = await latest.current(aborted.signal, isBackground);
        if (!aborted.signal.aborted) setState({ key, value, error: undefined, isLoading: false });
      } catch (error) {
        if (aborted.signal.aborted) return;
        isWaiting.current = error instanceof RequestError && error.status === 401;
        // the previous value is shown until the person has logged in again
        // what is gone is not shown beside the error
        const isGone = error instanceof RequestError && error.status === 404;
        if (!isWaiting.current)
          setState((before) => ({ key, value: isGone ? undefined : before.value, error, isLoading: false }));
      }
      if (everyMs !== undefined && !aborted.signal.aborted) timer = setTimeout(() => void again(), everyMs);
    };
    const again = async () => {
      if (document.visibilityState === 'visible') await run(true);
      else timer = setTimeout(() => void again(), everyMs);
    };
    setState((before) =>
      before.key === key ? { ...before, isLoading: true } : { key, value: undefined, error: undefined, isLoading: true }
    );
    isWaiting.current = false;
    void run(isRefresh.current);
    isRefresh.current = false;
    return () => {
      aborted.abort();
      clearTimeout(timer);
    };
  }, [key, attempt]);
  const reload = () => setAttempt((count) => count + 1);
  return {
    // the value of another key is not shown until the effect has run
    ...(state.key === key ? state : { value: undefined, error: undefined, isLoading: true }),
    reload,
    refresh() {
      isRefresh.current = true;
      reload();
    }
  };
}
