import uPlot from 'uplot';
import type { ChartProps } from './chart.tsx';

/** Times in milliseconds, then the values of each line. */
export type Values = readonly (readonly (number | null)[])[];

/** A drawn chart. */
export interface Drawing {
  set(values: Values): void;
  end(): void;
}

const HEIGHT = 180;

/** Distances of the labels of times, whose shortest unit is the second. */
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400].map(
  (seconds) => seconds * 1_000
);

/** The labels of an axis: values that differ by less than their texts show have one label. */
function withoutRepeats(labels: readonly string[]): string[] {
  return labels.map((label, index) => (label === labels[index - 1] ? '' : label));
}

/** Draw a chart in an element, as wide as this. */
export function draw(
  place: HTMLElement,
  { lines, format, sync, isFromZero }: Pick<ChartProps, 'lines' | 'format' | 'sync' | 'isFromZero'>,
  values: Values
): Drawing {
  const styles = getComputedStyle(place);
  // a canvas needs the colour of the theme in use, and the variable names both
  const color = (name: string) => {
    place.style.color = `var(${name})`;
    const { color } = styles;
    place.style.color = '';
    return color;
  };
  const axis = {
    stroke: color('--text-quiet'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${styles.fontFamily}`
  };
  const plot = new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      ms: 1,
      cursor: { ...(sync !== undefined && { sync: { key: sync } }), drag: { x: false, y: false }, points: { size: 6 } },
      legend: { show: true, live: true },
      scales: isFromZero ? { y: { range: (_, _min, max) => [0, max > 0 ? max * 1.08 : 4] } } : {},
      axes: [
        {
          ...axis,
          size: 28,
          space: 70,
          incrs: STEPS_MS,
          values: [
            [3_600_000, '{HH}:{mm}'],
            [60_000, '{HH}:{mm}'],
            [1_000, '{HH}:{mm}:{ss}']
          ].map(row)
        },
        { ...axis, size: 56, values: (_, splits) => withoutRepeats(splits.map((value) => format(value))) }
      ],
      series: [
        { label: '', value: '{HH}:{mm}:{ss}' },
        ...lines.map(({ label, color: number }) => ({
          label,
          stroke: color(`--line-${number}`),
          width: 1.5,
          fill: color(`--line-${number}`).replace(/^rgb\((.*)\)$/, 'rgba($1, 0.094)'),
          points: { show: false },
          value: (_: uPlot, value: number | null) => (value === null ? '–' : format(value))
        }))
      ]
    },
    dataOf(values),
    place
  );
  const sizes = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT }));
  sizes.observe(place);
  return {
    set: (next) => plot.setData(dataOf(next)),
    end() {
      sizes.disconnect();
      plot.destroy();
    }
  };
}

/** A row of the formats of an axis: the increment from which it applies, and its text. */
function row([increment, text]: (string | number)[]): (string | number | null)[] {
  return [increment, text, null, null, null, null, null, null, 1];
}

function dataOf(values: Values): uPlot.AlignedData {
  return values.map((list) => [...list]) as unknown as uPlot.AlignedData;
}
