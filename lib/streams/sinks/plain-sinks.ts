import type { SinkType } from '../types.ts';

/** Writes outputs to the log of the service: `sink result for rule RULE: DATA`. */
export const LOG_SINK: SinkType = {
  name: 'log',
  about: 'Writes outputs to the log of the service.',
  properties: {},
  open: ({ ruleId, log }) => ({
    send: (item) => log(`sink result for rule ${ruleId}: ${item.bytes}`),
    close: () => undefined
  })
};

/** Discards outputs. */
export const NOP_SINK: SinkType = {
  name: 'nop',
  about: 'Discards outputs.',
  properties: { log: { type: 'boolean', default: false, about: 'Write them to the log of the service.' } },
  open: ({ ruleId, log, properties }) => ({
    send: properties.log === true ? (item) => log(`sink result for rule ${ruleId}: ${item.bytes}`) : () => undefined,
    close: () => undefined
  })
};
