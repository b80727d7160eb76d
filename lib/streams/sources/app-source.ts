import type { SourceType } from '../types.ts';

/** Streams whose rows come only from the app, by `broker.streams.push()`. */
export const APP_SOURCES: readonly SourceType[] = ['app', 'push'].map((name) => ({
  name,
  about: 'Rows that the app pushes with broker.streams.push().',
  properties: {},
  open(setup) {
    setup.connected();
    return { close: () => undefined };
  }
}));
