import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { type Broker, StateError } from '../../lib/index.ts';
import { HostedBroker } from '../hosts/index.ts';
import { type FastifyMqttOptions, readFastifyOptions } from './options.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The broker, which the plugin `fastifyMqtt` of `embermq/fastify` starts and stops with the app. */
    readonly mqtt: Broker;
  }
}

const NAME = 'embermq';
const DECORATOR = 'mqtt';

/**
 * The broker as a plugin of Fastify 5: it starts when the app is ready, serves MQTT over WebSocket on the server of the
 * app, and stops when the app closes. `app.mqtt` is the broker, in all contexts of the app that registers the plugin.
 *
 * ```ts
 * await app.register(fastifyMqtt, { listen: 1883, management: true });
 * app.post('/alarm', async () => app.mqtt.publish('alarms', 'fire'));
 * ```
 * `register` rejects with InvalidInput OPTION_UNKNOWN or OPTION_INVALID, and with StateError PLUGIN_REGISTERED if the
 * app already has the plugin. `ready` and `listen` reject with the errors of `broker.start`.
 */
export const fastifyMqtt: FastifyPluginAsync<FastifyMqttOptions> = Object.assign(
  async (fastify: FastifyInstance, options: FastifyMqttOptions) => {
    if (fastify.hasDecorator(DECORATOR)) {
      const text = `fastify.${DECORATOR} exists already; register fastifyMqtt once, in the outermost context that uses it`;
      throw new StateError('PLUGIN_REGISTERED', text);
    }
    const host = new HostedBroker(readFastifyOptions(options), { logger: fastify.log });
    host.attachTo(fastify.server);
    // before anything that may fail, so that closing the app later leaves nothing open
    fastify.addHook('onReady', () => host.start()); // Fastify calls it after `onClose` if the app was closed before it was ready
    fastify.addHook('preClose', () => host.leaveServer());
    fastify.addHook('onClose', () => host.close());
    for (const mount of host.mounts()) fastify.register(mount.fastify);
    await host.open();
    fastify.decorate(DECORATOR, host.broker);
  },
  {
    // The decorator belongs to the app, not to a context of the plugin. This is what the package fastify-plugin sets.
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: NAME,
    [Symbol.for('plugin-meta')]: { name: NAME, fastify: '5.x' }
  }
);
