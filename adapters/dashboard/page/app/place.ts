import { signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';
import { addressOf, type Choices, isSameView, type Place, placeOf, type ViewName } from '../model/places.ts';
import { MOUNT, urlOf } from './mount.ts';

/** The view that is shown, and the choices in it. */
export const place = signal<Place>(here());

function here(): Place {
  return placeOf(location.pathname, location.search, MOUNT, location.hash);
}

/** The address of a view. */
export function hrefOf(view: ViewName, choices?: Readonly<Record<string, string | undefined>>): string {
  return location.origin + urlOf(addressOf(view, choices));
}

/** Show a view. @param replaces the address replaces the current one in the history: a filter was changed */
export function go(view: ViewName, choices: Readonly<Record<string, string | undefined>> = {}, replaces = false): void {
  show(hrefOf(view, choices), replaces);
}

/** Change choices of the view that is shown. */
export function choose(choices: Readonly<Record<string, string | undefined>>, replaces = true): void {
  const { view, choices: before } = place.value;
  if (view !== undefined) go(view, { ...before, ...choices }, replaces);
}

/** A choice of the view that is shown. */
export function choice(name: string): string {
  return (place.value.choices as Choices)[name] ?? '';
}

function show(href: string, replaces: boolean): void {
  if (href === location.href) return;
  history[replaces ? 'replaceState' : 'pushState'](null, '', href);
  if (arrive()) scrollTo(0, 0);
}

/** Show the view of the address. @returns true if it is another one */
function arrive(): boolean {
  const before = place.value;
  place.value = here();
  const isOther = !isSameView(before, place.value);
  if (isOther) arrivals.value++;
  return isOther;
}

/** The number of times that a person has come to another view. */
const arrivals = signal(0);
let focused = 0;

/** Give the title of a view the focus when a person has come to the view, so that screen readers read it. */
export function useArrival(title: RefObject<HTMLElement>): void {
  const count = arrivals.value;
  useEffect(() => {
    if (count === focused) return;
    focused = count;
    title.current?.focus({ preventScroll: true });
  }, [count]);
}

/** Follow the addresses of the console without loading the page again. */
export function followLinks(): void {
  addEventListener('popstate', arrive);
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest?.('a');
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey ||
      link.target ||
      link.hasAttribute('download')
    )
      return;
    const { origin, pathname, href } = link;
    if (origin !== location.origin || placeOf(pathname, '', MOUNT).view === undefined) return;
    event.preventDefault();
    show(href, false);
  });
}
