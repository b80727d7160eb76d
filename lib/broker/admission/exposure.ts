import { admitsAnonymous } from '../../access/authentication.ts';
import { BrokerError } from '../../base/errors.ts';
import { exposedText } from '../../monitor/log.ts';
import type { ListenerHandle } from '../../records/listener.ts';
import type { Services } from '../services.ts';

/**
 * Warn about listeners that other machines can reach and where any client may connect, unless `allowAnonymous` allows it: as an event, or
 * as a process warning if there is no listener of the event.
 */
export function warnOfExposure({ settings, hooks, events }: Services, listeners: Iterable<ListenerHandle>): void {
  const isOpen = ({ exposure }: ListenerHandle) => {
    const zone = settings.zones.get(exposure?.zone ?? '');
    if (zone === undefined || zone.allowAnonymous === true || hooks.preConnect.length > 0) return false;
    return zone.bypassAuthPlugins || (zone.allowAnonymous === undefined && admitsAnonymous(zone, hooks));
  };
  const exposed = [...listeners].filter(isOpen);
  if (exposed.length === 0) return;
  if (events.heard['listener.exposed']) events.emit('listener.exposed', { listeners: exposed });
  else process.emitWarning(new BrokerError('ANONYMOUS_EXPOSED', exposedText(exposed)));
}
