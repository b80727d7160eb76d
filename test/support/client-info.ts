import type { ClientInfo } from '../../lib/records/client.ts';

/** A client as hooks and events receive it, with the fields that a test changes. */
export function clientInfo(changes: Partial<ClientInfo> = {}): ClientInfo {
  return {
    clientId: 'c1',
    username: undefined,
    protocolVersion: 4,
    keepalive: 60,
    cleanStart: true,
    sessionExpiry: 0,
    zone: 'external',
    mountpoint: '',
    isBridge: false,
    isSuperuser: false,
    data: undefined,
    transportInfo: { transport: 'tcp', remoteAddress: '192.0.2.7', remotePort: 40_000, localPort: 1883 },
    userProperties: [],
    connectedAt: undefined,
    disconnectedAt: undefined,
    ...changes
  };
}
