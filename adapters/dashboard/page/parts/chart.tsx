import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { theme } from '../app/theme.ts';
import { timeText } from '../model/format.ts';
import { T } from '../texts.ts';
import type { Drawing } from './drawing.ts';

/** A line of a chart. */
export interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** The colour, by the number of the variable `--line-N`. */
  readonly color: number;
}

/** The content of a chart. */
export interface ChartProps {
  readonly title: string;
  /** The times of the values, in milliseconds since 1970. */
  readonly at: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** Charts with the same key show the same time under the pointer. */
  readonly sync?: string | undefined;
  /** The axis of values begins at 0. Default true. */
  readonly isFromZero?: boolean;
}

/** A chart over time. Its values can also be read as a table. */
export function Chart({ title, at, lines, format, sync, isFromZero = true }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawing = useRef<Drawing | undefined>(undefined);
  const [isTable, setTable] = useState(false);
  const id = useId();
  const chosen = theme.value;
  const labels = lines.map(({ label }) => label).join('\n');
  useEffect(() => {
    if (isTable) return undefined;
    let isShown = true;
    const media = matchMedia('(prefers-color-scheme: dark)');
    const draw = async () => {
      const { draw } = await import('./drawing.ts');
      if (!isShown || place.current === null) return;
      drawing.current?.end();
      drawing.current = draw(place.current, { lines, format, sync, isFromZero }, [
        at,
        ...lines.map(({ values }) => values)
      ]);
    };
    void draw();
    const redraw = () => void draw();
    media.addEventListener('change', redraw);
    return () => {
      isShown = false;
      media.removeEventListener('change', redraw);
      drawing.current?.end();
      drawing.current = undefined;
    };
  }, [labels, chosen, isTable]);
  useEffect(() => drawing.current?.set([at, ...lines.map(({ values }) => values)]), [at, lines]);
  const textOf = (value: number | null | undefined) => (value === undefined || value === null ? '–' : format(value));
  const latest = lines.map(({ label, values }) => `${label} ${textOf(values.at(-1))}`).join(', ');
  return (
    <figure class="chart" aria-labelledby={id}>
      <figcaption id={id}>
        <span class="chart-title">{title}</span>
        <span class="chart-legend">
          {lines.map(({ label, values, color }) => (
            <span key={label} class="chart-key">
              <span class={`chart-mark line-${color}`} aria-hidden="true" />
              {label} <b>{textOf(values.at(-1))}</b>
            </span>
          ))}
        </span>
        <button type="button" class="small quiet" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {T.chart.table}
        </button>
      </figcaption>
      {isTable ? (
        <ValueTable at={at} lines={lines} format={format} />
      ) : (
        <div ref={place} class="chart-place" role="img" aria-label={T.chart.about(title, latest)} />
      )}
    </figure>
  );
}

/** The values at the time at which the table was opened: it does not grow while it is read. */
function ValueTable({ at: atNow, lines: linesNow, format }: Pick<ChartProps, 'at' | 'lines' | 'format'>) {
  const [{ at, lines }, setShown] = useState({ at: atNow, lines: linesNow });
  const order = at.map((_, index) => at.length - 1 - index);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable with the keyboard
    <div class="chart-place scrolls" tabIndex={0}>
      <button type="button" class="small" onClick={() => setShown({ at: atNow, lines: linesNow })}>
        {T.table.reload}
      </button>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">{T.chart.time}</th>
            {lines.map(({ label }) => (
              <th key={label} scope="col" class="number">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {order.map((index) => (
            <tr key={at[index]}>
              <td>{timeText(at[index])}</td>
              {lines.map(({ label, values }) => (
                <td key={label} class="number">
                  {values[index] === null ? '–' : format(values[index] as number)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A line without axes, hidden from screen readers: the number beside it is the value. */
export function Sparkline({ values }: { readonly values: readonly number[] }) {
  if (values.length < 2) return <svg class="sparkline" viewBox="0 0 100 24" aria-hidden="true" focusable="false" />;
  const max = Math.max(...values) || 1;
  const x = (index: number) => (100 * index) / (values.length - 1);
  const y = (value: number) => 23 - (21 * value) / max;
  const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <polygon points={`0,24 ${points} 100,24`} />
      <polyline points={points} />
    </svg>
  );
}
