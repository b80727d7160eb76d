import type { SinkType, SourceType } from '../../../lib/adapter.ts';
import type { Broker, StreamsOptions } from '../../../lib/index.ts';
import type { FileSinkOptions } from '../../streams/file/index.ts';
import type { PushChecks } from '../../streams/http/index.ts';
import type { StreamPlugins } from '../../streams-plugins/index.ts';
import type { Shell } from '../command.ts';
import { log } from '../command.ts';
import type { FlagValues } from '../flags.ts';
import type { Port, SERVE_OPTIONS } from './options.ts';

/** Delay between the deletion of a plugin and the end of the process, in milliseconds: the answer is sent before. */
const DROP_DELAY_MS = 1_000;

/**
 * All types of sources and sinks that need an adapter, for the option `streams`.
 * @param pushPort the port of the source `httppush` and of paths of `websocket`; `off`: none
 * @param places the folders that the types `file` may use
 * @param pages the web pages that may push rows, and connect to paths
 */
export async function streamTypes(
  pushPort: Port,
  places: FileSinkOptions,
  pages: Pick<PushChecks, 'origins' | 'hosts'>
): Promise<{ readonly sources: SourceType[]; readonly sinks: SinkType[] }> {
  const [file, http, mqtt, redis, influx, kafka, { webSockets }] = await Promise.all([
    import('../../streams/file/index.ts'),
    import('../../streams/http/index.ts'),
    import('../../streams/mqtt/index.ts'),
    import('../../streams/redis/index.ts'),
    import('../../streams/influx/index.ts'),
    import('../../streams/kafka/index.ts'),
    import('../../streams/websocket/index.ts')
  ]);
  const port = pushPort === 'off' ? pushPort : new http.StreamsPort({ port: pushPort });
  const push = port === 'off' ? [] : [http.httpPushSource({ port, ...pages })];
  const { origins } = pages;
  const sockets = webSockets({ port, ...(origins === undefined ? {} : { origins }) });
  return {
    sources: [
      file.fileSource(places),
      http.httpPullSource(),
      ...push,
      mqtt.mqttSource(),
      redis.redisLookup(),
      redis.redisSubSource(),
      kafka.kafkaSource(),
      sockets.source
    ],
    sinks: [
      file.fileSink(places),
      http.restSink(),
      mqtt.mqttSink(),
      redis.redisSink(),
      influx.influxSink(),
      influx.influx2Sink(),
      kafka.kafkaSink(),
      sockets.sink
    ]
  };
}

/** The options of `serve` for plugins. */
type PluginFlags = Pick<
  FlagValues<typeof SERVE_OPTIONS>,
  'exitOnPluginDrop' | 'pluginHosts' | 'installScripts' | 'autoLoadPlugins'
>;

/** The plugins of the streams, and the end of the process after one of them was deleted. */
export interface ServedPlugins {
  readonly plugins: StreamPlugins | undefined;
  /** Resolves to the reason. */
  readonly ended: Promise<string>;
}

/** Load the plugins from the folder of the streams; without a folder there are none. */
export async function servePlugins(
  broker: Broker,
  { dataDir }: StreamsOptions,
  { exitOnPluginDrop, pluginHosts = [], installScripts, autoLoadPlugins }: PluginFlags,
  shell: Shell
): Promise<ServedPlugins> {
  let end = (_reason: string) => {};
  const ended = new Promise<string>((resolve) => {
    end = resolve;
  });
  if (dataDir === undefined) return { plugins: undefined, ended };
  const { streamPlugins } = await import('../../streams-plugins/index.ts');
  const plugins = await streamPlugins(broker, {
    dataDir,
    pluginHosts,
    installScripts,
    autoLoad: autoLoadPlugins,
    autoLoadName: '--auto-load-plugins',
    onLog: (name, text) => log(shell, `${name}: ${text}`),
    onStop: ({ type, name }) => {
      if (exitOnPluginDrop)
        void shell
          .delay(DROP_DELAY_MS, new AbortController().signal)
          .then(() => end(`the ${type} plugin ${name} was dropped`));
    }
  });
  return { plugins, ended };
}
