import type { Outlet } from '../../lib/session/messages/outlet.ts';
import type { QueueLimits } from '../../lib/session/messages/priority-list.ts';
import { Queue } from '../../lib/session/messages/queue.ts';
import { TotalBacklog } from '../../lib/session/total-backlog.ts';

/** Creates the queue of a session that has nothing else. @param drop called for each message that is dropped */
export function queueAlone(
  limits: QueueLimits,
  drop: Outlet['drop'],
  totalBacklog: TotalBacklog = new TotalBacklog(0)
): Queue {
  const outlet = { agreement: { zone: limits }, ports: { pressure: { totalBacklog } }, drop };
  return new Queue(outlet as unknown as Outlet);
}
