import { checkBroker } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import { type HttpMounts, mountsOf } from '../rest/index.ts';
import { Console } from './console.ts';
import { type DashboardOptions, readDashboardOptions } from './options.ts';

/** The management console of a broker, ready to be mounted. */
export interface Dashboard extends HttpMounts {}

/**
 * Make the management console of a broker: a web page that shows what the broker does and lets people act.
 *
 * ```ts
 * const console = dashboard(broker, { prefix: '/console' });
 * app.use(console.node); // Express; the other routes of the app stay as they are
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function dashboard(broker: Broker, options: DashboardOptions = {}): Dashboard {
  checkBroker(broker, 'dashboard');
  const settings = readDashboardOptions(options);
  const service = new Console(broker, settings, options);
  return mountsOf(broker, [service], 'answering a request of the console');
}
