// A state chart as a drawing. Outer states are columns of full height, their inner states rows. A transition to the next column is a horizontal line
// at the height of the inner state that it leaves or enters, one between inner states is vertical, and one that passes over columns runs below them.
// So no line crosses a state.
import { type ChartConfig, type Transition, transitionsOf } from './state-chart.ts';

/** A state at its place, in pixels. */
export interface PlacedState {
  readonly path: string;
  readonly name: string;
  readonly isInner: boolean;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The corners of a line, and the place of its label. */
interface Line {
  readonly points: readonly (readonly [x: number, y: number])[];
  readonly label: { readonly x: number; readonly y: number; readonly anchor: 'start' | 'middle' };
}

/** A transition at its place. */
export interface PlacedTransition extends Transition, Line {}

export interface Drawing {
  readonly width: number;
  readonly height: number;
  /** The outer states first. */
  readonly states: readonly PlacedState[];
  readonly transitions: readonly PlacedTransition[];
}

const INNER_WIDTH = 140;
const PLAIN_WIDTH = 104;
/** Between an outer state and its inner states. */
const SIDE = 14;
const HEAD = 34;
/** Between columns. */
const GAP = 112;
/** Between inner states. */
const BETWEEN = 44;
/** Between lines. */
const LINE = 24;
const LANE = 30;
const EDGE = 6;
/** From the left side of an inner state to its vertical lines. */
const INSET = 18;
const ABOVE_LINE = 5;

/** Place the states and transitions of a chart with at most one level of inner states. */
export function drawingOf(chart: ChartConfig): Drawing {
  const columns = new Columns(chart);
  const { states, right, bottom } = columns.states();
  const far = columns.transitions.filter((one) => columns.distance(one) > 1);
  const transitions = columns.transitions.map((one): PlacedTransition => {
    const isNear = columns.distance(one) === 1;
    const lane = bottom + LANE * (1 + far.indexOf(one)) - LANE / 3;
    const line = far.includes(one)
      ? below(one, states, lane)
      : isNear
        ? columns.across(one, states)
        : down(one, states);
    return { ...one, ...line };
  });
  return { width: right + EDGE, height: bottom + LANE * far.length + EDGE, states, transitions };
}

function stateAt(states: readonly PlacedState[], path: string): PlacedState {
  return states.find((state) => state.path === path) as PlacedState;
}

function outerOf(path: string): string {
  return path.split('.')[0];
}

/** A line below the columns. */
function below({ from, to }: Transition, states: readonly PlacedState[], y: number): Line {
  const [start, end] = [from, to].map((path) => stateAt(states, path));
  const [left, right] = [start, end].map((state) => state.x + state.width / 2);
  return {
    points: [
      [left, start.y + start.height],
      [left, y],
      [right, y],
      [right, end.y + end.height]
    ],
    label: { x: (left + right) / 2, y: y - ABOVE_LINE, anchor: 'middle' }
  };
}

/** A line between two states of a column. */
function down({ from, to }: Transition, states: readonly PlacedState[]): Line {
  const [start, end] = [from, to].map((path) => stateAt(states, path));
  const x = start.x + INSET;
  const [y, endY] = start.y < end.y ? [start.y + start.height, end.y] : [start.y, end.y + end.height];
  return {
    points: [
      [x, y],
      [x, endY]
    ],
    label: { x: x + 6, y: (y + endY) / 2 + 4, anchor: 'start' }
  };
}

/** The columns of a chart, and the lines at their sides. */
class Columns {
  readonly transitions: readonly Transition[];
  readonly #outer: readonly (readonly [name: string, state: ChartConfig])[];

  constructor(chart: ChartConfig) {
    this.transitions = transitionsOf(chart);
    this.#outer = Object.entries(chart.states ?? {});
  }

  #columnOf(path: string): number {
    return this.#outer.findIndex(([name]) => name === outerOf(path));
  }

  /** Columns between the ends of a transition. */
  distance({ from, to }: Transition): number {
    return Math.abs(this.#columnOf(from) - this.#columnOf(to));
  }

  /** The end whose height a line to the next column has: an inner state if there is one. */
  #anchorOf({ from, to }: Transition): string {
    return from.includes('.') || !to.includes('.') ? from : to;
  }

  /** Lines to the next column at one side of a state. */
  #linesAt(path: string, side: number): readonly Transition[] {
    const columnOf = ({ from, to }: Transition) => this.#columnOf(from === path ? to : from);
    return this.transitions.filter(
      (one) => this.distance(one) === 1 && this.#anchorOf(one) === path && columnOf(one) - this.#columnOf(path) === side
    );
  }

  states(): { readonly states: readonly PlacedState[]; readonly right: number; readonly bottom: number } {
    const inner: PlacedState[] = [];
    const outer: Omit<PlacedState, 'height'>[] = [];
    let right = EDGE;
    let bottom = 0;
    for (const [name, { states = {} }] of this.#outer) {
      const paths = this.#ordered(Object.keys(states).map((each) => `${name}.${each}`));
      const width = paths.length === 0 ? PLAIN_WIDTH : INNER_WIDTH + 2 * SIDE;
      let y = EDGE + HEAD;
      for (const path of paths) {
        const height = Math.max(1, ...[-1, 1].map((side) => this.#linesAt(path, side).length)) * LINE + SIDE;
        const place = { x: right + SIDE, y, width: INNER_WIDTH, height };
        inner.push({ path, name: path.slice(name.length + 1), isInner: true, ...place });
        y += height + BETWEEN;
        bottom = Math.max(bottom, y - BETWEEN + SIDE);
      }
      outer.push({ path: name, name, isInner: false, x: right, y: EDGE, width });
      right += width + GAP;
    }
    return {
      states: [...outer.map((one) => ({ ...one, height: bottom - EDGE })), ...inner],
      right: right - GAP,
      bottom
    };
  }

  /** Inner states in such an order that a transition between two of them passes no other one, if possible. */
  #ordered(paths: readonly string[]): readonly string[] {
    const ordered: string[] = [];
    const left = new Set(paths);
    while (left.size > 0) {
      const last = ordered.at(-1);
      const after = this.transitions.find(({ from, to }) => from === last && left.has(to))?.to;
      const next: string = after ?? [...left][0];
      ordered.push(next);
      left.delete(next);
    }
    return ordered;
  }

  /** A line to the next column. */
  across(one: Transition, states: readonly PlacedState[]): Line {
    const side = Math.sign(this.#columnOf(one.to) - this.#columnOf(one.from));
    const anchor = this.#anchorOf(one);
    const lines = this.#linesAt(anchor, anchor === one.from ? side : -side);
    const { y: top, height } = stateAt(states, anchor);
    const y = top + height / 2 + (lines.indexOf(one) - (lines.length - 1) / 2) * LINE;
    const edge = (path: string, at: number) => {
      const { x, width } = stateAt(states, path);
      return at > 0 ? x + width : x;
    };
    const middle = (edge(outerOf(one.from), side) + edge(outerOf(one.to), -side)) / 2;
    return {
      points: [
        [edge(one.from, side), y],
        [edge(one.to, -side), y]
      ],
      label: { x: middle, y: y - ABOVE_LINE, anchor: 'middle' }
    };
  }
}
