import { useEffect, useRef, useState } from 'preact/hooks';

/** Samples that are loaded again when there are newer ones. */
export interface Fresh {
  /** There are newer ones, which are loaded when the present ones are no longer read. */
  readonly isWaiting: boolean;
  /** Load the newer ones now. */
  show(): void;
  /** Listeners of the element with the samples. */
  readonly listeners: Readonly<Record<'onPointerEnter' | 'onPointerLeave' | 'onFocusIn' | 'onFocusOut', () => void>>;
}

/**
 * Load samples again when there are newer ones, but not while they are read: while the pointer or the focus is on them.
 * @param at the time of the last one
 */
export function useFresh(at: number, refresh: () => void): Fresh {
  const [isWaiting, setWaiting] = useState(false);
  const loaded = useRef(at);
  const readers = useRef({ pointer: false, focus: false });
  useEffect(() => {
    if (loaded.current === at) return;
    loaded.current = at;
    if (readers.current.pointer || readers.current.focus) setWaiting(true);
    else refresh();
  }, [at]);
  const show = () => {
    setWaiting(false);
    refresh();
  };
  const set = (name: 'pointer' | 'focus', isReading: boolean) => () => {
    readers.current = { ...readers.current, [name]: isReading };
    if (isWaiting && !readers.current.pointer && !readers.current.focus) show();
  };
  return {
    isWaiting,
    show,
    listeners: {
      onPointerEnter: set('pointer', true),
      onPointerLeave: set('pointer', false),
      onFocusIn: set('focus', true),
      onFocusOut: set('focus', false)
    }
  };
}
