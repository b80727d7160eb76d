import type { ComponentChildren } from 'preact';
import type { Page } from '../../../management/client/index.ts';
import { choice, hrefOf, place } from '../app/place.ts';
import type { ViewName } from '../model/places.ts';
import { useLoaded } from './loading.ts';
import { type Column, Pager, Table } from './table.tsx';

/** Rows of a page of a list. */
const ROWS = 100;

/** The parameters of a page. */
export interface PageQuery {
  readonly _limit: number;
  readonly _page?: number;
  readonly cursor?: string;
}

/** A list with pages. The current one is `page` or `cursor` in the address. */
export function List<Row>({
  caption,
  columns,
  keyOf,
  empty,
  conditions,
  load,
  below,
  isStacked,
  live
}: {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row, index: number) => string | number;
  readonly empty: ComponentChildren;
  /** The conditions of the list, as a string that changes with them. */
  readonly conditions: string;
  readonly load: (page: PageQuery, signal: AbortSignal) => Promise<Page<readonly Row[]>>;
  readonly below?: ((row: Row) => ComponentChildren) | undefined;
  readonly isStacked?: boolean;
  /** A component without content that watches the rows in view. */
  readonly live?: ((rows: readonly Row[]) => ComponentChildren) | undefined;
}) {
  const cursor = choice('cursor');
  const page = Math.max(1, Math.floor(Number(choice('page'))) || 1);
  const asked = cursor === '' ? { _limit: ROWS, _page: page } : { _limit: ROWS, cursor };
  const { value, error, isLoading, reload } = useLoaded(`${conditions} ${cursor} ${page}`, (signal) =>
    load(asked, signal)
  );
  const rows = value?.data;
  const meta = value?.meta;
  const { view, choices } = place.value;
  const to = (more: Readonly<Record<string, string | undefined>>) =>
    hrefOf(view as ViewName, { ...choices, page: undefined, cursor: undefined, ...more });
  const hasNext = meta !== undefined && (meta.cursor !== undefined || (meta.hasnext ?? page * ROWS < meta.count));
  const next = !hasNext ? undefined : to(meta.cursor !== undefined ? { cursor: meta.cursor } : { page: `${page + 1}` });
  return (
    <>
      {rows !== undefined && live?.(rows)}
      <Table
        caption={caption}
        columns={columns}
        rows={rows}
        keyOf={keyOf}
        empty={empty}
        error={error}
        onRetry={reload}
        isLoading={isLoading}
        below={below}
        isStacked={isStacked}
      />
      {rows !== undefined && error === undefined && (
        <Pager
          from={cursor === '' ? (page - 1) * ROWS : undefined}
          shown={rows.length}
          count={meta === undefined || meta.count < 0 ? undefined : meta.count}
          next={next}
          first={cursor !== '' || page > 1 ? to({}) : undefined}
          isLoading={isLoading}
          onReload={reload}
        />
      )}
    </>
  );
}
