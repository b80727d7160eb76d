import type { ProtocolVersion } from './types.ts';

/** The versions of MQTT, for people. */
export const VERSION_NAMES: Readonly<Record<ProtocolVersion, string>> = {
  3: 'MQTT 3.1',
  4: 'MQTT 3.1.1',
  5: 'MQTT 5.0'
};
