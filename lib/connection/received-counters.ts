import { Metric } from '../events/metrics.ts';

/** Counter of received packets, by packet type. Types that only a server sends have no counter. */
export const RECEIVED: readonly number[] = [
  Metric.packetsReceived,
  Metric.packetsConnectReceived,
  Metric.packetsReceived,
  Metric.packetsPublishReceived,
  Metric.packetsPubackReceived,
  Metric.packetsPubrecReceived,
  Metric.packetsPubrelReceived,
  Metric.packetsPubcompReceived,
  Metric.packetsSubscribeReceived,
  Metric.packetsReceived,
  Metric.packetsUnsubscribeReceived,
  Metric.packetsReceived,
  Metric.packetsPingreqReceived,
  Metric.packetsReceived,
  Metric.packetsDisconnectReceived,
  Metric.packetsAuthReceived
];
