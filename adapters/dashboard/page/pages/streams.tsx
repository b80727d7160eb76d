import { choice, hrefOf } from '../app/place.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Head, Tabs } from '../parts/facts.tsx';
import { T } from '../texts.ts';
import { Connections } from './streams/connections.tsx';
import { Definitions } from './streams/definitions.tsx';
import { Plugins } from './streams/plugins.tsx';
import { Rules } from './streams/rules.tsx';
import { Ruleset } from './streams/ruleset.tsx';
import { Schemas } from './streams/schemas.tsx';
import { Sections } from './streams/sections.tsx';
import { Types } from './streams/types.tsx';

const S = T.streamRules;

const TABS = {
  rules: { text: T.views.rules, path: '/rules', ctl: ['stream', 'list'] },
  streams: { text: S.streams, path: '/streams', ctl: ['stream', 'streams'] },
  tables: { text: S.tables, path: '/tables', ctl: ['stream', 'tables'] },
  sources: { text: S.sources, path: '/metadata/sources', ctl: undefined },
  sinks: { text: S.sinks, path: '/metadata/sinks', ctl: undefined },
  connections: { text: S.connections, path: '/connections', ctl: ['stream', 'connections'] },
  schemas: { text: S.schemas, path: '/schemas/protobuf', ctl: ['stream', 'schemas'] },
  plugins: { text: S.plugins, path: '/plugins/functions', ctl: ['stream', 'plugins', 'functions'] },
  transfer: { text: S.transfer, path: undefined, ctl: undefined }
} as const;
type TabName = keyof typeof TABS;

/** The rules over streams, and what they use: streams, tables, sources, sinks, connections, schemas and plugins. */
export function Page() {
  const chosen = choice('tab');
  const tab = Object.hasOwn(TABS, chosen) ? (chosen as TabName) : 'rules';
  const { path, ctl } = TABS[tab];
  return (
    <>
      <Head title={T.views.streams}>
        {path !== undefined && <CopyAs of="streams" request={{ path }} ctl={ctl} />}
        {tab === 'rules' && (
          <a class="button primary-link" href={hrefOf('stream')}>
            {T.rules.create}
          </a>
        )}
        {(tab === 'streams' || tab === 'tables') && (
          <a class="button primary-link" href={hrefOf('definition', { kind: tab === 'tables' ? 'table' : undefined })}>
            {tab === 'tables' ? S.newTable : S.newStream}
          </a>
        )}
      </Head>
      <Tabs
        label={S.parts}
        shown={tab}
        tabs={(Object.keys(TABS) as TabName[]).map((name) => [name, TABS[name].text])}
      />
      <Shown tab={tab} />
    </>
  );
}

function Shown({ tab }: { readonly tab: TabName }) {
  if (tab === 'streams') return <Definitions key="stream" kind="stream" />;
  if (tab === 'tables') return <Definitions key="table" kind="table" />;
  if (tab === 'sinks') return <Types key="sinks" of="sinks" />;
  if (tab === 'connections') return <Connections />;
  if (tab === 'schemas') return <Schemas />;
  if (tab === 'plugins') return <Plugins />;
  if (tab === 'transfer') return <Ruleset />;
  if (tab === 'rules') return <Rules />;
  return (
    <>
      <Types key="sources" of="sources" />
      <Sections />
    </>
  );
}
