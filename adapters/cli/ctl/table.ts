// Tables of lists on a terminal. The order of the columns is their importance: the first one, which names the row, gets
// the room it needs, and the others give way from the last to the first. Numbers and times are never cut, because a part
// of them is wrong; only their headings are. What still does not fit is left out, and `…` in the heading says so.

/** Widths below which columns are not cut: first to the larger one, then to the smaller one. */
const LEAST_WIDTHS = [20, 8];
const GAP = 2;
const ELLIPSIS = '…';
/** Numbers, times, addresses and states, which are not cut. */
const EXACT = /^[-+\d.:TZ ]*$|^(true|false|never)$/;

/** The columns of a table and their widths. */
interface Fitted {
  readonly columns: readonly number[];
  readonly widths: readonly number[];
  /** True if columns were left out. */
  readonly isCut: boolean;
}

/** Lists rows in columns that fit into a terminal. The rows come in blocks, and each block has its own widths. */
export class ListTable {
  readonly #room: number;
  /** The columns that had values so far, whether there was room for them or not. */
  #used: readonly number[] = [];
  /** The columns under the last headings. */
  #headed: string | undefined;

  /** @param room the width of the terminal in characters; `Infinity`: nothing is cut */
  constructor(room: number) {
    this.#room = room;
  }

  /**
   * The lines of a block of rows, with a line break after each. Columns that are empty in all rows are left out. The first block begins
   * with the headings, and a later one if it has other columns than the block before.
   */
  block(heads: readonly string[], rows: readonly (readonly string[])[]): string {
    if (heads.length === 0) return '\n'.repeat(rows.length);
    const used = heads.map((_, at) => at).filter((at) => at === 0 || rows.length === 0 || this.#isUsed(at, rows));
    const fit = fitted(used, heads, rows, this.#room);
    const headed = `${fit.columns}`;
    const isHeaded = headed === this.#headed;
    this.#used = used;
    this.#headed = headed;
    const lines = isHeaded ? rows : [heads, ...rows];
    return lines.map((cells, at) => lineOf(cells, fit, !isHeaded && at === 0)).join('');
  }

  #isUsed(at: number, rows: readonly (readonly string[])[]): boolean {
    return this.#used.includes(at) || rows.some((cells) => cells[at] !== '');
  }
}

/** Names and values in two columns, which are not cut. */
export function pairs(rows: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${`${name.padEnd(width)}  ${value}`.trimEnd()}\n`).join('');
}

function fitted(
  used: readonly number[],
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  room: number
): Fitted {
  const columns = [...used];
  const widths = used.map((at) => widest([heads[at], ...rows.map((cells) => cells[at])]));
  let width = widths.reduce((sum, one) => sum + one + GAP, -GAP);
  for (const least of LEAST_WIDTHS)
    for (let at = widths.length - 1; at > 0 && width > room; at--) {
      const cells = rows.map((one) => one[columns[at]]);
      const kept = cells.every((text) => EXACT.test(text)) ? Math.max(widest(cells), LEAST_WIDTHS[1]) : least;
      const less = Math.min(Math.max(0, widths[at] - kept), width - room);
      widths[at] -= less;
      width -= less;
    }
  const isCut = width > room && columns.length > 1;
  while (columns.length > 1 && width + GAP + ELLIPSIS.length > room && isCut) {
    columns.pop();
    width -= (widths.pop() as number) + GAP;
  }
  widths[0] = Math.min(widths[0], room);
  return { columns, widths, isCut };
}

function widest(cells: readonly string[]): number {
  return cells.reduce((most, { length }) => Math.max(most, length), 0);
}

function lineOf(cells: readonly string[], { columns, widths, isCut }: Fitted, isHeading: boolean): string {
  const shown = columns.map((column, at) => {
    const text = isHeading ? shortened(cells[column], widths[at]) : cells[column];
    return cut(text, widths[at]).padEnd(widths[at]);
  });
  return `${[...shown, ...(isCut && isHeading ? [ELLIPSIS] : [])].join(' '.repeat(GAP)).trimEnd()}\n`;
}

/** A heading without its first parts, if it is too long: `in.count` for `messages.in.count`. */
function shortened(heading: string, width: number): string {
  const [, rest] = /^[^.]+\.(.+)$/.exec(heading) ?? [];
  return heading.length <= width || rest === undefined ? heading : shortened(rest, width);
}

function cut(text: string, width: number): string {
  if (text.length <= width) return text;
  // not between the two halves of a surrogate pair
  return `${text.slice(0, width - 1).replace(/[\ud800-\udbff]$/, '')}${ELLIPSIS}`;
}
