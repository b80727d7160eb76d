// The icons of the console: lines on a grid of 16, drawn for it.
const PATHS = {
  overview: 'M2 13V9m4 4V5m4 8V7m4 6V3',
  clients:
    'M5.500 7a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM1 14c0-2.500 2-4 4.500-4S10 11.500 10 14M11 7.500a2 2 0 1 0-.5-4M12 10c2 .3 3 1.800 3 4',
  topics: 'M3 2v10h4M3 6h4M9 4.500h5v3H9zM9 10.500h5v3H9z',
  why: 'M8 14.500a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM6 6.200C6.200 5 7 4.500 8 4.500s2 .7 2 1.800C10 7.800 8 7.800 8 9.300M8 11.500v.2',
  traces: 'M2 13V3M2 13h12M4.500 10.500l2.500-4 2.500 2.500 4-6',
  websocket: 'M1.500 5h9M8 2.500L10.500 5 8 7.500M14.500 11h-9M8 8.500L5.500 11 8 13.500',
  tail: 'M2 3.500h12M2 6.500h8M2 9.500h10M2 12.500h5',
  access: 'M4 7V5a4 4 0 0 1 8 0v2M3 7h10v7H3zM8 10v1.500',
  alarms: 'M8 1.500l6.500 12h-13zM8 6v3.500M8 11.500v.2',
  rules: 'M2 3h5v4H2zM9 9h5v4H9zM4.500 7v4H9',
  streams: 'M1.500 5c2-2 4.300-2 6.500 0s4.500 2 6.500 0M1.500 11c2-2 4.300-2 6.500 0s4.500 2 6.500 0',
  options:
    'M2 4.500h7M13 4.500h1M2 11.500h1M7 11.500h7M11 2.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM5 9.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  features: 'M5 3.500h6a4.500 4.500 0 0 1 0 9H5a4.500 4.500 0 0 1 0-9zM11 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  listeners: 'M2 8h5M8 4.500a3.500 3.500 0 0 1 0 7zM11.500 6.500H15M11.500 9.500H15',
  node: 'M2 2.500h12v4.500H2zM2 9h12v4.500H2zM4.500 4.700v.1M4.500 11.200v.1',
  webhooks:
    'M6.500 5.500a2.500 2.500 0 1 1 3.300 2.300L12 11.500M4 12.500h5.500M8.500 5.500L5.300 10.700M12.500 14a1.800 1.800 0 1 0 0-3.600 1.800 1.800 0 0 0 0 3.600zM3.500 14a1.800 1.800 0 1 0 0-3.600 1.800 1.800 0 0 0 0 3.600z',
  bridges:
    'M1.500 11.500h13M3 11.500V6M13 11.500V6M3 6.500c2 3 8 3 10 0M6 8.300v3.200M10 8.300v3.200M1.500 8L3 6l1.500 2M11.500 8L13 6l1.500 2',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.800 10.800L14.500 14.500',
  menu: 'M2 4h12M2 8h12M2 12h12',
  theme: 'M8 14.500a6.500 6.500 0 1 0 0-13zM8 1.500a6.500 6.500 0 1 0 0 13',
  out: 'M6 2H2.500v12H6M7 8h7M11 5l3 3-3 3',
  close: 'M3.500 3.500l9 9M12.500 3.500l-9 9',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  reload: 'M13.500 8a5.500 5.500 0 1 1-1.600-3.900M13.500 1.500v3h-3',
  open: 'M6 3l5 5-5 5',
  pause: 'M5 3v10M11 3v10',
  play: 'M4 2.500l9 5.500-9 5.500z',
  plus: 'M8 3v10M3 8h10',
  more: 'M3 8h.01M8 8h.01M13 8h.01'
} as const;

export type IconName = keyof typeof PATHS;

/** An icon beside a text that says the same, so that it is not read. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
