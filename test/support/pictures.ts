import { compileStreamRule } from '../../lib/streams/index.ts';
import { ACCENT, arrow, box, GREY, picture, text } from './svg.ts';

/** The drawn pictures of the pages, by their paths. `UPDATE_PAGES=1 npm test -- pictures` writes them. */
export const PICTURES: Readonly<Record<string, () => string | Promise<string>>> = {
  'lib/session/session.svg': sessionPicture,
  'lib/streams/windows.svg': windowPicture
};

/** A state in the picture of the chart of a session. Inner states are drawn in the box of their parent. */
interface DrawnState {
  readonly at: readonly [x: number, y: number, width: number, height: number];
  readonly says?: string;
}

const STATES: Readonly<Record<string, DrawnState>> = {
  idle: { at: [24, 56, 176, 136], says: 'accepted, no session yet' },
  'idle.awaitingConnect': { at: [38, 104, 148, 28] },
  'idle.authenticating': { at: [38, 154, 148, 28] },
  connected: { at: [300, 56, 152, 60], says: 'packets flow' },
  disconnected: { at: [570, 56, 176, 178], says: 'kept until its expiry' },
  'disconnected.takenOver': { at: [584, 104, 148, 28] },
  'disconnected.closing': { at: [584, 146, 148, 28] },
  'disconnected.waiting': { at: [584, 196, 148, 28] },
  gone: { at: [300, 262, 152, 44], says: 'the actor has ended' }
};

/** A transition in the picture: `FROM event [guard] TO`, with the way of its line and the place of its text. */
interface DrawnTransition {
  readonly is: string;
  readonly way: readonly (readonly [x: number, y: number])[];
  readonly label: readonly [x: number, y: number, content: string];
}

const TRANSITIONS: readonly DrawnTransition[] = [
  {
    is: 'idle.awaitingConnect connect idle.authenticating',
    way: [
      [112, 132],
      [112, 153]
    ],
    label: [120, 147, 'connect']
  },
  {
    is: 'idle.authenticating accepted connected',
    way: [
      [186, 168],
      [330, 168],
      [330, 117]
    ],
    label: [214, 162, 'accepted']
  },
  {
    is: 'idle closed gone',
    way: [
      [70, 192],
      [70, 276],
      [299, 276]
    ],
    label: [82, 270, 'closed']
  },
  {
    is: 'idle handedOver gone',
    way: [
      [40, 192],
      [40, 296],
      [299, 296]
    ],
    label: [82, 290, 'handedOver']
  },
  {
    is: 'connected closed disconnected.closing',
    way: [
      [420, 116],
      [420, 160],
      [583, 160]
    ],
    label: [462, 154, 'closed']
  },
  {
    is: 'connected takenOver disconnected.takenOver',
    way: [
      [452, 104],
      [500, 104],
      [500, 112],
      [583, 112]
    ],
    label: [508, 106, 'takenOver']
  },
  {
    is: 'disconnected.takenOver connected',
    way: [
      [584, 124],
      [470, 124],
      [470, 96],
      [453, 96]
    ],
    label: [474, 140, '']
  },
  {
    is: 'disconnected.closing [outlivesConnection] disconnected.waiting',
    way: [
      [700, 174],
      [700, 195]
    ],
    label: [578, 189, 'outlivesConnection']
  },
  {
    is: 'disconnected.closing gone',
    way: [
      [584, 167],
      [440, 167],
      [440, 261]
    ],
    label: [448, 182, 'otherwise']
  },
  {
    is: 'disconnected.waiting resumed connected',
    way: [
      [584, 204],
      [376, 204],
      [376, 117]
    ],
    label: [462, 200, 'resumed']
  },
  {
    is: 'disconnected.waiting expired gone',
    way: [
      [620, 234],
      [620, 276],
      [453, 276]
    ],
    label: [470, 270, 'expired']
  },
  {
    is: 'disconnected.waiting discarded gone',
    way: [
      [680, 234],
      [680, 296],
      [453, 296]
    ],
    label: [470, 290, 'discarded']
  }
];

/** The transitions of a chart, as they are named in the picture. */
export function transitionsOf(chart: { readonly config: object }): string[] {
  return transitionsIn(chart.config as ChartNode, '');
}

/** The transitions that are drawn. */
export const drawnTransitions = TRANSITIONS.map(({ is }) => is);

type Target = string | { readonly target: string; readonly guard?: string };

interface ChartNode {
  readonly states?: Readonly<Record<string, ChartNode>>;
  readonly on?: Readonly<Record<string, Target>>;
  readonly always?: Target | readonly Target[];
}

function transitionsIn({ states = {}, on = {}, always = [] }: ChartNode, path: string): string[] {
  const parent = path.replace(/\.?[^.]*$/, '');
  const absolute = (target: string) =>
    target.startsWith('#') ? target.replace(/^#[^.]*\./, '') : [parent, target].filter(Boolean).join('.');
  const name = (event: string, target: Target) => {
    const { target: to, guard } = typeof target === 'string' ? { target, guard: undefined } : target;
    return [path, event, guard === undefined ? '' : `[${guard}]`, absolute(to)].filter(Boolean).join(' ');
  };
  return [
    ...Object.entries(on).map(([event, target]) => name(event, target)),
    ...[always].flat().map((target) => name('', target as Target)),
    ...Object.entries(states).flatMap(([key, child]) => transitionsIn(child, path === '' ? key : `${path}.${key}`))
  ];
}

/** The chart of a session: its states, and what leads from one to the next. */
function sessionPicture(): string {
  const states = Object.entries(STATES).flatMap(([path, { at, says }]) => {
    const [x, y, width, height] = at;
    const name = path.split('.').at(-1) as string;
    if (path.includes('.'))
      return [
        box(x, y, width, height, 'fill="#ffffff" stroke="#ced4da"'),
        text(x + width / 2, y + 19, name, 'text-anchor="middle"')
      ];
    return [
      box(x, y, width, height, `fill="#fff4e6" stroke="${ACCENT}"`),
      text(x + 12, y + 20, name, 'font-weight="600"'),
      ...(says === undefined ? [] : [text(x + 12, y + 37, says, 'font-size="11" fill="#495057"')])
    ];
  });
  const lines = TRANSITIONS.flatMap(({ way, label: [x, y, content] }) => [
    arrow(way),
    ...(content === '' ? [] : [text(x, y, content, 'font-size="11" fill="#495057"')])
  ]);
  const title = 'The chart of a session';
  return picture(770, 326, title, [text(24, 32, title, 'font-size="15" font-weight="600"'), ...states, ...lines]);
}

/** The rows of the picture of windows: the time of each in seconds, and its value. */
const ROWS = [
  [1, 20],
  [3, 22],
  [8, 27],
  [12, 30],
  [13, 26],
  [24, 21],
  [26, 23]
] as const;
const SECONDS = 30;
const WINDOWS = ['TUMBLINGWINDOW(ss, 10)', 'HOPPINGWINDOW(ss, 10, 5)', 'SESSIONWINDOW(ss, 20, 5)'];

/** Windows over the same rows, with the outputs of real runs. */
async function windowPicture(): Promise<string> {
  const [left, scale, top] = [24, 23, 60];
  const x = (second: number) => left + second * scale;
  const steps = ROWS.map(([at, t]) => ({ stream: 'sensors', values: { t }, at: at * 1_000 }));
  const parts = [
    text(left, 32, 'SELECT avg(t) AS mean FROM sensors GROUP BY ...', 'font-size="15" font-weight="600"'),
    ...ROWS.flatMap(([at, t]) => [
      `<circle cx="${x(at)}" cy="${top + 10}" r="4" fill="${ACCENT}"/>`,
      text(x(at), top + 1, String(t), 'font-size="11" text-anchor="middle"')
    ]),
    arrow([
      [left, top + 10],
      [x(SECONDS) + 12, top + 10]
    ]),
    ...[0, 5, 10, 15, 20, 25, 30].map((second) =>
      text(x(second), top + 28, `${second} s`, 'font-size="11" fill="#868e96" text-anchor="middle"')
    )
  ];
  let y = top + 58;
  for (const window of WINDOWS) {
    const sql = `SELECT avg(t) AS mean, window_start() AS begins, window_end() AS ends FROM sensors GROUP BY ${window}`;
    const rule = await compileStreamRule(sql);
    parts.push(text(left, y, window, 'font-weight="600"'));
    const ends: number[] = [];
    for (const [row] of rule.run(steps, { until: SECONDS * 1_000 + 5_000 }).emissions) {
      const { mean, begins, ends: until } = row as { mean: number; begins: number; ends: number };
      const [from, to] = [Math.max(0, begins / 1_000), Math.min(SECONDS, until / 1_000)];
      const lane = ends.findIndex((end) => end <= from);
      const at = lane === -1 ? ends.length : lane;
      ends[at] = to;
      const middle = y + 8 + at * 26;
      parts.push(
        box(x(from) + 1, middle, (to - from) * scale - 2, 22, `fill="#fff4e6" stroke="${ACCENT}"`),
        text(
          (x(from) + x(to)) / 2,
          middle + 15,
          `mean ${Math.round(mean * 10) / 10}`,
          'font-size="11" text-anchor="middle"'
        )
      );
    }
    y += 38 + ends.length * 26;
  }
  parts.push(
    text(
      left,
      y - 8,
      'Above: rows of the stream, with their values. Below: each box is a window, with the output that it emits at its end.',
      `font-size="11" fill="${GREY}"`
    )
  );
  return picture(x(SECONDS) + 50, y + 8, 'Windows over the same rows', parts);
}
