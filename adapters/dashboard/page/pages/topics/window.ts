import { useEffect, useRef, useState } from 'preact/hooks';

/** The height of a row. */
export const ROW_PX = 28;
const SCROLLED_MS = 250;

/** The rows of a scrolled element that are in view. */
export function useWindow() {
  const [view, setView] = useState({ from: 0, count: 60 });
  const element = useRef<HTMLElement | null>(null);
  const measure = () => {
    const { current } = element;
    if (current === null) return;
    const from = Math.max(0, Math.floor(current.scrollTop / ROW_PX) - 5);
    const count = Math.ceil(current.clientHeight / ROW_PX) + 10;
    setView((before) => (before.from === from && before.count === count ? before : { from, count }));
  };
  const sizes = useRef<ResizeObserver>();
  const place = (found: HTMLElement | null) => {
    if (found === element.current) return;
    element.current?.removeEventListener('scroll', measure);
    sizes.current?.disconnect();
    element.current = found;
    if (found === null) return;
    found.addEventListener('scroll', measure, { passive: true });
    sizes.current = new ResizeObserver(measure);
    sizes.current.observe(found);
    measure();
  };
  const scrollTo = (index: number) => {
    const { current } = element;
    if (current === null) return;
    const top = index * ROW_PX;
    if (top < current.scrollTop) current.scrollTop = top;
    else if (top + ROW_PX > current.scrollTop + current.clientHeight)
      current.scrollTop = top + ROW_PX - current.clientHeight;
  };
  return { ...view, place, scrollTo };
}

/** A list after it has not changed for a moment, so that nothing is requested while a person scrolls. */
export function useSettled(list: readonly string[]): readonly string[] {
  const [settled, setSettled] = useState<readonly string[]>([]);
  const key = list.join('\0');
  useEffect(() => {
    const timer = setTimeout(() => setSettled(list), SCROLLED_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return settled;
}
