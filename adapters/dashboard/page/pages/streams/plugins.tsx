import { RequestError } from '../../app/requests.ts';
import { streams } from '../../app/streams.ts';
import { withoutSecrets } from '../../model/copy.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import type { FieldTexts } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;
const TYPES = ['functions', 'sources', 'sinks'] as const;
const SCRIPTS = '/udf/javascript';

interface Plugin {
  readonly type: (typeof TYPES)[number];
  readonly name: string;
  readonly version: string;
  readonly functions?: readonly string[];
}

interface Script {
  readonly id: string;
  readonly description: string;
  readonly script: string;
  readonly isAgg: boolean;
}

/** The plugins, which add sources, sinks and functions, and the functions in JavaScript. */
export function Plugins() {
  const { value, error, reload } = useLoaded('plugins', async (signal) => {
    const found = await Promise.all(
      TYPES.map(async (type) => {
        const names = (await streams('GET', `/plugins/${type}`, { signal })) as readonly string[];
        return Promise.all(
          names.map(async (name): Promise<Plugin> => {
            const plugin = await streams('GET', `/plugins/${type}/${encodeURIComponent(name)}`, { signal });
            return { ...(plugin as Omit<Plugin, 'type'>), type };
          })
        );
      })
    );
    return found.flat();
  });
  if (error instanceof RequestError && error.status === 404) return <div class="empty-table">{S.noPluginService}</div>;
  return (
    <section class="stack">
      <div class="sample-head">
        <p class="aside">{S.pluginsAbout}</p>
        <AddPlugin onDone={reload} />
      </div>
      <Table
        caption={S.plugins}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ type, name }) => `${type} ${name}`}
        empty={S.noPlugins}
        columns={[
          { head: T.access.name, cell: ({ name }) => <Name of={name} /> },
          { head: S.kind, cell: ({ type }) => S.pluginKinds[type] },
          {
            head: S.version,
            cell: ({ version }) => (version === '$deleted' ? S.pluginDropped : <Name of={version} />)
          },
          {
            head: S.pluginKinds.functions,
            isWide: true,
            isMinor: true,
            cell: ({ functions = [] }) => <Name of={functions.join(', ') || '–'} max={160} />
          },
          {
            head: '',
            cell: ({ type, name, version }) =>
              version !== '$deleted' && (
                <Action
                  label={T.rules.remove}
                  title={S.removePlugin}
                  of={name}
                  text={S.removePluginText}
                  kind="small"
                  isDangerous
                  fields={[{ name: 'now', label: S.pluginStop, type: 'flag', help: S.pluginStopHelp }]}
                  done={S.pluginRemoved}
                  run={({ now }) => streams('DELETE', removalOf(type, name, now))}
                  onDone={reload}
                >
                  {({ now }) => (
                    <CopyAs
                      of="streams"
                      request={{ method: 'DELETE', path: removalOf(type, name, now) }}
                      ctl={['stream', 'drop-plugin', ...(now === 'true' ? ['--force'] : []), '--', type, name]}
                    />
                  )}
                </Action>
              )
          }
        ]}
      />
      {error === undefined && <Scripts />}
    </section>
  );
}

/** The path that deletes a plugin. @param now `true`: the stream service stops, so that it takes effect */
function removalOf(type: string, name: string, now = ''): string {
  return `/plugins/${type}/${encodeURIComponent(name)}${now === 'true' ? '?restart=1' : ''}`;
}

function listed(text = ''): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function pluginOf({ name = '', file = '', functions, shellParas }: FieldTexts) {
  const [exported, given] = [listed(functions), listed(shellParas)];
  return {
    name,
    file,
    ...(exported.length > 0 && { functions: exported }),
    ...(given.length > 0 && { shellParas: given })
  };
}

function AddPlugin({ onDone }: { readonly onDone: () => void }) {
  return (
    <Action
      label={S.addPlugin}
      text={S.addPluginText}
      submit={T.access.add}
      fields={[
        { name: 'type', label: S.kind, type: 'choice', choices: TYPES.map((type) => [type, S.pluginKinds[type]]) },
        { name: 'name', label: T.access.name, isRequired: true },
        { name: 'file', label: S.archive, help: S.archiveHelp, isRequired: true },
        { name: 'functions', label: S.pluginKinds.functions, help: S.pluginFunctionsHelp, isMinor: true },
        { name: 'shellParas', label: S.shellArguments, help: S.shellArgumentsHelp, isMinor: true }
      ]}
      done={S.pluginAdded}
      run={({ type = '', ...texts }) => streams('POST', `/plugins/${type}`, { body: pluginOf(texts) })}
      onDone={onDone}
    >
      {({ type = TYPES[0], ...texts }) => {
        const body = withoutSecrets(pluginOf(texts)) as ReturnType<typeof pluginOf>;
        const isOfCtl = body.functions === undefined && body.shellParas === undefined;
        return (
          <CopyAs
            of="streams"
            request={{ method: 'POST', path: `/plugins/${type}`, body }}
            ctl={isOfCtl ? ['stream', 'add-plugin', '--', type, body.name, body.file] : undefined}
          />
        );
      }}
    </Action>
  );
}

function Scripts() {
  const { value, error, reload } = useLoaded('scripts', async (signal) => {
    const ids = (await streams('GET', SCRIPTS, { signal })) as readonly string[];
    return Promise.all(ids.map(async (id) => (await streams('GET', scriptPath(id), { signal })) as Script));
  });
  return (
    <section class="stack">
      <div class="sample-head">
        <h2>{S.scripts}</h2>
        <EditScript script={undefined} onDone={reload} />
      </div>
      <Table
        caption={S.scripts}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ id }) => id}
        empty={S.noScripts}
        columns={[
          { head: T.access.name, cell: ({ id }) => <Name of={id} /> },
          {
            head: T.rules.description,
            isMinor: true,
            cell: ({ description }) => <Name of={description || '–'} max={80} />
          },
          { head: S.script, isWide: true, cell: ({ script }) => <code>{script.slice(0, 200)}</code> },
          {
            head: '',
            cell: (script) => (
              <span class="section-actions">
                <EditScript script={script} onDone={reload} />
                <Action
                  label={T.rules.remove}
                  title={S.removeScript}
                  of={script.id}
                  text={S.removeScriptText}
                  kind="small"
                  isDangerous
                  done={S.scriptRemoved}
                  run={() => streams('DELETE', scriptPath(script.id))}
                  onDone={reload}
                >
                  <CopyAs of="streams" request={{ method: 'DELETE', path: scriptPath(script.id) }} />
                </Action>
              </span>
            )
          }
        ]}
      />
    </section>
  );
}

function scriptPath(id: string): string {
  return `${SCRIPTS}/${encodeURIComponent(id)}`;
}

function EditScript({ script, onDone }: { readonly script: Script | undefined; readonly onDone: () => void }) {
  const bodyOf = ({ id = '', script: code = '', description = '', isAgg }: FieldTexts) => ({
    id: script?.id ?? id,
    script: code,
    description,
    isAgg: isAgg === 'true'
  });
  const target = script === undefined ? SCRIPTS : scriptPath(script.id);
  const method = script === undefined ? 'POST' : 'PUT';
  return (
    <Action
      isWide
      label={script === undefined ? S.addScript : T.rules.change}
      title={script === undefined ? S.addScript : S.changeScript}
      text={S.scriptText}
      submit={T.rules.save}
      kind={script === undefined ? '' : 'small'}
      fields={[
        ...(script === undefined
          ? [{ name: 'id', label: T.access.name, help: S.scriptNameHelp, isRequired: true }]
          : []),
        { name: 'script', label: S.script, type: 'lines' as const, rows: 12, isRequired: true },
        { name: 'description', label: T.rules.description },
        { name: 'isAgg', label: S.aggregate, help: S.aggregateHelp, type: 'flag' as const }
      ]}
      initial={{
        script: script?.script ?? S.scriptExample,
        description: script?.description ?? '',
        isAgg: script?.isAgg ? 'true' : ''
      }}
      done={S.scriptSaved}
      run={(texts) => streams(method, target, { body: bodyOf(texts) })}
      onDone={onDone}
    >
      {(texts) => <CopyAs of="streams" request={{ method, path: target, body: bodyOf(texts) }} />}
    </Action>
  );
}
