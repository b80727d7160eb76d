import type { Compared } from './comparison.ts';

/** A group of bars: a row of the benchmark, and its label for readers. */
interface Group {
  readonly row: string;
  readonly title: string;
}

const GROUPS: readonly Group[] = [
  { row: 'pairs100 q0 64B w20', title: 'QoS 0, bursts of 20' },
  { row: 'pairs100 q1 64B w20', title: 'QoS 1, bursts of 20' },
  { row: 'pairs100 q2 64B w20', title: 'QoS 2, bursts of 20' },
  { row: 'fanout1000 q0 64B w10', title: 'QoS 0, one publisher, 1,000 subscribers' },
  { row: 'pairs500 q0 64B w1', title: 'QoS 0, one message at a time' },
  { row: 'pairs100 q1 64B w20 durable', title: 'QoS 1, bursts of 20, kept on disk' }
];
const COLORS: Readonly<Record<Compared, string>> = {
  embermq: '#d9480f',
  mosquitto: '#4c6ef5',
  aedes: '#868e96'
};
const [WIDTH, LABEL, BAR, GAP, TOP] = [720, 90, 16, 34, 64];
/** The width of the longest bar. */
const ROOM = WIDTH - LABEL - 110;

type CostOf = (row: string, broker: Compared) => number | undefined;

/**
 * Draw the cost of a message as an SVG picture: CPU time of the broker, in one group of bars for each of a few rows. Bars of a group have one
 * scale, which begins at zero.
 * @param costOf microseconds; undefined if it was not measured
 * @returns undefined if no row of the picture was measured with two brokers
 */
export function chart(costOf: CostOf, caption: string): string | undefined {
  const groups = GROUPS.map(({ row, title }) => ({ title, bars: barsOf(costOf, row) })).filter(
    ({ bars }) => bars.length > 1
  );
  if (groups.length === 0) return undefined;
  const parts: string[] = [];
  let y = TOP;
  for (const { title, bars } of groups) {
    parts.push(text(16, y + 12, title, 'font-weight="600"'));
    y += 20;
    const longest = Math.max(...bars.map(({ us }) => us));
    for (const { broker, us } of bars) {
      const width = Math.max(1, (us / longest) * ROOM).toFixed(1);
      parts.push(
        text(LABEL - 6, y + 12, broker, 'text-anchor="end"'),
        `<rect x="${LABEL}" y="${y}" width="${width}" height="${BAR - 2}" fill="${COLORS[broker]}"/>`,
        text(LABEL + Number(width) + 6, y + 12, `${us.toFixed(2)} us`)
      );
      y += BAR;
    }
    y += GAP - BAR;
  }
  const height = y + 4;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="13" role="img">`,
    '<title>CPU time of the broker for each message</title>',
    `<rect width="${WIDTH}" height="${height}" rx="6" fill="#ffffff"/>`,
    text(16, 26, 'CPU time of the broker for each message (shorter is better)', 'font-size="15" font-weight="600"'),
    text(16, 46, caption, 'fill="#495057"'),
    ...parts,
    '</svg>',
    ''
  ].join('\n');
}

/** The bars of a row: the measured brokers, ours first. */
function barsOf(costOf: CostOf, row: string): { readonly broker: Compared; readonly us: number }[] {
  return (Object.keys(COLORS) as Compared[]).flatMap((broker) => {
    const us = costOf(row, broker);
    return us === undefined ? [] : [{ broker, us }];
  });
}

function text(x: number, y: number, content: string, attributes = ''): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" ${attributes}>${escaped}</text>`;
}
