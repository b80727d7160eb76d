import { errorText } from '../../base/errors.ts';
import { hideInText } from '../../base/hidden-text.ts';
import { cut } from '../../monitor/cut-text.ts';
import type { DerivedCause } from '../../monitor/reasons/derived.ts';
import type { Connectors } from '../configuration/connectors.ts';
import { BRIDGE_PREFIX } from '../rights/bridge-access.ts';

/** Name the bridge whose session is offline, with the last error of its connection. Other causes stay as they are. */
export function withBridge(cause: DerivedCause, connectors: Pick<Connectors, 'get'>): DerivedCause {
  const { code, evidence } = cause;
  const { clientId, detail } = evidence;
  if (code !== 'offline_queued' || typeof clientId !== 'string' || !clientId.startsWith(BRIDGE_PREFIX)) return cause;
  const bridge = clientId.slice(BRIDGE_PREFIX.length);
  const { isStarted = false, lastError } = connectors.get('bridge', bridge) ?? {};
  const error = lastError === undefined ? '' : `; ${hideInText(errorText(lastError))}`;
  const reason = isStarted ? error : '; it is stopped';
  return { ...cause, evidence: { ...evidence, bridge, isStarted, detail: cut(`${detail}${reason}`) } };
}
