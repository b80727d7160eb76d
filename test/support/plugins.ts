import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type PluginOptions,
  type PluginsHost,
  type StreamPlugins,
  streamPlugins
} from '../../adapters/streams-plugins/index.ts';
import type { SinkType, SourceType, StreamFunction } from '../../lib/adapter.ts';
import { type Clock, StateError, systemClock } from '../../lib/index.ts';
import { type ZipEntry, zip } from './zip.ts';

/** Replaces the stream service, and keeps the definitions. */
class FakeStreams {
  readonly functions = new Map<string, StreamFunction>();
  readonly sources = new Map<string, SourceType>();
  readonly sinks = new Map<string, SinkType>();
  isRunning = true;
  #beforeStart: (() => Promise<void>)[] = [];

  async createFunction(definition: StreamFunction): Promise<void> {
    add(this.functions, definition, 'FUNCTION_EXISTS');
  }

  async createSource(type: SourceType): Promise<void> {
    add(this.sources, type, 'SOURCE_EXISTS');
  }

  async createSink(type: SinkType): Promise<void> {
    add(this.sinks, type, 'SINK_EXISTS');
  }

  async deleteType(what: 'function' | 'source' | 'sink', name: string): Promise<boolean> {
    return this[`${what}s`].delete(name);
  }

  beforeStart(run: () => Promise<void>): () => void {
    this.#beforeStart.push(run);
    return () => {
      this.#beforeStart = this.#beforeStart.filter((each) => each !== run);
    };
  }

  async start(): Promise<void> {
    for (const run of this.#beforeStart) await run();
    this.isRunning = true;
  }

  async stop(): Promise<void> {
    this.isRunning = false;
  }

  /** Call a function as a statement would. */
  call(name: string, ...args: readonly unknown[]): unknown {
    const definition = this.functions.get(name);
    if (definition === undefined) throw new Error(`there is no function ${name}`);
    const tools = { ruleId: 'rule' } as never;
    if (definition.kind === 'context') return definition.make(tools)(undefined as never, ...(args as never[]));
    if (definition.kind === 'scalar') return definition.run(...args);
    throw new Error(`${name} is of the kind ${definition.kind}`);
  }
}

function add<T extends { readonly name: string }>(map: Map<string, T>, value: T, code: string): void {
  if (map.has(value.name)) throw new StateError(code, `${value.name} exists`);
  map.set(value.name, value);
}

/** Plugins with a separate folder, and a fake of the stream service. */
export interface PluginsFixture {
  readonly folder: string;
  readonly streams: FakeStreams;
  /** The reported errors. */
  readonly failures: string[];
  readonly plugins: StreamPlugins;
  /** Write an archive. @returns the URL of the file */
  archive(name: string, ...entries: readonly ZipEntry[]): string;
  /** Restart the process from the view of the plugins. */
  reopen(options?: Partial<PluginOptions>): Promise<PluginsFixture>;
}

const folders: string[] = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Create plugins in a new folder, which is removed when the process ends: libraries of it are in use until then. */
export async function pluginsFixture(
  options: Partial<PluginOptions> = {},
  clock: Clock = systemClock
): Promise<PluginsFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-plugins-'));
  folders.push(folder);
  return openFixture(folder, options, clock);
}

async function openFixture(folder: string, options: Partial<PluginOptions>, clock: Clock): Promise<PluginsFixture> {
  const streams = new FakeStreams();
  const failures: string[] = [];
  const host: PluginsHost = {
    version: '1.2.0',
    clock,
    streams,
    stop: async () => {},
    failed: (error, during) => void failures.push(`${during}: ${(error as Error).message}`)
  };
  const plugins = await streamPlugins(host, { dataDir: join(folder, 'streams'), ...options });
  return {
    ...{ folder, streams, failures, plugins },
    archive(name, ...entries) {
      const path = join(folder, name);
      writeFileSync(path, zip(...entries));
      return pathToFileURL(path).href;
    },
    reopen: (more = options) => {
      plugins.close();
      return openFixture(folder, more, clock);
    }
  };
}

/** A module with a function that returns a number, for `functions`. */
export function functionModule(name: string, result: number): string {
  return `exports.${name} = class { exec() { return ${result}; } };`;
}
