import { useRef, useState } from 'preact/hooks';
import { type Held, heldRows } from '../model/alarms.ts';
import { T } from '../texts.ts';

/** Hold the rows of a list in their places while it changes. An empty list shows new rows at once. */
export function useHeld<Row>(
  latest: readonly Row[] | undefined,
  keyOf: (row: Row) => string
): Partial<Held<Row>> & { show(): void } {
  const shown = useRef<readonly Row[]>([]);
  const [, setCount] = useState(0);
  if (shown.current.length === 0) shown.current = latest ?? [];
  return {
    ...(latest && heldRows(shown.current, latest, keyOf)),
    show() {
      shown.current = latest ?? [];
      setCount((count) => count + 1);
    }
  };
}

/** A button with the number of rows that wait to be shown. It is above the page, so that it moves nothing. */
export function News({
  added = 0,
  ended = 0,
  onShow
}: {
  readonly added?: number | undefined;
  readonly ended?: number | undefined;
  readonly onShow: () => void;
}) {
  return (
    <div class="news" role="status">
      {added + ended > 0 && (
        <button type="button" onClick={onShow}>
          {T.table.news(added, ended)}
        </button>
      )}
    </div>
  );
}
