import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { T } from '../texts.ts';
import { Problem } from './problem.tsx';

/** A column of a table. */
export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers stand at the right. */
  readonly isNumber?: boolean;
  /** The column is left out on narrow screens. */
  readonly isMinor?: boolean;
  /** The column takes the width that is left. */
  readonly isWide?: boolean;
  /** An explanation of the heading. */
  readonly about?: string;
  /** The address of the list in the order of this column, or without it if it has it already. */
  readonly sort?: { readonly href: string; readonly isCurrent: boolean };
}

interface TableProps<Row> {
  /** The title of the table, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  /** Undefined while they are being loaded. */
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row, index: number) => string | number;
  /** Text in place of rows if there are none; says what to do. */
  readonly empty: ComponentChildren;
  readonly error?: unknown;
  readonly onRetry?: (() => void) | undefined;
  readonly isLoading?: boolean;
  /** Content below a row, over all columns. */
  readonly below?: ((row: Row) => ComponentChildren) | undefined;
  readonly rowClass?: ((row: Row) => string) | undefined;
  /** On narrow screens a row has several lines: wide columns have one each. For tables whose texts are long. */
  readonly isStacked?: boolean;
}

/**
 * Rows of a list. The arrow keys move the focus from row to row, between the first links or buttons of the rows. Rows that could not be loaded again
 * stay where they are, with the error below them. If the row with the focus is removed, the next one gets it.
 */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  empty,
  error,
  onRetry,
  isLoading = false,
  below,
  rowClass,
  isStacked = false
}: TableProps<Row>) {
  const kept = useKeptFocus();
  const problem = error !== undefined && <Problem error={error} onRetry={onRetry} />;
  if (rows === undefined) return problem || <p class="loading">{T.shell.loading}</p>;
  if (rows.length === 0) return problem || <div class="empty-table">{empty}</div>;
  return (
    <>
      <div class="table-frame" aria-busy={isLoading} ref={takeKeys}>
        <table class={isStacked ? 'rows stacked' : 'rows'}>
          <caption class="visually-hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map(({ head, about, sort, ...column }) => (
                <th
                  key={head}
                  scope="col"
                  class={classOf(column)}
                  title={about}
                  aria-sort={sort?.isCurrent === true ? 'descending' : undefined}
                >
                  {sort === undefined ? (
                    head
                  ) : (
                    <a class="sort" href={sort.href}>
                      {head}
                      <span aria-hidden="true">{sort.isCurrent ? ' ▾' : ' ▿'}</span>
                    </a>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody onKeyDown={moveFocus} {...kept}>
            {rows.map((row, index) => {
              const more = below?.(row);
              return [
                <tr key={keyOf(row, index)} class={rowClass?.(row)}>
                  {columns.map(({ head, cell, ...column }) => (
                    <td key={head} class={classOf(column)}>
                      {cell(row)}
                    </td>
                  ))}
                </tr>,
                more && (
                  <tr key={`${keyOf(row, index)} below`} class="below">
                    <td colSpan={columns.length}>{more}</td>
                  </tr>
                )
              ];
            })}
          </tbody>
        </table>
      </div>
      {problem}
    </>
  );
}

function classOf({ isNumber, isMinor, isWide }: Pick<Column<never>, 'isNumber' | 'isMinor' | 'isWide'>): string {
  return [isNumber && 'number', isMinor && 'minor', isWide && 'wide-column'].filter(Boolean).join(' ');
}

const STEPS: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowDown: (at, last) => Math.min(at + 1, last),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, last) => last
};

/** Move the focus to the first link or button of another row. */
function moveFocus(event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void {
  const target = event.target as HTMLElement;
  if (STEPS[event.key] === undefined || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) || target.closest('.below'))
    return;
  const stops = stopsIn(event.currentTarget);
  const row = target.closest('tr');
  const at = stops.findIndex((stop) => stop.closest('tr') === row);
  if (at < 0) return;
  event.preventDefault();
  stops[STEPS[event.key](at, stops.length - 1)]?.focus();
}

/** The first links or buttons of the rows. */
function stopsIn(body: HTMLElement): readonly HTMLElement[] {
  return [...body.querySelectorAll<HTMLElement>('tr:not(.below)')]
    .map((row) => row.querySelector<HTMLElement>('a, button'))
    .filter((stop) => stop !== null);
}

/** Give the focus to the next row, or to the title of the view, if the row that has it is removed. @returns properties of the body of the table */
function useKeptFocus() {
  const body = useRef<HTMLTableSectionElement>(null);
  const last = useRef<{ readonly element: HTMLElement; readonly index: number }>();
  useEffect(() => {
    if (last.current === undefined || last.current.element.isConnected) return;
    const stops = body.current === null ? [] : stopsIn(body.current);
    const next = stops[Math.min(last.current.index, stops.length - 1)];
    last.current = undefined;
    if (document.activeElement === document.body) (next ?? document.querySelector<HTMLElement>('main h1'))?.focus();
  });
  return {
    ref: body,
    onFocusIn({ target, currentTarget }: FocusEvent) {
      const element = target as HTMLElement;
      const row = element.closest('tr');
      // a dialog of a row that is removed with the table returns the focus when `body` is null already
      const stops = stopsIn(currentTarget as HTMLElement);
      last.current = { element, index: stops.findIndex((one) => one.closest('tr') === row) };
    },
    onFocusOut() {
      const left = last.current;
      // a browser may say that an element has lost the focus before it is removed
      setTimeout(() => {
        if (left?.element.isConnected && left === last.current) last.current = undefined;
      });
    }
  };
}

/** The position in a list with pages, with links to the others. */
export function Pager({
  from,
  shown,
  count,
  next,
  first,
  isLoading,
  onReload
}: {
  /** The number of rows before those that are shown; undefined: not known. */
  readonly from: number | undefined;
  readonly shown: number;
  /** Rows of the whole list; undefined: not known. */
  readonly count: number | undefined;
  /** The address of the next page. */
  readonly next: string | undefined;
  /** The address of the first page, if another one is shown. */
  readonly first: string | undefined;
  readonly isLoading: boolean;
  readonly onReload: () => void;
}) {
  return (
    <div class="pager">
      <span class="number" role="status">
        {shown > 0 && from !== undefined ? T.table.rows(from + 1, from + shown, count) : T.table.shown(shown)}
      </span>
      {first !== undefined && (
        <a class="button small-button" href={first}>
          {T.table.first}
        </a>
      )}
      {next !== undefined && (
        <a class="button small-button" href={next} rel="next">
          {T.table.next}
        </a>
      )}
      <button type="button" class="small" disabled={isLoading} onClick={onReload}>
        {T.table.reload}
      </button>
    </div>
  );
}

/** Let the arrow keys scroll a table that is wider than the window. */
function takeKeys(frame: HTMLElement | null): void {
  if (frame !== null) frame.tabIndex = frame.scrollWidth > frame.clientWidth ? 0 : -1;
}
