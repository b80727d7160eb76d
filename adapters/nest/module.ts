// A module of Nest without decorators: a dynamic module is a plain object, hooks of the life cycle are methods that Nest finds by name, and the
// provider of the broker gets the instance of the module class, which has one host in each app. The adapter of the HTTP server comes from `configure`,
// which Nest calls before routes are registered, so that no class of `@nestjs/core` has to be injected.
import type { Server } from 'node:http';
import { readOptions } from '../../lib/adapter.ts';
import { type Broker, InvalidInput } from '../../lib/index.ts';
import { HOST_OPTIONS, HostedBroker, type HostOptions, type HostSettings } from '../hosts/index.ts';
import { nestLogger } from './logger.ts';
import type { EmbermqAsyncOptions, EmbermqDynamicModule, EmbermqModuleOptions } from './options.ts';

/** The injection token of the broker: `@Inject(BROKER) private readonly broker: Broker`. */
export const BROKER: unique symbol = Symbol.for('embermq.broker');

/** The token of a value that differs for each call of `forRoot`. Nest 10 takes two modules with equal metadata for one. */
const MODULE_ID = Symbol.for('embermq.module');
let modules = 0;

/** The part of an adapter of a HTTP server of Nest that is used. */
interface HttpAdapter {
  getHttpServer(): Server;
  getType(): string;
  getInstance(): { register(plugin: unknown): unknown };
  use(handler: unknown): unknown;
}

/**
 * The broker as a module of Nest 10 or newer: it starts with the app, serves MQTT over WebSocket on its HTTP server, and stops when the app closes.
 *
 * ```ts
 * @Module({ imports: [EmbermqModule.forRoot({ listen: 1883, management: true })] })
 * export class AppModule {}
 * ```
 * Providers get it as `@Inject(BROKER) broker: Broker`.
 */
export class EmbermqModule {
  /** Undefined if a test has replaced the provider of the broker. */
  #host: HostedBroker | undefined;

  /**
   * Describe the module with options that are known when the code is loaded.
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
   */
  static forRoot(options: EmbermqModuleOptions = {}): EmbermqDynamicModule {
    const { global, ...rest } = options;
    const settings = readHostOptions(rest, 'EmbermqModule.forRoot');
    return describe({ global, useFactory: () => settings });
  }

  /**
   * Describe the module with options that depend on other providers, such as a configuration service. Nest rejects with InvalidInput OPTION_UNKNOWN
   * or OPTION_INVALID when it creates the app.
   * @throws InvalidInput OPTION_INVALID `useFactory` is not a function
   */
  static forRootAsync<Import = never>(options: EmbermqAsyncOptions<Import>): EmbermqDynamicModule<Import> {
    if (typeof options?.useFactory !== 'function')
      throw new InvalidInput(
        'OPTION_INVALID',
        'EmbermqModule.forRootAsync.useFactory',
        'a function',
        options?.useFactory
      );
    const useFactory = async (...dependencies: never[]) =>
      readHostOptions(await options.useFactory(...dependencies), 'EmbermqModule.forRootAsync');
    return describe({ ...options, useFactory });
  }

  /** Make the broker of an app. @internal */
  async create(settings: HostSettings): Promise<Broker> {
    const logger = await nestLogger();
    this.#host = new HostedBroker(settings, logger === undefined ? {} : { logger });
    return this.#host.broker;
  }

  /** Called for an app with a HTTP server. @internal */
  configure(consumer: unknown): void {
    const host = this.#host;
    if (host === undefined) return;
    const adapter = (consumer as { getHttpAdapter?(): HttpAdapter | undefined }).getHttpAdapter?.();
    if (adapter === undefined) return;
    host.attachTo(adapter.getHttpServer());
    const isFastify = adapter.getType() === 'fastify';
    for (const { node, fastify } of host.mounts())
      if (isFastify) adapter.getInstance().register(fastify);
      else adapter.use(node);
  }

  /** Called when all providers exist. @internal */
  async onModuleInit(): Promise<void> {
    const host = this.#host;
    if (host === undefined) return;
    try {
      await host.open();
      await host.start();
    } catch (error) {
      // Nest calls no other hook if the app is closed then
      await host.leaveServer().catch(() => {});
      await host.close().catch(() => {});
      throw error;
    }
  }

  /** Called before the HTTP server closes. @internal */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#host?.leaveServer();
  }

  /** Called when the HTTP server and the microservices have closed. @internal */
  async onApplicationShutdown(): Promise<void> {
    await this.#host?.close();
  }
}

function readHostOptions(options: HostOptions, of: string): HostSettings {
  return readOptions(HOST_OPTIONS, options, of);
}

interface Described<Import> extends Pick<EmbermqAsyncOptions<Import>, 'global' | 'imports' | 'inject'> {
  readonly useFactory: (...dependencies: never[]) => HostSettings | Promise<HostSettings>;
}

function describe<Import = never>({
  global = true,
  imports = [],
  inject = [],
  useFactory
}: Described<Import>): EmbermqDynamicModule<Import> {
  return {
    module: EmbermqModule,
    global,
    imports: [...imports],
    providers: [
      { provide: MODULE_ID, useValue: String(++modules) },
      {
        provide: BROKER,
        inject: [EmbermqModule, ...(inject as symbol[])],
        useFactory: async (module, ...dependencies) =>
          (module as EmbermqModule).create(await useFactory(...(dependencies as never[])))
      }
    ],
    exports: [BROKER]
  };
}
