import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ViewName } from '../model/places.ts';
import { T } from '../texts.ts';
import type { IconName } from './icons.tsx';
import { Problem } from './problem.tsx';

/** A view: its code, which is loaded when it is first shown, and its place in the navigation. */
interface View {
  readonly load: () => Promise<{ readonly Page: FunctionComponent }>;
  readonly group: keyof typeof T.groups;
  readonly icon: IconName;
  /** The view of the navigation that it belongs to, if it is not there itself. */
  readonly within?: ViewName;
  /** The parts after the first one, by the choice `tab`. */
  readonly tabs?: Readonly<Record<string, string>>;
}

/** The views, in the order of the navigation. */
export const VIEW_ROWS: Readonly<Record<ViewName, View>> = {
  overview: { load: () => import('../pages/overview.tsx'), group: 'observe', icon: 'overview' },
  clients: { load: () => import('../pages/clients.tsx'), group: 'observe', icon: 'clients' },
  client: { load: () => import('../pages/client.tsx'), group: 'observe', icon: 'clients', within: 'clients' },
  topics: { load: () => import('../pages/topics.tsx'), group: 'observe', icon: 'topics' },
  tail: { load: () => import('../pages/tail.tsx'), group: 'observe', icon: 'tail' },
  alarms: {
    load: () => import('../pages/alarms.tsx'),
    group: 'observe',
    icon: 'alarms',
    tabs: { past: T.alarms.past }
  },
  why: { load: () => import('../pages/why.tsx'), group: 'find', icon: 'why' },
  traces: { load: () => import('../pages/traces.tsx'), group: 'find', icon: 'traces' },
  websocket: { load: () => import('../pages/websocket.tsx'), group: 'find', icon: 'websocket' },
  access: {
    load: () => import('../pages/access.tsx'),
    group: 'control',
    icon: 'access',
    tabs: {
      rules: T.access.rules,
      bans: T.access.bans,
      mqtt: T.access.mqttUsers,
      users: T.access.users,
      apps: T.access.apps
    }
  },
  rules: {
    load: () => import('../pages/rules.tsx'),
    group: 'control',
    icon: 'rules',
    tabs: { resources: T.rules.resources }
  },
  rule: { load: () => import('../pages/rule.tsx'), group: 'control', icon: 'rules', within: 'rules' },
  streams: {
    load: () => import('../pages/streams.tsx'),
    group: 'control',
    icon: 'streams',
    tabs: {
      streams: T.streamRules.streams,
      tables: T.streamRules.tables,
      sources: T.streamRules.sources,
      sinks: T.streamRules.sinks,
      connections: T.streamRules.connections,
      schemas: T.streamRules.schemas,
      plugins: T.streamRules.plugins,
      transfer: T.streamRules.transfer
    }
  },
  stream: { load: () => import('../pages/stream.tsx'), group: 'control', icon: 'streams', within: 'streams' },
  definition: {
    load: () => import('../pages/definition.tsx'),
    group: 'control',
    icon: 'streams',
    within: 'streams'
  },
  webhooks: { load: () => import('../pages/webhooks.tsx'), group: 'others', icon: 'webhooks' },
  bridges: { load: () => import('../pages/bridges.tsx'), group: 'others', icon: 'bridges' },
  options: { load: () => import('../pages/options.tsx'), group: 'settings', icon: 'options' },
  features: { load: () => import('../pages/features.tsx'), group: 'settings', icon: 'features' },
  listeners: { load: () => import('../pages/listeners.tsx'), group: 'settings', icon: 'listeners' },
  node: { load: () => import('../pages/node.tsx'), group: 'settings', icon: 'node' }
};

const loaded = new Map<ViewName, FunctionComponent>();

/** A view by its name. */
export function ViewOf({ name }: { readonly name: ViewName }) {
  const [error, setError] = useState<unknown>();
  const [, setCount] = useState(0);
  const Page = loaded.get(name);
  useEffect(() => {
    setError(undefined);
    if (loaded.has(name)) return;
    VIEW_ROWS[name].load().then(
      (module) => {
        loaded.set(name, module.Page);
        setCount((count) => count + 1);
      },
      () => setError(new Error(T.shell.outdated))
    );
  }, [name]);
  useEffect(() => {
    document.title = `${T.views[name]} · ${T.name}`;
  }, [name]);
  if (error !== undefined) return <Problem error={error} onRetry={() => location.reload()} />;
  return Page === undefined ? <p class="loading">{T.shell.loading}</p> : <Page key={name} />;
}
