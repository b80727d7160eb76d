import { signal } from '@preact/signals';
import { addressOf, type Choices, type Place, placeOf, type ViewName } from '../model/places.ts';
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
  const before = place.value.view;
  place.value = here();
  if (place.value.view === before) return;
  scrollTo(0, 0);
  // screen readers announce the new view
  requestAnimationFrame(() => document.querySelector<HTMLElement>('main h1')?.focus());
}

/** Follow the addresses of the console without loading the page again. */
export function followLinks(): void {
  addEventListener('popstate', () => {
    place.value = here();
  });
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
