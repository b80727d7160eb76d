import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { hrefOf, place, useArrival } from '../app/place.ts';
import type { ViewName } from '../model/places.ts';
import { Name } from './name.tsx';

/** Names with their values. */
export function Facts({
  rows
}: {
  readonly rows: readonly (readonly [name: string, value: ComponentChildren, about?: string])[];
}) {
  return (
    <dl class="facts">
      {rows.map(([name, value, about]) => (
        <div key={name} title={about}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Pairs that are shown of an object. */
const MAX_PAIRS = 6;

/** The first properties of something, with their values, as text in a row of a list. @param labels of properties, as forms have them */
export function Pairs({
  of: values,
  labels = {}
}: {
  readonly of: object;
  readonly labels?: Readonly<Record<string, string>>;
}) {
  const pairs = Object.entries(values);
  return (
    <span class="pairs">
      {pairs.slice(0, MAX_PAIRS).map(([name, value]) => (
        <span key={name}>
          <span class="pair-name">{labels[name] ?? name}</span>{' '}
          <Name of={typeof value === 'string' ? value : JSON.stringify(value)} max={80} />
        </span>
      ))}
      {pairs.length > MAX_PAIRS && <span class="pair-name">…</span>}
    </span>
  );
}

/** Parts of a view, of which one is shown. Its name is `tab` in the address. */
export function Tabs({
  label,
  tabs,
  shown
}: {
  readonly label: string;
  readonly tabs: readonly (readonly [name: string, text: ComponentChildren])[];
  readonly shown: string;
}) {
  const { view, choices } = place.value;
  const bar = useRef<HTMLElement>(null);
  // on a phone the parts are one line, which scrolls
  useEffect(
    () => bar.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }),
    [shown]
  );
  return (
    <nav ref={bar} class="tabs" aria-label={label}>
      {tabs.map(([name, text], index) => (
        <a
          key={name}
          href={hrefOf(view as ViewName, {
            ...choices,
            page: undefined,
            cursor: undefined,
            tab: index === 0 ? undefined : name
          })}
          aria-current={name === shown ? 'page' : undefined}
        >
          {text}
        </a>
      ))}
    </nav>
  );
}

/** A state in a word, with a colour. */
export function Badge({
  kind,
  children
}: {
  readonly kind: 'good' | 'warn' | 'bad' | 'quiet';
  readonly children: ComponentChildren;
}) {
  return <span class={`badge badge-${kind}`}>{children}</span>;
}

/** The title of a view. It gets the focus when a person comes to the view. */
export function Title({ children }: { readonly children: ComponentChildren }) {
  const title = useRef<HTMLHeadingElement>(null);
  useArrival(title);
  return (
    <h1 ref={title} tabIndex={-1}>
      {children}
    </h1>
  );
}

/** The head of a view: its title and actions. */
export function Head({
  title,
  children
}: {
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="head">
      <Title>{title}</Title>
      <div class="head-actions">{children}</div>
    </div>
  );
}
