import { readOptions } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';
import { HOST_OPTIONS, type HostListener, type HostOptions, type HostSettings } from '../hosts/index.ts';

/** A listener with a separate port: the argument of `listen` of `embermq/net`. */
export type FastifyMqttListener = HostListener;

/** Options of the plugin `fastifyMqtt`. */
export interface FastifyMqttOptions extends HostOptions {}

/** Read the options of the plugin. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
export function readFastifyOptions(given: FastifyMqttOptions): HostSettings {
  // @fastify/autoload and `register` pass options that Fastify itself uses
  const { prefix, logLevel, logSerializers, ...rest } = given as FastifyMqttOptions & Record<string, unknown>;
  if (prefix !== undefined && prefix !== '' && prefix !== '/') {
    const text =
      'prefix: the plugin has none; give the paths in webSocket.path, management.prefix and streamsApi.prefix instead';
    throw new InvalidInput('OPTION_UNKNOWN', 'prefix', 'no prefix', prefix, text);
  }
  return readOptions(HOST_OPTIONS, rest, 'fastifyMqtt');
}
