// Only the rows in view are drawn and observed: a level may have a hundred thousand rows. The tree has one stop for the tab key; the arrow keys move
// in it, as in other trees.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useWatch } from '../../app/live.ts';
import { choose } from '../../app/place.ts';
import { login } from '../../app/session.ts';
import { heldRows } from '../../model/alarms.ts';
import { countText, rateText } from '../../model/format.ts';
import { bytesOf, shortText } from '../../model/payload.ts';
import {
  countBelow,
  isExtended,
  type Level,
  latelyPublished,
  nextPageTo,
  prefixesAbove,
  rowKey,
  type ShownRow,
  shownRows,
  watchable,
  watchedFilter,
  withPublished
} from '../../model/tree.ts';
import { News } from '../../parts/held.tsx';
import { Icon } from '../../parts/icons.tsx';
import { Name } from '../../parts/name.tsx';
import { described } from '../../parts/problem.tsx';
import { T } from '../../texts.ts';
import { useLevels } from './levels.ts';
import { ROW_PX, useSettled, useWindow } from './window.ts';

const P = T.topics;

/** A topic as the live stream has it. Before its first message it has only a count and a rate of 0. */
export interface LiveTopic {
  readonly filter: string;
  readonly count: number;
  /** Number of messages with retain. */
  readonly retained?: number;
  readonly rate: number;
  readonly topic?: string;
  readonly qos?: number;
  readonly retain?: boolean;
  readonly at?: number;
  readonly payload?: string;
  readonly payloadBytes?: number;
}

interface TreeProps {
  readonly selected: string;
  /** Changes when the levels have to be loaded again. */
  readonly version: number;
}

/** The tree of topics. The selected topic is part of the address. Levels that are loaded again stay where they are. */
export function TopicTree({ selected, version }: TreeProps) {
  const { levels, load, reload, opened, toggle } = useOpened(selected, version);
  const [active, setActive] = useState(0);
  const { place, from, count, scrollTo } = useWindow();
  const [published, setPublished] = useState<readonly string[]>([]);
  const { rows, added, showAdded } = useRows(levels, opened, published);
  useRevealed(rows, selected, (index) => {
    setActive(index);
    scrollTo(index);
  });
  const shown = rows.slice(from, from + count);
  const filters = useSettled(
    watchable([
      '#', // topics that no row has yet
      ...shown.flatMap((one) => (one.kind === 'topic' ? (watchedFilter(one.row, one.isLeaf) ?? []) : []))
    ])
  );
  const live = useLiveTopics(filters, (topics) => setPublished((before) => latelyPublished(before, topics)));
  const act = (one: ShownRow) => {
    if (one.kind === 'topic') choose({ topic: one.row.topic }, false);
    else if (one.kind !== 'loading') void load(one.prefix, levels.get(one.prefix)?.cursor);
  };
  const move = (to: number) => {
    const index = Math.max(0, Math.min(rows.length - 1, to));
    setActive(index);
    scrollTo(index);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = targetOf(event.key, rows, active, count);
    const one = rows[active];
    if (to !== undefined) move(to);
    else if (one === undefined) return;
    else if (event.key === 'Enter' || event.key === ' ') act(one);
    else if (event.key === 'ArrowRight' && one.kind === 'topic' && !one.isLeaf) toggle(one.row.prefix, true);
    else if (event.key === 'ArrowLeft' && one.kind === 'topic' && one.isOpen) toggle(one.row.prefix, false);
    else return;
    event.preventDefault();
  };
  if (rows.length === 0 && levels.get('')?.isLoading === false) return <p class="panel aside">{P.none}</p>;
  if (rows.length === 0 || rows[0].kind === 'loading') return <p class="panel loading">{T.shell.loading}</p>;
  return (
    <div>
      <div
        ref={place}
        class="tree"
        role="tree"
        tabIndex={0}
        aria-label={T.views.topics}
        aria-activedescendant={`row-${active}`}
        onKeyDown={onKeyDown}
      >
        <div class="tree-space" style={{ height: `${rows.length * ROW_PX}px` }}>
          {shown.map((one, index) => (
            <TreeRow
              key={rowKey(one)}
              one={one}
              index={from + index}
              isActive={from + index === active}
              isSelected={one.kind === 'topic' && one.row.topic === selected}
              live={one.kind === 'topic' ? live.get(watchedFilter(one.row, one.isLeaf) ?? '') : undefined}
              onToggle={toggle}
              onAct={(row) => {
                setActive(from + index);
                act(row);
              }}
            />
          ))}
        </div>
      </div>
      <Foot added={added} onShow={() => setActive(showAdded(rows[active]))} onReload={reload} />
    </div>
  );
}

/** The buttons below the tree. */
function Foot({
  added,
  onShow,
  onReload
}: {
  readonly added: number;
  readonly onShow: () => void;
  readonly onReload: () => void;
}) {
  return (
    <div class="tree-foot">
      <News added={added} onShow={onShow} />
      <button type="button" class="small" onClick={onReload}>
        {T.table.reload}
      </button>
    </div>
  );
}

/** The rows of the tree. Rows of topics that are published meanwhile are added if they come at its end; others wait, because they would move what is read. */
function useRows(levels: ReadonlyMap<string, Level>, opened: ReadonlySet<string>, published: readonly string[]) {
  const all = useMemo(() => shownRows(withPublished(levels, published), opened), [levels, opened, published]);
  const shown = useRef({ levels, opened, all, rows: all, added: 0 });
  const [, setCount] = useState(0);
  const { current } = shown;
  const showAll = () => {
    shown.current = { levels, opened, all, rows: all, added: 0 };
  };
  if (current.all !== all) {
    const isOfPerson = current.levels !== levels || current.opened !== opened;
    if (isOfPerson || isExtended(current.rows.map(rowKey), all.map(rowKey))) showAll();
    else shown.current = { levels, opened, all, ...heldRows(current.rows, all, rowKey) };
  }
  const { rows, added } = shown.current;
  return {
    rows,
    added,
    /** Show all rows. @returns the place of a row among them */
    showAdded(row: ShownRow | undefined): number {
      showAll();
      setCount((count) => count + 1);
      return Math.max(0, row === undefined ? 0 : all.findIndex((one) => rowKey(one) === rowKey(row)));
    }
  };
}

/** The opened levels, with those above the selected topic. */
function useOpened(selected: string, version: number) {
  const { levels, load, reload } = useLevels();
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set(prefixesAbove(selected)));
  useEffect(() => {
    void load('');
    for (const prefix of opened) void load(prefix);
  }, [opened]);
  useEffect(() => setOpened((before) => new Set([...before, ...prefixesAbove(selected)])), [selected]);
  const isOpen = login.value.is === 'open';
  useEffect(() => {
    if (isOpen) reload();
  }, [version, isOpen]);
  useEffect(() => {
    const next = selected === '' ? undefined : nextPageTo(levels, selected);
    if (next !== undefined) void load(next.prefix, next.cursor);
  }, [levels, selected]);
  const toggle = (prefix: string, isOpen: boolean) =>
    setOpened((before) => {
      const next = new Set(before);
      if (isOpen) next.add(prefix);
      else next.delete(prefix);
      return next;
    });
  return { levels, load, reload, opened, toggle };
}

/** Show the row of the selected topic, once it is loaded: a reader may scroll away while further levels are loaded. */
function useRevealed(rows: readonly ShownRow[], selected: string, show: (index: number) => void): void {
  const revealed = useRef('');
  useEffect(() => {
    const index = rows.findIndex((one) => one.kind === 'topic' && one.row.topic === selected);
    if (index < 0 || revealed.current === selected) return;
    revealed.current = selected;
    show(index);
  }, [rows, selected]);
}

/** The last values of topics, by their topic filters. */
function useLiveTopics(
  filters: readonly string[],
  onTopics: (topics: readonly string[]) => void
): ReadonlyMap<string, LiveTopic> {
  const [live, setLive] = useState<ReadonlyMap<string, LiveTopic>>(new Map());
  useWatch('tree', filters.length === 0 ? undefined : { kind: 'topics', topics: filters }, (data) => {
    const rows = (data.rows ?? []) as readonly LiveTopic[];
    onTopics((data.topics ?? []) as readonly string[]);
    const watched = new Set(filters);
    setLive((before) => {
      const next = new Map(before);
      for (const row of rows) next.set(row.filter, row);
      for (const filter of next.keys()) if (!watched.has(filter)) next.delete(filter);
      return next;
    });
  });
  return live;
}

/** The row to which a key moves. @returns undefined: the key does something else */
function targetOf(key: string, rows: readonly ShownRow[], at: number, page: number): number | undefined {
  const step = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page - 12,
    PageUp: 12 - page,
    Home: -rows.length,
    End: rows.length
  }[key];
  if (step !== undefined) return at + step;
  const one = rows[at];
  if (one?.kind !== 'topic') return undefined;
  if (key === 'ArrowRight' && one.isOpen) return at + 1;
  if (key === 'ArrowLeft' && !one.isOpen)
    return rows.findLastIndex((row, index) => index < at && row.depth < one.depth);
  return undefined;
}

function TreeRow({
  one,
  index,
  isActive,
  isSelected,
  live,
  onToggle,
  onAct
}: {
  readonly one: ShownRow;
  readonly index: number;
  readonly isActive: boolean;
  readonly isSelected: boolean;
  readonly live: LiveTopic | undefined;
  readonly onToggle: (prefix: string, isOpen: boolean) => void;
  readonly onAct: (one: ShownRow) => void;
}) {
  const isTopic = one.kind === 'topic';
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys of all rows
    <div
      id={`row-${index}`}
      class={`tree-row ${isActive ? 'active' : ''}`}
      role="treeitem"
      tabIndex={-1}
      aria-level={one.depth + 1}
      aria-expanded={isTopic && !one.isLeaf ? one.isOpen : undefined}
      aria-selected={isSelected}
      style={{ top: `${index * ROW_PX}px`, paddingInlineStart: `${0.4 + one.depth * 1.1}rem` }}
      onClick={() => onAct(one)}
    >
      {isTopic && !one.isLeaf ? (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the arrow keys of the tree open and close
        // biome-ignore lint/a11y/noStaticElementInteractions: the tree has the keys of all rows
        <span
          class={one.isOpen ? 'tree-mark opened' : 'tree-mark'}
          onClick={(event) => {
            event.stopPropagation();
            onToggle(one.row.prefix, !one.isOpen);
          }}
        >
          <Icon name="open" />
        </span>
      ) : (
        <span class="tree-mark" />
      )}
      {isTopic ? (
        <TopicCells row={one.row} live={live} />
      ) : one.kind === 'error' ? (
        <span class="problem-message">
          {described(one.error).message} {T.errors.retry}
        </span>
      ) : (
        <span class="aside">{one.kind === 'more' ? P.more : T.shell.loading}</span>
      )}
    </div>
  );
}

function TopicCells({
  row,
  live
}: {
  readonly row: Extract<ShownRow, { kind: 'topic' }>['row'];
  readonly live: LiveTopic | undefined;
}) {
  const below = countBelow(row);
  const isOwn = live !== undefined && live.topic === row.topic && live.payload !== undefined;
  return (
    <>
      <span class="tree-name">
        <Name of={row.level} max={80} />
      </span>
      {below > 0 && <span class="aside">{countText(below)}</span>}
      {row.retained && (
        <span class="mark mark-retained" title={P.isRetained}>
          {P.retainedMark}
        </span>
      )}
      {row.subscribed && (
        <span class="mark mark-subscribed" title={P.isSubscribed}>
          {P.subscribedMark}
        </span>
      )}
      {row.published && (
        <span class="mark mark-published" title={P.isPublished}>
          {P.publishedMark}
        </span>
      )}
      <span class="tree-value">
        {isOwn && <bdi>{shortText(bytesOf(live.payload as string) ?? new Uint8Array())}</bdi>}
      </span>
      <span class="tree-rate number">{live !== undefined && live.rate > 0 ? rateText(live.rate) : ''}</span>
    </>
  );
}
