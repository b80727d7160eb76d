import { signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { addressOf, type Choices, isSameView, type Place, placeOf, type ViewName } from '../model/places.ts';
import { T } from '../texts.ts';
import { MOUNT, urlOf } from './mount.ts';

/** The view that is shown, and the choices in it. */
export const place = signal<Place>(here());

function here({ pathname, search, hash }: Pick<Location, 'pathname' | 'search' | 'hash'> = location): Place {
  return placeOf(pathname, search, MOUNT, hash);
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
  if (href === location.href || !mayLeaveFor(here(new URL(href)))) return;
  history[replaces ? 'replaceState' : 'pushState'](null, '', href);
  if (arrive()) scrollTo(0, 0);
}

/** Show the view of the address. @returns true if it is another one */
function arrive(): boolean {
  const before = place.value;
  shown = location.href;
  place.value = here();
  const isOther = !isSameView(before, place.value);
  if (isOther) arrivals.value++;
  return isOther;
}

/** The address of the view that is shown. */
let shown = location.href;

/** Drafts with changes that are not saved. */
const drafts = new Set<object>();

/**
 * Ask before a person leaves a view with changes that are not saved.
 * @returns a function that forgets them, because they were saved
 */
export function useUnsaved(isChanged: boolean): () => void {
  const draft = useRef({}).current;
  useEffect(() => {
    if (isChanged) drafts.add(draft);
    return () => void drafts.delete(draft);
  }, [isChanged]);
  return () => void drafts.delete(draft);
}

/** Forget the changes that are not saved, because their subject was deleted. */
export function forgetDrafts(): void {
  drafts.clear();
}

function mayLeaveFor(next: Place): boolean {
  return drafts.size === 0 || isSameView(place.value, next) || confirm(T.form.unsaved);
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

/**
 * Show a part of a view, and give its first field the focus, when the address asks for it: `do=test`.
 * @returns the reference of the part
 */
export function useAsked(name: string): RefObject<HTMLElement> {
  const part = useRef<HTMLElement>(null);
  const isAsked = choice('do') === name;
  useEffect(() => {
    if (!isAsked) return;
    reveal(part.current);
    choose({ do: undefined });
  }, [isAsked]);
  return part;
}

/** Scroll to a part of a view, and give its first field the focus. */
export function reveal(part: HTMLElement | null): void {
  part?.scrollIntoView({ block: 'nearest' });
  part?.querySelector<HTMLElement>('textarea, input, button')?.focus();
}

/** Follow the addresses of the console without loading the page again. */
export function followLinks(): void {
  addEventListener('popstate', () => {
    if (mayLeaveFor(here())) arrive();
    else history.pushState(null, '', shown);
  });
  addEventListener('beforeunload', (event) => {
    if (drafts.size > 0) event.preventDefault();
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
