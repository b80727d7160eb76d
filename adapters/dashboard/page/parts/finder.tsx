import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { hrefOf } from '../app/place.ts';
import { getPage, request } from '../app/requests.ts';
import type { ViewName } from '../model/places.ts';
import { T } from '../texts.ts';
import { Dialog } from './dialog.tsx';
import { Icon } from './icons.tsx';
import { Name } from './name.tsx';
import { VIEW_ROWS } from './views.tsx';

const F = T.finder;
const MAX_ROWS = 6;
const TYPING_MS = 150;

/** Something that was found, and the address that shows it. */
interface Found {
  readonly kind: string;
  readonly name: string;
  readonly href: string;
}

/** One box that finds pages, clients, topics and rules: Control and K. */
export function Finder() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button type="button" class="finder-button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <Icon name="search" />
        <span>{F.find}</span>
        <kbd>{F.keys}</kbd>
      </button>
      {isOpen && (
        <Dialog title={F.title} onClose={() => setOpen(false)}>
          <Box onClose={() => setOpen(false)} />
        </Dialog>
      )}
    </>
  );
}

function Box({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const [found, setFound] = useState<readonly Found[]>([]);
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  useEffect(() => input.current?.focus(), []);
  const rows = [...pagesFor(typed), ...found];
  useEffect(() => {
    setActive(0);
    const aborted = new AbortController();
    const timer = setTimeout(() => {
      find(typed.trim(), aborted.signal).then(setFound, () => undefined); // aborted, or the box shows what it has
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      aborted.abort();
    };
  }, [typed]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setActive((before) => (before + step + rows.length) % Math.max(1, rows.length));
    else if (event.key === 'Enter') document.getElementById(`${id}-${active}`)?.click();
    else return;
    event.preventDefault();
  };
  return (
    <div class="finder">
      <input
        ref={input}
        role="combobox"
        aria-label={F.title}
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={`${id}-${active}`}
        placeholder={F.placeholder}
        value={typed}
        spellcheck={false}
        autocapitalize="none"
        autocomplete="off"
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div id={`${id}-list`} class="finder-list" role="listbox" aria-label={F.title}>
        {rows.map(({ kind, name, href }, index) => (
          <a
            key={`${kind} ${href}`}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            href={href}
            onClick={() => setTimeout(onClose)}
          >
            <span class="aside">{kind}</span>
            <Name of={name} max={100} />
          </a>
        ))}
      </div>
    </div>
  );
}

function pagesFor(typed: string): readonly Found[] {
  const wanted = typed.trim().toLowerCase();
  return (Object.keys(VIEW_ROWS) as ViewName[])
    .filter((name) => VIEW_ROWS[name].within === undefined && T.views[name].toLowerCase().includes(wanted))
    .slice(0, wanted === '' ? 20 : 3)
    .map((name) => ({ kind: F.page, name: T.views[name], href: hrefOf(name) }));
}

async function find(typed: string, signal: AbortSignal): Promise<readonly Found[]> {
  if (typed === '') return [];
  const [clients, rules] = await Promise.all([
    getPage('/clients', { query: { _like_clientid: typed, _limit: MAX_ROWS }, signal }),
    request('GET', '/rules', { query: { _like_id: typed, enable_paging: true, _limit: MAX_ROWS }, signal })
  ]);
  return [
    ...clients.data.map(({ clientid }) => ({
      kind: F.client,
      name: clientid,
      href: hrefOf('client', { id: clientid })
    })),
    ...(rules.data as readonly { readonly id: string }[])
      .slice(0, MAX_ROWS)
      .map(({ id }) => ({ kind: F.rule, name: id, href: hrefOf('rule', { id }) })),
    { kind: F.topic, name: typed, href: hrefOf('topics', { topic: typed }) },
    { kind: F.tail, name: typed, href: hrefOf('tail', { filter: typed }) },
    { kind: F.why, name: typed, href: hrefOf('why', { topic: typed }) }
  ];
}
